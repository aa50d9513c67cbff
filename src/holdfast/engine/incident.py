"""The incident of a run: what happened since it last made progress, read from its journal.

It is the point the run stands at, and how each life that began there ended. So "the same failure
twice from one point" is known to whoever looks, also after every process that saw it is gone.
"""

from collections.abc import Iterator
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from holdfast.engine.reading import Key, key_of
from holdfast.errors import Damaged
from holdfast.model.branches import Forked, RolledBack
from holdfast.model.decision import Action, Decision
from holdfast.model.failure import Failure, FailureKind
from holdfast.model.journal import (
    ENDED,
    Answer,
    Answered,
    Decided,
    Declined,
    Entry,
    Failed,
    Finished,
    Happened,
    Interrupted,
    Raised,
    Redone,
    Resumed,
    Saved,
    Spawned,
    Started,
    Streamed,
    TurnEnded,
)
from holdfast.model.run import Holder, Status
from holdfast.policy.classify import classify_name
from holdfast.store.reader import Reader
from holdfast.store.reader import Run as StoredRun

GONE = Failure(
    kind=FailureKind.CRASH,
    what="its process is gone",
    why="the run is unfinished and nobody holds it",
    sign="gone",
)
"""A life that ended without a word: all that the journal can say of a crash."""
_SILENT = frozenset({FailureKind.CRASH, FailureKind.TIMEOUT})


Life: TypeAlias = tuple[str, int]
"""The process that a life of a run was: its host and its number."""


class End(msgspec.Struct, frozen=True, kw_only=True):
    """How and when a life ended; its `sign` is None if a person called it off."""

    sign: str | None
    at: float
    life: Life | None


class Incident(msgspec.Struct, kw_only=True):
    """Where a run stands, and how its lives ended there without progress.

    `ends` are those, oldest first, without the one that is judged. `failure` is the recorded one
    of the newest life, if it recorded any. It `is_touched` when somebody has done something to the
    run since: what ended that life is no reason to do anything now.
    """

    turn: int = -1
    steps: int = 0
    ends: list[End] = msgspec.field(default_factory=list)
    began: float | None = None
    failure: Failure | None = None
    turn_s: float = 0.0
    is_touched: bool = False

    def repeats(self, failure: Failure) -> int:
        """How often this failure came from this point before."""
        is_silent = failure.kind in _SILENT
        signs = [end.sign for end in self.ends]
        return sum(sign == failure.sign or (is_silent and sign == GONE.sign) for sign in signs)


def incident_of(reader: Reader, run: StoredRun) -> Incident:
    """Read the incident up to the end that is judged: that of the newest life."""
    reading = _read(reader, run)
    found = reading.incident
    if found.ends:
        found.ends = found.ends[reading.over(set(_lives_below(reader, reading))) :]
    found.began = found.ends[0].at if found.ends else None
    if not reading.is_alive and found.ends:
        found.ends.pop()  # It was recorded; it does not count against itself.
    return found


def last_decision(reader: Reader, run: StoredRun) -> Decision | None:
    """What was decided about the end of a run as it was recorded, if that is its last word."""
    last = reader.row(reader.end(run.row.head))
    decided = [entry for entry in last.row.entries if isinstance(entry, Decided)]
    if not decided:
        # A run's own decision rides along with its end, and may have been committed before it.
        before = reader.before(run.row.head, last.id).row.entries
        decided = [entry for entry in before if isinstance(entry, Decided) and entry.by == "run"]
    return decided[-1].decision if decided else None


def goes_on(reader: Reader, run: StoredRun) -> bool:
    """Whether a failed run is to go on by itself, and whoever was to see to it is gone."""
    if run.body.status is not Status.FAILED:
        return False
    decided = last_decision(reader, run)
    return decided is not None and decided.action in (Action.RESTART, Action.ROLLBACK)


def _read(reader: Reader, run: StoredRun) -> "_Reading":
    history, reading = reader.history(run), _Reading()
    for placed in history.outside:
        for entry in placed.row.entries:
            reading.note_child(entry)
    for placed in history.rows:
        for entry in placed.row.entries:
            reading.take(entry)
            reading.note_child(entry)
    if reading.life is None:  # It began before its newest base.
        reading.life = reading.progressed = _life_of(run.body.holder)
    return reading


