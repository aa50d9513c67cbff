"""One pass over a run's journal: which recorded calls may be asked for again."""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from holdfast.engine.faults import is_cut
from holdfast.model.journal import (
    Aborted,
    Answer,
    Answered,
    Based,
    Call,
    Declined,
    Entry,
    Failed,
    Happened,
    Intended,
    Interrupted,
    LoopLeft,
    Noted,
    Questioned,
    Raised,
    Redone,
    Resumed,
    Retried,
    Saved,
    Scope,
    Spawned,
    Streamed,
    TurnEnded,
)
from holdfast.model.parts import Error
from holdfast.model.run import Status
from holdfast.store.reader import Placed

Key = tuple[Scope, str, bytes, int]


class Record(msgspec.Struct):
    """A recorded call and where it stands; an effect also has its outcome, if there is one.

    `is_standing`: an effect carried over from a turn that is run anew; nobody has to ask it.
    `is_past`: an error that the code went past, which is raised again; `is_end`: one that ended the
    run, so whatever others recorded behind it, nobody went past it.
    `is_optional`: an answer to code that then diverged, or was on its way out of a life that was
    cancelled (`is_exit`); other code need not ask for it.
    `since`: where the critical section begins that was aborted.
    `parts`: what is recorded of a stream, also of one that then raised; `begun`: of a child.
    """

    call: Call
    entry: (
        Answer
        | Raised
        | Noted
        | Saved
        | Intended
        | Questioned
        | Answered
        | Aborted
        | Streamed
        | Spawned
    )
    row: int
    index: int
    outcome: Happened | Declined | None = None
    is_standing: bool = False
    is_past: bool = False
    is_end: bool = False
    is_optional: bool = False
    is_exit: bool = False
    since: tuple[int, int] = (-1, -1)
    begun: Spawned | None = None
    parts: list[Streamed] = msgspec.field(default_factory=list)


def key_of(call: Call) -> Key:
    """By what a call is known."""
    return call.scope, call.name, call.digest, call.ordinal


