"""What is decided about a run that failed: its incident, read from the journal, and the verdict.

An incident is what happened since the run last made progress: the point it stands at, and how each
life that began there ended. So "the same failure twice from one point" is known to whoever looks,
also after every process that saw it is gone.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from holdfast.clock import Clock
from holdfast.engine.care import Care
from holdfast.engine.history import seen_in
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.branches import RolledBack
from holdfast.model.decision import Action, Decision
from holdfast.model.failure import Ended, Failure, FailureKind
from holdfast.model.ids import point_id
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
    Kept,
    Raised,
    Redone,
    Resumed,
    Saved,
    Started,
    Streamed,
    TurnEnded,
)
from holdfast.model.run import Status
from holdfast.policy.classify import classify, classify_name
from holdfast.policy.decide import Place, Situation, decide
from holdfast.store.reader import Placed, Reader
from holdfast.store.reader import Run as StoredRun

GONE = Failure(
    kind=FailureKind.CRASH,
    what="its process is gone",
    why="the run is unfinished and nobody holds it",
    sign="gone",
)
"""A life that ended without a word: all that the journal can say of a crash."""
_SILENT = frozenset({FailureKind.CRASH, FailureKind.TIMEOUT})


Standing: TypeAlias = Callable[[StoredRun, str], int]
"""How many effects after a point could not be taken back by a rollback to it."""


def _unknown(_run: StoredRun, _point: str) -> int:
    return 1


Supposed: TypeAlias = BaseException | Ended | Failure | FailureKind | str | None
"""What a caller may ask about: a failure, or something it can be read from."""


def supposed(what: Supposed, care: Care, now: float) -> Failure | None:
    """The failure somebody asks about."""
    match what:
        case None | Failure():
            return what
        case str():
            try:
                kind = FailureKind(what)
            except ValueError:
                kinds = ", ".join(FailureKind)
                raise UsageError(f"{what!r} is no kind of failure; those are {kinds}") from None
            return Failure(
                kind=kind, what=f"supposed: {kind}", why="asked for", sign=f"supposed {kind}"
            )
        case BaseException() | Ended():
            return classify(what, rules=care.rules, now=now)
        case _:
            msg = f"a failure is an exception, holdfast.Ended(...) or a kind, not {what!r:.80}"
            raise UsageError(msg)


class Incident(msgspec.Struct, kw_only=True):
    """Where a run stands, and how its lives ended there without progress.

    `signs` are those ends, oldest first; None is one that was called off by a person. `failure`
    is the recorded one of the newest life, if it recorded any.
    """

    turn: int = -1
    steps: int = 0
    signs: list[str | None] = msgspec.field(default_factory=list)
    began: float | None = None
    failure: Failure | None = None
    turn_s: float = 0.0

    def repeats(self, failure: Failure) -> int:
        """How often this failure came from this point before."""
        is_silent = failure.kind in _SILENT
        return sum(sign == failure.sign or (is_silent and sign == GONE.sign) for sign in self.signs)


def incident_of(rows: Iterable[Placed]) -> Incident:
    """Read the incident up to the end that is judged: that of the newest life."""
    reading = _Reading()
    for placed in rows:
        for entry in placed.row.entries:
            reading.take(entry)
    found = reading.incident
    if not reading.is_alive and found.signs:
        found.signs.pop()  # It was recorded; it does not count against itself.
    return found


class _Reading:
    """One pass over a journal."""

    def __init__(self) -> None:
        self.incident = Incident()
        self.is_alive = False
        self._turn_at: float | None = None
        self._decided: Failure | None = None

    def take(self, entry: Entry) -> None:
        match entry:
            case Started() | Resumed():
                if self.is_alive:
                    self._end(GONE.sign, entry.at)
                is_life = isinstance(entry, Started) or entry.facts is not None
                self.is_alive, self._decided, self.incident.failure = is_life, None, None
                self._turn_at = entry.at
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

    def _judged(self, entry: Decided) -> None:
        """A life's own verdict comes before its end, a supervisor's after the next one began."""
        found = self.incident
        is_last = entry.decision.action in (Action.ESCALATE, Action.GIVE_UP)
        self._decided = entry.failure if entry.by == "run" or is_last else None
        if entry.by != "run" and found.signs and found.signs[-1] == GONE.sign:
            found.signs[-1] = entry.failure.sign

    def _end(self, sign: str | None, at: float, failure: Failure | None = None) -> None:
        found = self.incident
        self.is_alive = False
        found.signs.append(sign)
        found.failure = failure
        found.began = at if found.began is None else found.began

    def _progress(self, entry: Entry) -> None:
        found = self.incident
        found.signs, found.began, found.failure = [], None, None
        if isinstance(entry, TurnEnded):
            if self._turn_at is not None:
                found.turn_s = max(0.0, entry.at - self._turn_at)
            self._turn_at = entry.at
            found.turn, found.steps = entry.turn + 1, entry.steps
        elif isinstance(entry, RolledBack):
            found.turn = entry.turn + 1
        elif isinstance(entry, Answer | Happened):
            found.steps += 1
        elif isinstance(entry, Streamed):
            found.steps += entry.how == ENDED


class Judge:
    """Decides for the runs of one store; reads, and writes nothing."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock
        self.standing: Standing = _unknown

    def verdict(
        self,
        run: StoredRun,
        failure: Failure | None,
        care: Care,
        *,
        otherwise: Failure = GONE,
        is_held: bool = False,
    ) -> tuple[Incident, Failure, Decision]:
        """What to do about `failure`, or about what the journal says of the newest life's end.

        `otherwise` is what was seen from outside, of a life that ended without a word.
        """
        found = incident_of(self._reader.history(run).rows)
        known = failure or found.failure or otherwise
        situation = self._situation(run, found, known, care, is_held=is_held)
        return found, known, decide(known, situation, care.sla)

    def _situation(
        self, run: StoredRun, found: Incident, failure: Failure, care: Care, *, is_held: bool
    ) -> Situation:
        now = self._clock.now()
        repeats = found.repeats(failure)
        is_back = repeats > 0 or failure.kind in (FailureKind.CORRUPTION, FailureKind.INVALID)
        rows = self._whole(run) if is_back else []
        newest, further = self._places(run, rows)
        return Situation(
            elapsed_s=0.0 if found.began is None else max(0.0, now - found.began),
            age_s=max(0.0, now - run.body.created),
            repeats=repeats,
            recoveries=len(found.signs),
            rollbacks=_rollbacks(rows, failure),
            spent_usd=0.0 if care.sla is None else (care.sla.turn_usd or 0.0) * len(found.signs),
            is_held=is_held,
            verified=newest,
            earlier=further,
            turn_s=found.turn_s,
            seen=seen_in(self._reader, run, is_wide=care.sla is not None),
            chance=care.chance.random(),
        )

    def _places(self, run: StoredRun, rows: Sequence[Placed]) -> tuple[Place | None, Place | None]:
        """The newest checkpoint that can be gone back to, and the newest that drops something."""
        newest: Place | None = None
        for spot in _spots(run, rows):
            try:
                standing = self.standing(run, spot.point)
            except HoldfastError:
                continue  # It is damaged or was removed: the one before it, then.
            place = Place(point=spot.point, turns_lost=spot.turns, standing=standing)
            newest = newest or place
            if spot.answers:
                return newest, place
        return newest, None

    def _whole(self, run: StoredRun) -> list[Placed]:
        head = run.row.head
        return list(self._reader.rows(head, self._reader.first(head), self._reader.end(head)))


