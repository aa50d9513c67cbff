"""What went wrong in a run and how long that took to mend: episodes, read from its journal.

An episode starts with a failure and ends when the run has caught up, failed, or been settled by a
person; failures inside it belong to it. A run that waits for an answer or was cancelled is not
failing. A process that died without a word failed when it last gave a sign of life: its newest
record, or a later moment that the caller knows of.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

import msgspec

from holdfast.model.branches import Allowed, RolledBack
from holdfast.model.decision import Action
from holdfast.model.failure import FailureKind
from holdfast.model.ids import seq_of
from holdfast.model.journal import (
    Answer,
    Answered,
    Decided,
    Declined,
    Entry,
    Failed,
    Finished,
    Happened,
    Interrupted,
    Questioned,
    Redone,
    Resumed,
    Retried,
    Started,
    TurnEnded,
)
from holdfast.model.run import Status
from holdfast.store.reader import Placed, Reader, Run, first_row

NO_FAILURE = frozenset({Status.WAITING, Status.CANCELLED})
_KINDS = {
    Status.IN_DOUBT: FailureKind.IN_DOUBT,
    Status.DIVERGED: FailureKind.BUG,
    Status.BLOCKED: FailureKind.BUDGET,
}
PERSON = "person"
PARTS = ("detect", "wait", "restore", "replay", "redo")
"""What the time of an episode went into, in order."""
PROGRESS = (Answer, Happened, Answered, TurnEnded)
"""What shows that a run has come further."""
_BY_ITSELF = ("supervise: ", "watch: ")
"""How the recorded reason of a rollback begins that nobody asked for."""


class Ending(StrEnum):
    """How an episode ended."""

    RECOVERED = "recovered"
    """The run caught up, and nobody had to help."""
    PERSON = "person"
    """It caught up after a person had said or done something."""
    FAILED = "failed"
    """Nothing more is done by itself: the run failed, or waits for a person's help."""
    OPEN = "open"
    """Not caught up yet."""


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """One failure and its recovery, in seconds since the epoch.

    `resumed_at` is when the run was taken up for the last time, and None while it is down (again);
    `caught_up_at` when it had again what it had at the failure, with one record more that proves
    it, or waited for a person, or was cancelled. `action` is what the last
    decision was, `failures` how many failures belong to it. `redo_s` is the time that calls took
    which were made again or anew until then.
    """

    kind: FailureKind
    failed_at: float
    failures: int = 1
    action: Action | None = None
    decided_at: float | None = None
    wait_s: float = 0.0
    resumed_at: float | None = None
    caught_up_at: float | None = None
    redo_s: float = 0.0
    ending: Ending = Ending.OPEN

    def took_s(self, clock: str | None = None) -> float | None:
        """How long it took on a clock: `resume`, or `catch_up`; None while that is not known."""
        end = self.resumed_at if clock == "resume" else self.caught_up_at
        return None if end is None else max(0.0, end - self.failed_at)

    @property
    def parts(self) -> dict[str, float]:
        """Where the time of an ended episode went: detect, wait, restore, replay, redo."""
        if self.caught_up_at is None:
            return {}
        resumed = self.failed_at if self.resumed_at is None else self.resumed_at
        decided = resumed if self.decided_at is None else min(self.decided_at, resumed)
        wait_s = min(self.wait_s, max(0.0, resumed - decided))
        after_s = max(0.0, self.caught_up_at - resumed)
        redo_s = min(self.redo_s, after_s)
        return {
            "detect": max(0.0, decided - self.failed_at),
            "wait": wait_s,
            "restore": max(0.0, resumed - decided - wait_s),
            "replay": after_s - redo_s,
            "redo": redo_s,
        }


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of one branch in their order, and the point it grew from.

    `grown_from` is a row and how many entries of it count; None is the run's first branch.
    """

    grown_from: tuple[int, int] | None
    rows: list[Placed]


def lines_of(reader: Reader, run: Run) -> list[Line]:
    """All that a run recorded, on all of its branches, oldest branch first."""
    found = []
    for branch in reader.branches(run):
        rows = list(reader.rows(branch.no, first_row(branch), reader.end(branch.no)))
        grown = branch.grown_from if branch.parent and seq_of(branch.at) >= 0 else None
        found.append(Line(grown_from=grown, rows=rows))
    return found


def entries_of(lines: Iterable[Line]) -> Iterator[Entry]:
    """All entries of them, in their order."""
    for line in lines:
        for placed in line.rows:
            yield from placed.row.entries


def copied_in(placed: Placed) -> list[Entry]:
    """What stands in a row a second time: a turn run anew takes along what it keeps."""
    entries = placed.row.entries
    is_anew = any(isinstance(entry, Redone) for entry in entries)
    return [entry for entry in entries if not isinstance(entry, Redone)] if is_anew else []


def episodes(
    lines: Iterable[Line],
    *,
    is_held: bool = False,
    deaths: Mapping[int, float] | None = None,
    had: Mapping[int, int] | None = None,
) -> list[Episode]:
    """The episodes of a run, in their order.

    `is_held` says that a process works on the run now, so its newest life has not ended.
    `deaths` are moments at which lives (by epoch) are known to have died, `had` how far they had
    come, in answers and turns, where the rows that say so are lost.
    """
    reading = _Reading(deaths or {}, had or {})
    for line in lines:
        reading.grow(line.grown_from)
        for placed in line.rows:
            copies = set(map(id, copied_in(placed)))
            for index, entry in enumerate(placed.row.entries):
                (reading.keep if id(entry) in copies else reading.take)(entry)
                reading.mark(placed.id, index)
    return reading.end(is_held=is_held)


class _Reading:
    """One pass over a run's journal."""

    def __init__(self, deaths: Mapping[int, float], had: Mapping[int, int]) -> None:
        self._deaths, self._had = deaths, had
        self._found: list[Episode] = []
        self._now: Episode | None = None
        self._is_alive = self._is_helped = self._is_stuck = self._is_counted = False
        self._is_down = False
        self._epoch, self._last_at = 1, 0.0
        self._progress = self._lost = 0
        self._marks: dict[tuple[int, int], int] = {}

    def grow(self, point: tuple[int, int] | None) -> None:
        """A branch begins: what it keeps of the one before counts, the rest is to be done again."""
        if point is not None:
            row, kept = point
            known = [n for (at, index), n in self._marks.items() if at == row and index < kept]
            self._progress = max(known, default=0)

    def mark(self, row: int, index: int) -> None:
        self._marks[row, index] = self._progress

    def keep(self, entry: Entry) -> None:
        """A copy of an older entry: it is there again, and proves nothing new."""
        self._progress += isinstance(entry, PROGRESS)

    def take(self, entry: Entry) -> None:
        match entry:
            case Started():
                self._is_alive = True
            case Resumed():
                self._resumed(entry)
            case Retried():
                self._retried(entry)
            case Decided():
                self._decided(entry)
            case Failed():
                self._failed(entry)
            case Interrupted():
                self._is_alive = False
            case Answer() | Happened() | Answered() | TurnEnded() | Questioned():
                self._advance(entry)
            case Finished():
                self._caught_up(entry.at)
                self._is_alive = False
            case _:
                self._is_helped = self._is_helped or _is_help(entry)
        at = getattr(entry, "at", None)
        if isinstance(at, float):
            self._last_at = at

    def _resumed(self, entry: Resumed) -> None:
        if self._is_alive:  # The life before it ended without a word.
            died = self._deaths.get(self._epoch, self._last_at)
            self._fail(FailureKind.CRASH, died)
        is_life = entry.facts is not None
        # Nobody would have restarted by itself what was left to a person.
        self._is_helped = self._is_helped or (is_life and self._is_stuck)
        self._is_alive, self._is_stuck = is_life, self._is_stuck and not is_life
        self._epoch = entry.epoch
        if is_life:
            self._change(resumed_at=entry.at)
            self._is_down = False

    def _retried(self, entry: Retried) -> None:
        self._fail(entry.failure.kind, entry.at)
        self._decide(Action.RETRY, entry.at, entry.decision.wait_s)
        self._change(resumed_at=entry.at + entry.decision.wait_s)
        self._is_down = False

    def _failed(self, entry: Failed) -> None:
        self._is_alive = False
        if entry.status in NO_FAILURE:
            self._settle(entry)
            return
        if not self._is_counted:  # Else the life's own verdict told of it.
            self._fail(_KINDS.get(Status(entry.status), FailureKind.UNKNOWN), entry.at)
        self._is_counted = False
        self._is_stuck = self._is_stuck or entry.status != Status.FAILED

    def _settle(self, entry: Failed) -> None:
        """A run that waits for an answer or was cancelled is not failing any more."""
        if self._is_stuck:  # It was given up before.
            return
        self._is_helped = self._is_helped or entry.status == Status.CANCELLED
        if self._is_down:
            self._change(resumed_at=entry.at)
        self._caught_up(entry.at)

    def _decided(self, entry: Decided) -> None:
        self._is_counted = self._now is None
        self._fail(entry.failure.kind, entry.at, is_told=True)
        self._decide(entry.decision.action, entry.at, entry.decision.wait_s)
        if entry.decision.action in (Action.ESCALATE, Action.GIVE_UP):
            self._is_stuck = True

    def _fail(self, kind: FailureKind, at: float, *, is_told: bool = False) -> None:
        """A failure; a decision tells of one that may be known already, by its kind now."""
        self._is_down = True
        if self._now is None:
            self._now = Episode(kind=kind, failed_at=at)
            self._lost = max(self._progress, self._had.get(self._epoch, 0))
            self._is_helped = False
        elif is_told:
            vague = (FailureKind.CRASH, FailureKind.UNKNOWN)
            self._change(kind=kind if self._now.kind in vague else self._now.kind)
        else:
            self._change(failures=self._now.failures + 1, caught_up_at=None)
            self._lost = max(self._lost, self._progress)

    def _decide(self, action: Action, at: float, wait_s: float) -> None:
        if self._now is not None:
            self._change(action=action, decided_at=at, wait_s=self._now.wait_s + wait_s)

    def _advance(self, entry: Answer | Happened | Answered | TurnEnded | Questioned) -> None:
        is_asked = isinstance(entry, Questioned)  # No progress, but it proves what was there.
        self._progress += not is_asked
        self._is_helped = self._is_helped or _is_help(entry)
        if self._now is None:
            return
        if isinstance(entry, Answer | Happened):
            self._change(redo_s=self._now.redo_s + entry.took_s)
        if self._progress + is_asked > self._lost:
            self._caught_up(entry.at)

    def _caught_up(self, at: float) -> None:
        if self._now is not None:
            ending = Ending.PERSON if self._is_helped else Ending.RECOVERED
            self._change(caught_up_at=at, ending=ending)
            self._found.append(self._now)
            self._now = None

    def _change(self, **facts: object) -> None:
        if self._now is not None:
            self._now = msgspec.structs.replace(self._now, **facts)

    def end(self, *, is_held: bool) -> list[Episode]:
        if self._is_alive and not is_held:
            self._fail(FailureKind.CRASH, self._deaths.get(self._epoch, self._last_at))
        if self._now is not None:
            ending = Ending.FAILED if self._is_stuck else Ending.OPEN
            resumed_at = None if self._is_down else self._now.resumed_at
            self._change(ending=ending, resumed_at=resumed_at)
            self._found.append(self._now)
        return self._found


def _is_help(entry: Entry) -> bool:
    """Whether a person spoke or acted here."""
    match entry:
        case Happened() | Declined():
            return entry.how == PERSON
        case RolledBack():
            return not (entry.reason or "").startswith(_BY_ITSELF)
        case _:
            return isinstance(entry, Allowed)