class Reading:
    """What is left of the journal after its rows were read in order.

    `attempts` are the errors that nobody went past, by call: those are asked again.
    """

    def __init__(self) -> None:
        self.kept: dict[Key, Record] = {}
        self.attempts: dict[Key, int] = {}
        self.loops_left: dict[int, tuple[int, int]] = {}
        self._intents: dict[str, Record] = {}
        self._life = (-1, -1)
        self._is_standing = False

    def read(self, rows: Iterable[Placed]) -> None:
        """Take in more rows."""
        for placed in rows:
            self._is_standing = False
            for index, entry in enumerate(placed.row.entries):
                self._take(entry, placed.id, index)

    def _take(self, entry: Entry, row: int, index: int) -> None:
        match entry:
            case Answer() | Noted() | Saved() | Questioned() | Answered() | Spawned():
                self.kept[key_of(entry.call)] = Record(entry.call, entry, row, index)
            case Raised() | Streamed():
                self._stream(entry, row, index)
            case Aborted():
                self._abort(entry, row, index)
            case Intended():
                self._intend(entry, row, index)
            case Happened() | Declined():
                # By its key: a turn run anew may ask for the effect from another place.
                record = self._intents.get(entry.key)
                if record is not None:
                    record.outcome, record.row, record.index = entry, row, index
            case TurnEnded() | Based():
                self.end_turn()
            case Resumed():
                self.end_life()
                self._life = (row, index)
            case Failed() if entry.status == Status.DIVERGED:
                self._excuse()
            case _:
                self._remark(entry, row, index)

    def _stream(self, entry: Raised | Streamed, row: int, index: int) -> None:
        """An error, or more of a stream; what the stream gave before belongs to it."""
        before = self.kept.get(key_of(entry.call))
        parts = [] if before is None else before.parts
        if isinstance(entry, Streamed):
            if parts and parts[-1].attempt != entry.attempt:
                parts = []
            parts.append(entry)
        made = Record(entry.call, entry, row, index, parts=parts)
        # Once more the same: the run was ended by it (`Session.blame`).
        made.is_end = isinstance(entry, Raised) and before is not None and before.entry == entry
        made.begun = before.begun if before is not None else None
        if before is not None and isinstance(before.entry, Spawned):
            made.begun = before.entry
        self.kept[key_of(entry.call)] = made

    def _remark(self, entry: Entry, row: int, index: int) -> None:
        """An entry that is no call but says something of those around it."""
        match entry:
            case Retried():
                self.attempts[key_of(entry.call)] = entry.attempt
            case Redone():
                self._is_standing = True
            case LoopLeft():
                self.loops_left[entry.loop] = (row, index)
            case Interrupted():
                for key in entry.exits:
                    if key in self.kept:
                        self.kept[key].is_optional = self.kept[key].is_exit = True
            case _:
                pass

    def _intend(self, entry: Intended, row: int, index: int) -> None:
        """An intent, new or tried again; the newest with its key is the one that counts."""
        record = Record(entry.call, entry, row, index, is_standing=self._is_standing)
        before = self._intents.get(entry.key)
        if before is not None:
            self.kept.pop(key_of(before.call), None)
        self._intents[entry.key] = self.kept[key_of(entry.call)] = record

    def _abort(self, entry: Aborted, row: int, index: int) -> None:
        """A critical section was left by an error; what stands in it is not asked for again."""
        record = Record(entry.call, entry, row, index)
        begun = self.kept.get(key_of(entry.call))
        if begun is not None:
            record.since = begun.row, begun.index
        self.kept[key_of(entry.call)] = record

    def end_turn(self) -> None:
        """Forget the calls of the turn: only those outside turns are asked for again."""
        kept, self.kept = self.kept, {}
        for key, record in kept.items():
            if isinstance(key[0], bytes) or key[0] < 0:
                self.kept[key] = record
                record.is_past = isinstance(key[0], int)

    def _excuse(self) -> None:
        """The life diverged: what is recorded of its steps, and of no other, may stay unasked."""
        for record in self.kept.values():
            if (record.row, record.index) > self._life and not isinstance(record.entry, Intended):
                record.is_optional = True

    def end_life(self) -> None:
        """The process that wrote so far is gone: an error it did not go past is no answer."""
        raised = [record for record in self.kept.values() if _error_of(record) is not None]
        for record in raised:
            record.is_past = record.is_past or (not record.is_end and self._is_past(record))
        for record in raised:
            if record.is_past:
                continue
            if isinstance(record.outcome, Declined):
                record.outcome = replace(record.outcome, error=None)
            elif isinstance(record.entry, Raised):
                key = key_of(record.call)
                self.attempts[key] = record.entry.attempt
                del self.kept[key]
                begun = record.parts[-1] if record.parts else record.begun
                if begun is not None:  # It may go on from there.
                    again = Record(record.call, begun, record.row, record.index)
                    again.parts = record.parts
                    self.kept[key] = again

    def _is_past(self, raised: Record) -> bool:
        """Whether the code asked something else later; inside a step, in the same step.

        Of a call that was cut off only the agent's own code can say that it went on without it;
        of one beside that, it is noted only once code did.
        """
        call, at = raised.call, (raised.row, raised.index)
        error = _error_of(raised)
        only_own = error is not None and is_cut(error)
        if only_own and call.is_side and isinstance(raised.entry, Raised):
            return True
        return any(
            (r.row, r.index) > at
            and not (only_own and (r.call.is_side or r.is_exit))
            and (
                r.call.after > call.after
                if r.call.scope == call.scope
                else isinstance(call.scope, int) and isinstance(r.call.scope, int)
            )
            for r in self.kept.values()
        )


def _error_of(record: Record) -> Error | None:
    """The error that a call raised; of an effect, the cancellation before it was begun."""
    if isinstance(record.entry, Raised):
        return record.entry.error
    error = record.outcome.error if isinstance(record.outcome, Declined) else None
    return error if error is not None and is_cut(error) else None


def is_open(effect: Record | None) -> bool:
    """Whether nothing came of an effect yet, so that it would be done."""
    outcome = None if effect is None else effect.outcome
    return outcome is None or (isinstance(outcome, Declined) and outcome.error is None)


def took_s(record: Record) -> float:
    """How long the call took when it was made."""
    if record.outcome is not None:
        return record.outcome.took_s
    return record.entry.took_s if isinstance(record.entry, Answer | Raised | Streamed) else 0.0