def _lives_below(reader: Reader, reading: "_Reading") -> Iterator[Life]:
    """The lives in which children that are not over got on, each for the last time."""
    for id_ in reading.children.values():
        child = reader.find(id_)
        if child is not None:
            try:
                below = _read(reader, child)
            except Damaged:
                continue  # Whoever goes on with it is told so.
            if below.progressed is not None:
                yield below.progressed
            yield from _lives_below(reader, below)


def _life_of(holder: Holder) -> Life:
    return holder.host, holder.pid


class _Reading:
    """One pass over a journal.

    `progressed` is the life in which the run got on last, `children` are those that are not over.
    """

    def __init__(self) -> None:
        self.incident = Incident()
        self.is_alive = False
        self.life: Life | None = None
        self.progressed: Life | None = None
        self.children: dict[Key, str] = {}
        self._turn_at: float | None = None
        self._decided: Failure | None = None

    def over(self, below: set[Life]) -> int:
        """How many ends are over, since children got on in these lives: what they do counts."""
        first: dict[Life | None, int] = {}
        for nth, end in enumerate(self.incident.ends):
            first.setdefault(end.life, nth)  # Numbers of processes come again: as few as possible.
        if self.is_alive:
            first.setdefault(self.life, len(self.incident.ends))
        return max((first.get(life, 0) for life in below), default=0)

    def note_child(self, entry: Entry) -> None:
        """Children, as they begin and end."""
        if isinstance(entry, Spawned):
            self.children[key_of(entry.call)] = entry.id
        elif isinstance(entry, Answer | Raised):
            self.children.pop(key_of(entry.call), None)

    def take(self, entry: Entry) -> None:
        match entry:
            case Started() | Resumed():
                self._begin(entry)
            case Forked():
                self.is_alive, self.incident.is_touched = False, True
                self._progress(entry)
            case (
                Answer()
                | Answered()
                | Happened()
                | TurnEnded()
                | Saved()
                | Redone()
                | RolledBack()
                | Streamed()
            ):
                self._progress(entry)
            case Declined() if entry.how == "person":
                self._progress(entry)
            case Decided():
                self._judged(entry)
            case Failed() if entry.status in (Status.WAITING, Status.CANCELLED):
                self._end(None, entry.at)
            case Failed():
                error = entry.error
                known = self._decided or classify_name(error.module, error.name, error.message)
                self._end(known.sign, entry.at, known)
            case Interrupted():
                self._end(None, entry.at)
            case Finished():
                self.is_alive = False
            case _:
                pass

    def _begin(self, entry: Started | Resumed) -> None:
        """A life begins, or somebody does something to the run: that brings no facts."""
        if self.is_alive:
            self._end(GONE.sign, entry.at)
        is_life = isinstance(entry, Started) or entry.facts is not None
        self.is_alive, self._decided, self.incident.failure = is_life, None, None
        self.incident.is_touched = not is_life
        self.life = _life_of(entry.holder)
        self._turn_at = entry.at

    def _judged(self, entry: Decided) -> None:
        """A life's own verdict comes before its end, a supervisor's after the next one began."""
        found = self.incident
        is_last = entry.decision.action in (Action.ESCALATE, Action.GIVE_UP)
        self._decided = entry.failure if entry.by == "run" or is_last else None
        if entry.by != "run" and found.ends and found.ends[-1].sign == GONE.sign:
            found.ends[-1] = replace(found.ends[-1], sign=entry.failure.sign)

    def _end(self, sign: str | None, at: float, failure: Failure | None = None) -> None:
        self.is_alive = False
        self.incident.ends.append(End(sign=sign, at=at, life=self.life))
        self.incident.failure = failure

    def _progress(self, entry: Entry) -> None:
        found = self.incident
        found.ends, found.failure, self.progressed = [], None, self.life
        if isinstance(entry, TurnEnded):
            if self._turn_at is not None:
                found.turn_s = max(0.0, entry.at - self._turn_at)
            self._turn_at = entry.at
            found.turn, found.steps = entry.turn + 1, entry.steps
        elif isinstance(entry, RolledBack | Forked):
            found.turn = entry.turn + 1
        elif isinstance(entry, Answer | Happened):
            found.steps += 1
        elif isinstance(entry, Streamed):
            found.steps += entry.how == ENDED
