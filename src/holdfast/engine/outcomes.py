"""What became of the effects of one ledger, on whichever branch or fork that is recorded."""

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.model.branches import Undoing
from holdfast.model.ids import Point, branch_of
from holdfast.model.journal import (
    Call,
    Declined,
    Happened,
    Intended,
    Undone,
)
from holdfast.policy.effects import TAKEN_BACK, UNKNOWN
from holdfast.store.marks import intent_mark, key_mark
from holdfast.store.reader import Placed, Reader, first_row

ELSEWHERE = "branch"
"""How a line of history knows of an effect that it did not begin: another one did."""
PAGE_ROWS = 8

Outcome = Happened | Declined | Undone


class Entered(msgspec.Struct, frozen=True, kw_only=True):
    """An effect in the ledger, and where its intent is recorded."""

    meant: Intended
    at: Point


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """Taking an effect back was begun then; `row` says that nobody knows what came of it."""

    at: float
    row: int


class _Word(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of history says of an effect that it meant."""

    meant: Intended
    branch: int
    row: int
    outcome: Outcome | None

    def is_after(self, begun: Begun) -> bool:
        """Whether it was said since; a line that grew later did, whatever the clock says."""
        return self.row > begun.row or self.order[0] > begun.at

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
        return self.taken_back(effect.meant.key) or self._said(self._words(effect))

    def taken_back(self, key: str) -> Undone | None:
        """How an effect was taken back, if it was: then it stands no more, whoever says so."""
        for placed in self._read(self.rows(key_mark(key))):
            for entry in placed.row.entries:
                if isinstance(entry, Undone) and entry.key == key and entry.how in TAKEN_BACK:
                    return entry
        return None

    def asked_again(self, effect: Entered) -> Outcome | None:
        """As `of`, for whoever asks for the effect again.

        Where taking it back was begun and nobody knows what came of that, what was said before
        counts no more: it is in doubt until somebody has looked.
        """
        outcome = self.of(effect)
        begun = self.undoing(effect.meant.key) if isinstance(outcome, Happened) else None
        if begun is None:
            return outcome
        return self._said([word for word in self._words(effect) if word.is_after(begun)])

    def _words(self, effect: Entered) -> list[_Word]:
        """What each line of history that meant an effect says of it."""
        key, mark = effect.meant.key, intent_mark(effect.meant.call, effect.meant.module)
        newest: dict[int, Entered] = {}
        for each in [effect, *self.entered(self.rows(mark))]:
            branch = branch_of(each.at[0])
            if each.meant.key == key and (branch not in newest or each.at > newest[branch].at):
                newest[branch] = each
        return [
            _Word(
                meant=each.meant,
                branch=branch,
                row=each.at[0],
                outcome=self._after(each.at[0], key),
            )
            for branch, each in sorted(newest.items())
        ]

    def undoing(self, key: str) -> Begun | None:
        """The attempt to take an effect back of which nobody knows what came, if there is one."""
        said = [
            (entry.at, placed.id, entry.how)
            for placed in self._read(self.rows(key_mark(key)))
            for entry in placed.row.entries
            if isinstance(entry, Undone) and entry.key == key
        ]
        _, row, how = max(said, default=(0.0, 0, ""))
        if how != UNKNOWN:
            return None
        branch, began = branch_of(row), None
        first = first_row(self.reader.line(branch)[-1])
        for placed in self.reader.rows(branch, first, row):
            for entry in placed.row.entries:
                if isinstance(entry, Undoing) and entry.key == key:
                    began = entry.at
                elif isinstance(entry, Undone) and entry.key == key and entry.how != UNKNOWN:
                    began = None
        return None if began is None else Begun(at=began, row=row)

    def _said(self, words: Sequence[_Word]) -> Outcome | None:
        """What these words come to: whoever knows that it happened is right."""
        happened = [word.outcome for word in words if isinstance(word.outcome, Happened)]
        return happened[-1] if happened else self._last(words)

    def _last(self, words: Sequence[_Word]) -> Outcome | None:
        """The newest word on an effect that nobody knows to have happened.

        A run that was told that it was not done may have tried it again since. Of one run the
        newest epoch counts, of several the clock.
        """
        known = [word for word in words if not is_elsewhere(word.outcome)] or words
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


def begun_elsewhere(call: Call, key: str, now: float) -> Declined:
    """That an effect is not this line's: if it is asked for, the ledger says what became of it."""
    return Declined(call, key, None, now, 0.0, ELSEWHERE)


def is_elsewhere(said: Outcome | None) -> bool:
    """Whether another line of history began the effect; this one has to look what became of it."""
    return isinstance(said, Declined) and said.how == ELSEWHERE
