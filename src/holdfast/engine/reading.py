"""One pass over a run's journal: which recorded calls may be asked for again."""

from collections.abc import Iterable

import msgspec

from holdfast.model.journal import (
    Answer,
    Based,
    Call,
    Declined,
    Entry,
    Happened,
    Intended,
    LoopLeft,
    Noted,
    Raised,
    Redone,
    Saved,
    Scope,
    TurnEnded,
)
from holdfast.store.reader import Placed

Key = tuple[Scope, str, bytes, int]


class Record(msgspec.Struct):
    """A recorded call and where it stands; an effect also has its outcome, if there is one.

    `is_standing`: an effect carried over from a turn that is run anew; nobody has to ask it.
    """

    call: Call
    entry: Answer | Raised | Noted | Saved | Intended
    row: int
    index: int
    outcome: Happened | Declined | None = None
    is_standing: bool = False


def key_of(call: Call) -> Key:
    """By what a call is known."""
    return call.scope, call.name, call.digest, call.ordinal


class Reading:
    """What is left of the journal after its rows were read in order."""

    def __init__(self) -> None:
        self.kept: dict[Key, Record] = {}
        self.loops_left: dict[int, tuple[int, int]] = {}
        self._intents: dict[str, Record] = {}
        self._ended = (-1, -1)
        self._is_standing = False

    def read(self, rows: Iterable[Placed]) -> None:
        """Take in more rows."""
        for placed in rows:
            self._is_standing = False
            for index, entry in enumerate(placed.row.entries):
                self._take(entry, placed.id, index)

    def _take(self, entry: Entry, row: int, index: int) -> None:
        match entry:
            case Answer() | Noted() | Saved() | Raised():
                self.kept[key_of(entry.call)] = Record(entry.call, entry, row, index)
            case Intended():
                self._intend(entry, row, index)
            case Happened() | Declined():
                # By its key: a turn run anew may ask for the effect from another place.
                record = self._intents.get(entry.key)
                if record is not None:
                    record.outcome, record.row, record.index = entry, row, index
            case TurnEnded() | Based():
                self._ended = (row, index)
                self.end_turn()
            case Redone():
                self._is_standing = True
            case LoopLeft():
                self.loops_left[entry.loop] = (row, index)
            case _:
                pass

    def _intend(self, entry: Intended, row: int, index: int) -> None:
        """An intent, new or tried again; the newest with its key is the one that counts."""
        record = Record(entry.call, entry, row, index, is_standing=self._is_standing)
        before = self._intents.get(entry.key)
        if before is not None:
            self.kept.pop(key_of(before.call), None)
        self._intents[entry.key] = self.kept[key_of(entry.call)] = record

    def end_turn(self) -> None:
        """Forget the calls of the turn: only those outside turns are asked for again."""
        self.kept = {
            key: record
            for key, record in self.kept.items()
            if isinstance(key[0], bytes) or key[0] < 0
        }

    def is_past(self, raised: Record) -> bool:
        """Whether the code went on after an error: it asked something else later, or its turn ended.

        Inside a step only what was asked in the same step tells. A call that was cut off is not an
        answer: only the agent's own code can say that it went on without one.
        """
        call, at = raised.call, (raised.row, raised.index)
        later = [r for r in self.kept.values() if (r.row, r.index) > at]
        if isinstance(call.scope, bytes):
            return any(r.call.scope == call.scope and r.call.after > call.after for r in later)
        if at < self._ended:
            return True
        assert isinstance(raised.entry, Raised)
        return any(
            isinstance(r.call.scope, int)
            and (r.call.scope != call.scope or r.call.after > call.after)
            and not (raised.entry.error.is_cut and r.call.is_side)
            for r in later
        )
