"""What became of the effects of one ledger, on whichever branch or fork that is recorded."""

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.model.ids import Point, branch_of
from holdfast.model.journal import (
    Declined,
    Happened,
    Intended,
    Undone,
)
from holdfast.policy.effects import TAKEN_BACK
from holdfast.store.marks import intent_mark, key_mark
from holdfast.store.reader import Placed, Reader

ELSEWHERE = "branch"
"""How a line of history knows of an effect that it did not begin: another one did."""
PAGE_ROWS = 8

Outcome = Happened | Declined | Undone


class Entered(msgspec.Struct, frozen=True, kw_only=True):
    """An effect in the ledger, and where its intent is recorded."""

    meant: Intended
    at: Point


class _Word(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of history says of an effect that it meant."""

    meant: Intended
    branch: int
    outcome: Outcome | None

    @property
    def order(self) -> tuple[float, bool]:
        """Which word is newer; a doubt counts for more."""
        said = self.meant if self.outcome is None else self.outcome
        return said.at, self.outcome is None


class Fates:
    """What became of the effects of one ledger, wherever that is recorded."""

    def __init__(self, reader: Reader, ledger: int) -> None:
        self.reader, self.no = reader, ledger

    def rows(self, mark: bytes) -> list[int]:
        """The rows of the ledger with a mark."""
        return self.reader.intended(self.no, mark)

    def entered(self, rows: Iterable[int]) -> list[Entered]:
        """The effects whose intents are recorded in these rows."""
        wanted = set(rows)
        return [
            Entered(meant=entry, at=(placed.id, index))
            for placed in self.reader.some(wanted)
            if placed.id in wanted
            for index, entry in enumerate(placed.row.entries)
            if isinstance(entry, Intended)
        ]

    def of(self, effect: Entered) -> Outcome | None:
        """What became of an effect; None: it is in doubt, or under way."""
        key = effect.meant.key
        for placed in self._read(self.rows(key_mark(key))):
            for entry in placed.row.entries:
                if isinstance(entry, Undone) and entry.key == key and entry.how in TAKEN_BACK:
                    return entry
        mark = intent_mark(effect.meant.call, effect.meant.module)
        newest: dict[int, Entered] = {}
        for each in [effect, *self.entered(self.rows(mark))]:
            branch = branch_of(each.at[0])
            if each.meant.key == key and (branch not in newest or each.at > newest[branch].at):
                newest[branch] = each
        words = [
            _Word(meant=each.meant, branch=branch, outcome=self._after(each.at[0], key))
            for branch, each in sorted(newest.items())
        ]
        happened = [word.outcome for word in words if isinstance(word.outcome, Happened)]
        return happened[-1] if happened else self._last(words)

    def _last(self, words: Sequence[_Word]) -> Outcome | None:
        """The newest word on an effect that nobody knows to have happened.

        A run that was told that it was not done may have tried it again since. Of one run the
        newest epoch counts, of several the clock.
        """
        known = [word for word in words if not _is_elsewhere(word.outcome)] or words
        newest: dict[int, _Word] = {}
        for word in known:
            owner = self.reader.owner(word.branch).row.no
            before = newest.get(owner)
            if before is None or word.meant.epoch >= before.meant.epoch:
                newest[owner] = word
        return max(newest.values(), key=lambda word: word.order).outcome if newest else None

    def _after(self, row: int, key: str) -> Outcome | None:
        """The outcome that follows an intent on its own branch."""
        end, low = self.reader.end(branch_of(row)), row
        while low <= end:
            high = min(end, low + PAGE_ROWS - 1)
            for placed in self.reader.some(range(low, high + 1)):
                for entry in placed.row.entries:
                    if isinstance(entry, Happened | Declined) and entry.key == key:
                        return entry
            low = high + 1
        return None

    def _read(self, rows: list[int]) -> Iterable[Placed]:
        return (placed for placed in self.reader.some(rows) if placed.id in rows)


def _is_elsewhere(said: Outcome | None) -> bool:
    return isinstance(said, Declined) and said.how == ELSEWHERE
