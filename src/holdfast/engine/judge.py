"""What is decided about a run that failed: its incident, the situation, and the verdict."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from holdfast.clock import Clock
from holdfast.engine.care import Care
from holdfast.engine.history import seen_in
from holdfast.engine.incident import GONE, Incident, incident_of
from holdfast.errors import Damaged, HoldfastError, UsageError
from holdfast.model.branches import RolledBack
from holdfast.model.decision import Decision
from holdfast.model.failure import Ended, Failure, FailureKind
from holdfast.model.ids import point_id
from holdfast.model.journal import (
    Answer,
    Decided,
    Happened,
    Kept,
    Raised,
    Saved,
    TurnEnded,
)
from holdfast.model.limits import SLA
from holdfast.policy.classify import classify
from holdfast.policy.decide import Place, Situation, decide
from holdfast.store.reader import Placed, Reader, first_row
from holdfast.store.reader import Run as StoredRun

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
        found = incident_of(self._reader, run)
        known = failure or found.failure or otherwise
        situation = self._situation(run, found, known, care, is_held=is_held)
        return found, known, decide(known, situation, care.sla)

    def is_touched(self, run: StoredRun) -> bool:
        """Whether somebody has done something to the run since its newest life ended.

        A doubt was settled, say, or the run rolled back: it goes on, and nothing new failed.
        """
        return incident_of(self._reader, run).is_touched

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
            recoveries=len(found.ends),
            rollbacks=_rollbacks(rows, failure),
            spent_usd=self._spent_usd(run, care.sla, len(found.ends)),
            is_held=is_held,
            verified=newest,
            earlier=further,
            turn_s=found.turn_s,
            seen=seen_in(self._reader, run, is_wide=care.sla is not None),
            chance=care.chance.random(),
        )

    def _spent_usd(self, run: StoredRun, sla: SLA | None, ends: int) -> float:
        """What recoveries of the run have cost so far, on all of its branches.

        That is what supervisors did; from this point, each life that was begun again, by whomever.
        """
        if sla is None or sla.turn_usd is None:
            return 0.0
        done = () if sla.recovery_budget is None else self._recoveries(run)
        paid_usd = math.fsum(each.decision.cost_usd or 0.0 for each in done)
        return max(paid_usd, sla.turn_usd * ends)

    def _recoveries(self, run: StoredRun) -> Iterator[Decided]:
        """What was decided and carried out; a run's own decision is only what it would do."""
        for branch in self._reader.branches(run):
            rows = self._reader.rows(branch.no, first_row(branch), self._reader.end(branch.no))
            with contextlib.suppress(Damaged):  # What cannot be read is not counted.
                for entry in (entry for placed in rows for entry in placed.row.entries):
                    if isinstance(entry, Decided) and entry.by != "run":
                        yield entry

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