class _Spot(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint of a run's line: its name, the turns after it, and the answers after it."""

    point: str
    turns: int
    answers: int


def _spots(run: StoredRun, rows: Sequence[Placed]) -> list[_Spot]:
    """The checkpoints of the run's line, newest first; reading them has verified their bytes."""
    spots: list[_Spot] = []
    answers = turns = 0
    for placed in reversed(rows):
        for index, entry in reversed(list(enumerate(placed.row.entries))):
            answers += isinstance(entry, Answer | Happened | Raised)
            if isinstance(entry, TurnEnded | Saved | Kept) and entry.mark is not None:
                point = point_id(run.body.id, (placed.id, index))
                spots.append(_Spot(point=point, turns=turns, answers=answers))
            turns += isinstance(entry, TurnEnded)
    return spots


def rollback_reason(by: str, failure: Failure) -> str:
    """What is recorded as the reason of a rollback for a failure; it is counted by that."""
    return f"{by}: {failure.sign}"


def _rollbacks(rows: Iterable[Placed], failure: Failure) -> int:
    """How often the run was rolled back for this failure, ever."""
    reasons = {rollback_reason(by, failure) for by in ("supervise", "watch")}
    return sum(
        isinstance(entry, RolledBack) and entry.reason in reasons
        for placed in rows
        for entry in placed.row.entries
    )
