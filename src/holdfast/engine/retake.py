"""Undos that failed, tried again: under the run's lease, recorded, resumable; the run stays as is.

While it goes on the run is `rolling back`, so nobody works on it; afterwards it stands as it stood
before, and how it had ended is again the last word of its journal.
"""

from msgspec.structs import replace

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.engine.hold import Holds
from holdfast.engine.launch import Launcher
from holdfast.engine.losses import named
from holdfast.engine.takeback import TakeBack
from holdfast.engine.unsettled import last_word, unsettled, why_left
from holdfast.errors import RollbackUnfinished, UsageError
from holdfast.model.branches import Retaken, Retaking, RolledBack, Undoing
from holdfast.model.journal import Entry, Failed, Finished, Resumed, Undone
from holdfast.model.rollback import Take, Taken
from holdfast.model.run import Status
from holdfast.store.marks import marks_of
from holdfast.store.open import Opened
from holdfast.store.reader import Reader, Run
from holdfast.store.writer import RunWriter, take_up


class Retakes:
    """Tries again what rollbacks of one store could not take back."""

    def __init__(self, opened: Opened, launcher: Launcher, clock: Clock, holds: Holds) -> None:
        self._opened, self._launcher, self._clock = opened, launcher, clock
        self._reader, self._holds = opened.reader, holds

    def left(self, run: Run) -> list[Taken]:
        """What is left, and why."""
        return [
            replace(each.taken, why=why_left(self._reader, run, each.taken))
            for each in unsettled(self._reader, run)
        ]

    def retry(self, run: Run, key: str | None = None, *, is_by_hand: bool = False) -> list[Taken]:
        """Try again to take back what is left, or the effect with this key.

        `is_by_hand`: a person has done it, and that is recorded.
        """
        with self._holds.hold(run) as present:
            if present.body.status is Status.ROLLING_BACK:
                raise RollbackUnfinished(run.body.id)
            lost = [
                each
                for each in unsettled(self._reader, present)
                if key is None or each.taken.key.startswith(key)
            ]
            if key is not None and len(lost) != 1:
                msg = f"no effect of run {run.body.id} is left to be undone by key {key!r}"
                raise UsageError(msg)
            if not lost:
                return []
            before, takes = present.body, [each.take for each in lost]
            entry = Retaking(
                self._clock.now(), takes, str(before.status), before.ended, before.error, is_by_hand
            )
            return self._go_on(self._begin(present, entry), entry, {})

    def is_cut(self, run: Run) -> bool:
        """Whether it was this that a kill cut off, of a run that is rolling back."""
        return isinstance(self._newest(run)[0], Retaking)

    def rest(self, run: Run) -> list[Taken]:
        """What was to be tried again when it was cut off."""
        entry, _, over = self._newest(run)
        assert isinstance(entry, Retaking)
        return [_told(self._reader, take, over.get(take.key)) for take in entry.takes]

    def resume(self, run: Run) -> list[Taken]:
        """Go on with what was cut off."""
        with self._holds.hold(run) as present:
            entry, begun, over = self._newest(present)
            assert isinstance(entry, Retaking)
            status = Status.ROLLING_BACK
            writer = self._launcher.take(present, present.body.version, status=status)
            return self._go_on(writer, entry, over, begun)

    def _begin(self, run: Run, entry: Retaking) -> RunWriter:
        holder, now = self._launcher.holder(), self._clock.now()
        body = replace(run.body, holder=holder, status=Status.ROLLING_BACK, ended=None, error=None)
        return take_up(
            self._opened.committer,
            self._reader.seals,
            self._reader.history(run),
            self._opened.records.tail(run.row.head),
            body=body,
            entry=Resumed(now, run.row.epoch + 1, holder, run.body.version),
            more=[entry],
        )

    def _go_on(
        self,
        writer: RunWriter,
        entry: Retaking,
        over: dict[str, Undone],
        begun: frozenset[str] = frozenset(),
    ) -> list[Taken]:
        taker = TakeBack(self._reader, self._clock, writer)
        for take in entry.takes:
            if take.key in over:
                continue
            if entry.is_by_hand:
                over[take.key] = self._by_hand(writer, take)
                continue
            said = last_word(self._reader, writer.run, take.key)
            was_cut = take.key in begun or (said is not None and said.how == "unknown")
            over[take.key] = taker.carry_out(take, was_cut=was_cut, over=over)
        self._settle(writer, entry)
        return [_told(self._reader, take, over[take.key]) for take in entry.takes]

    def _by_hand(self, writer: RunWriter, take: Take) -> Undone:
        entry = Undone(take.key, "undone", self._clock.now(), 0.0, None)
        _, ticket = writer.submit([entry], intents=tuple(marks_of(entry)))
        failpoint.reach("retake.saying")
        writer.finish(ticket)
        failpoint.reach("retake.said")
        return entry

    def _settle(self, writer: RunWriter, entry: Retaking) -> None:
        """It is over: the run stands as it stood, and its journal ends as it ended."""
        status = Status(entry.status)
        entries: list[Entry] = [Retaken(self._clock.now())]
        if status is not Status.RUNNING:
            entries.append(self._end(writer.run))
        left = len(unsettled(self._reader, writer.run))
        body = replace(
            writer.run.body, status=status, ended=entry.ended, error=entry.error, undos_left=left
        )
        _, ticket = writer.submit(entries, body=body)
        failpoint.reach("retake.settling")
        writer.finish(ticket)
        failpoint.reach("retake.settled")

    def _end(self, run: Run) -> Entry:
        """How the run had ended; its change of the state stands before."""
        for placed in self._reader.back(run.row.head):
            for entry in reversed(placed.row.entries):
                if isinstance(entry, Finished):
                    return replace(entry, delta=None)
                if isinstance(entry, Failed):
                    return entry
        msg = f"the journal of run {run.body.id} does not say how it ended"
        raise UsageError(msg)

    def _newest(
        self, run: Run
    ) -> tuple[RolledBack | Retaking | None, frozenset[str], dict[str, Undone]]:
        """What is under way, the keys that were begun since, and what came of others."""
        begun: set[str] = set()
        over: dict[str, Undone] = {}
        for placed in self._reader.back(run.row.head):
            for entry in reversed(placed.row.entries):
                if isinstance(entry, RolledBack | Retaking):
                    return entry, frozenset(begun), over
                if isinstance(entry, Undoing):
                    begun.add(entry.key)
                elif isinstance(entry, Undone):
                    over.setdefault(entry.key, entry)
        return None, frozenset(begun), over


def _told(reader: Reader, take: Take, entry: Undone | None) -> Taken:
    told = named(reader, take)
    if entry is None:
        return told
    why = "" if entry.error is None else f"{entry.error.name}: {entry.error.message}"
    return replace(told, how=entry.how, why=why)
