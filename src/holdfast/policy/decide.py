"""(failure, situation, SLA) → decision: a pure function that always has an answer.

Two tables and five limits. The kind of the failure says which actions are allowed, in which order;
the first that passes every limit is taken. A limit whose inputs were not given is off, and the
decision says so. When nothing passes, a person is asked: nothing here loops.
"""

from collections.abc import Iterator, Mapping

import msgspec

from holdfast.model.decision import Action, Decision
from holdfast.model.failure import Failure, FailureKind
from holdfast.model.limits import SLA, Retry, dollars, seconds
from holdfast.policy.estimate import Odds, Seen, odds

RECOVERIES_MAX = 5
"""Restarts and rollbacks from one point without progress, whatever the failures were."""
RESTART_BASE_S, RESTART_CAP_S = 0.5, 60.0
_HOUR_S = 3600.0
_TOLD_TO_STOP = frozenset(
    {"signal SIGTERM", "signal SIGINT", "signal SIGHUP", "exit 130", "exit 143"}
)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint that verifies, and how many turns going back there drops.

    `standing` are effects after it that cannot be undone.
    """

    point: str
    turns_lost: int
    standing: int = 0


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when a failure is judged; the default is a failure that is the first of all.

    `retry` is what was declared for the call that failed, `attempt` how often it was called so
    far; both only where the call may be repeated. `repeats` counts earlier failures with the same
    sign from the same point, `recoveries` all restarts and rollbacks from this point, `rollbacks`
    those of the run for this failure. `chance` is drawn from 0 to 1, for the jitter.
    """

    retry: Retry | None = None
    attempt: int = 1
    elapsed_s: float = 0.0
    age_s: float = 0.0
    repeats: int = 0
    recoveries: int = 0
    rollbacks: int = 0
    spent_usd: float = 0.0
    is_held: bool = False
    verified: Place | None = None
    earlier: Place | None = None
    turn_s: float = 0.0
    seen: Mapping[Action, Seen] = msgspec.field(default_factory=dict)
    chance: float = 1.0


def decide(failure: Failure, situation: Situation, sla: SLA | None = None) -> Decision:
    """What to do about a failure; `Escalate` where nothing else is allowed or worth it."""
    sla = sla or SLA()
    if situation.is_held:
        reason = "another process works on the run; it is left alone"
        return Decision(action=Action.ESCALATE, reason=reason)
    limits = _Limits(situation, sla)
    refused: list[str] = []
    for option in _options(failure, situation):
        judged = limits.judge(option)
        if isinstance(judged, Decision):
            return judged
        refused.append(f"{option.action} not: {judged}")
    cause = _why_none(failure, situation)
    if refused:
        action = Action.GIVE_UP if sla.on_exhausted == "fail" else Action.ESCALATE
        reason = "; ".join([cause, *refused] if cause else refused)
        return Decision(action=action, reason=reason, stake_usd=limits.stake_usd, off=limits.off)
    stake_usd = limits.stake_usd
    return Decision(action=Action.ESCALATE, reason=cause, stake_usd=stake_usd, off=limits.off)


def backoff_s(nth: int, base_s: float, cap_s: float, chance: float) -> float:
    """The wait before the `nth` repetition: full jitter, from nothing up to a doubling bound."""
    exponent = min(max(nth - 1, 0), 62)
    return chance * min(cap_s, base_s * 2.0**exponent)


class _Option(msgspec.Struct, frozen=True, kw_only=True):
    """An action that the failure's kind allows; a server asked for `asked_s` of the wait."""

    action: Action
    reason: str
    wait_s: float = 0.0
    asked_s: float = 0.0
    place: Place | None = None


def _options(failure: Failure, at: Situation) -> Iterator[_Option]:
    """The allowed actions, the cheapest first."""
    kind = FailureKind.POISON if _is_poison(failure, at) else failure.kind
    match kind:
        case FailureKind.TRANSIENT:
            yield from _retry(failure, at, "it passes by itself")
            yield _restart(failure, at, "it passes by itself")
        case FailureKind.TIMEOUT:
            yield from _retry(failure, at, "it took too long")
            yield _restart(failure, at, "it took too long")
        case FailureKind.CRASH:
            yield from _retry(failure, at, "declared to be retried")
            yield _restart(failure, at, "the process is gone, what it recorded is not")
        case FailureKind.CORRUPTION | FailureKind.INVALID:
            yield from _rollback(at.verified if at.rollbacks == 0 else at.earlier, at, kind)
        case FailureKind.POISON:
            yield from _rollback(at.earlier, at, kind)
        case FailureKind.BUG | FailureKind.UNKNOWN | FailureKind.PARTIAL | FailureKind.BUDGET:
            yield from _retry(failure, at, "declared to be retried")
        case FailureKind.IN_DOUBT:
            return


def _is_poison(failure: Failure, at: Situation) -> bool:
    """Whether the same failure came again from the same point.

    What passes by itself, or was called off from outside, says nothing about the point; the
    number of recoveries bounds it.
    """
    if failure.kind is FailureKind.POISON:
        return True
    is_exempt = failure.kind is FailureKind.TRANSIENT or failure.sign in _TOLD_TO_STOP
    return at.repeats > 0 and at.retry is None and not is_exempt


def _retry(failure: Failure, at: Situation, why: str) -> Iterator[_Option]:
    """The same call again, where that was declared and attempts are left."""
    retry = at.retry
    if retry is None or at.attempt >= retry.attempts:
        return
    cap_s = seconds(retry.cap)
    asked_s = failure.retry_after_s or 0.0
    if asked_s > cap_s:
        return  # The other side wants to be left alone for longer than a call may wait.
    wait_s = max(asked_s, backoff_s(at.attempt, seconds(retry.base), cap_s, at.chance))
    reason = f"{why}: attempt {at.attempt + 1} of {retry.attempts}"
    yield _Option(action=Action.RETRY, reason=reason, wait_s=wait_s)


def _restart(failure: Failure, at: Situation, why: str) -> _Option:
    """The newest point again; at once the first time, then ever later."""
    wait_s = backoff_s(at.recoveries, RESTART_BASE_S, RESTART_CAP_S, at.chance)
    asked_s = failure.retry_after_s or 0.0
    wait_s = max(asked_s, wait_s if at.recoveries else 0.0)
    reason = f"{why}: from the newest point"
    return _Option(action=Action.RESTART, reason=reason, wait_s=wait_s, asked_s=asked_s)


def _rollback(place: Place | None, at: Situation, kind: FailureKind) -> Iterator[_Option]:
    """An older checkpoint, once or twice; then a person."""
    most = 1 if kind is FailureKind.POISON else 2
    if place is not None and place.standing == 0 and at.rollbacks < most:
        reason = f"{kind}: back to the checkpoint before it"
        yield _Option(action=Action.ROLLBACK, reason=reason, place=place)


def _why_none(failure: Failure, at: Situation) -> str:
    """Why the kind of the failure allows nothing (more)."""
    if failure.kind is FailureKind.UNKNOWN and not _is_poison(failure, at):
        return f"no rule knows it ({failure.why}); a person decides, or a rule of yours"
    if _is_poison(failure, at):
        return _why_not_back("the same failure came twice from one point", at.earlier, at)
    if failure.kind in (FailureKind.CORRUPTION, FailureKind.INVALID):
        return _why_not_back(failure.kind, at.earlier if at.rollbacks else at.verified, at)
    return WHY_NONE.get(failure.kind, "")


WHY_NONE: dict[FailureKind, str] = {
    FailureKind.BUG: "a mistake in the program; restart after a fix (--redo-turn if code differs)",
    FailureKind.IN_DOUBT: "an effect may or may not have happened; only a person can tell",
    FailureKind.PARTIAL: "a part was done and another was not; a person decides",
    FailureKind.BUDGET: "something is used up that a person has to grant",
}
"""Why a kind of failure is a person's to decide."""


def _why_not_back(word: str, place: Place | None, at: Situation) -> str:
    if at.rollbacks:
        return f"{word}, also after a rollback; a person decides"
    if place is None:
        return f"{word}, and there is no older checkpoint to go back to; a person decides"
    if place.standing:
        effects = "1 effect" if place.standing == 1 else f"{place.standing} effects"
        return f"{word}, and {effects} after the checkpoint cannot be undone"
    return word


class _Limits:
    """The rules every action has to pass; those without inputs are off."""

    def __init__(self, at: Situation, sla: SLA) -> None:
        self._at, self._sla = at, sla
        self._recovery_s = _seconds(sla.max_recovery)
        self._deadline_s = _seconds(sla.deadline)
        self._budget_usd = _usd(sla.recovery_budget)
        self.stake_usd = _stake_usd(sla)
        self._down_s = _down_s(sla, at)
        self.off = list(self._off())

    def _off(self) -> Iterator[str]:
        if self._recovery_s is None:
            yield "time to recover: SLA(max_recovery=) is not given"
        if self._deadline_s is None:
            yield "deadline: SLA(deadline=) is not given"
        if self._sla.availability is None:
            yield "availability: SLA(availability=) is not given"
        given = {"recovery_budget=": self._budget_usd, "turn_usd=": self._sla.turn_usd}
        if missing := ", ".join(name for name, value in given.items() if value is None):
            yield f"budget: SLA({missing}) is not given"
        stakes = "task_usd=, or breach_usd_per_hour= with person="
        given = {"turn_usd=": self._sla.turn_usd, stakes: self.stake_usd}
        if missing := " and ".join(name for name, value in given.items() if value is None):
            yield f"worth: SLA({missing}) is not given"
        if self._sla.overhead_cap is not None:
            yield "overhead_cap: it bounds what saving costs; a recovery is judged by its worth"

    def judge(self, option: _Option) -> Decision | str:
        """The decision to take `option`, or why it is refused."""
        at, expected = self._at, odds(option.action, self._at.seen)
        cost_usd = self._cost_usd(option)
        wait_s = self._wait_s(option, expected)
        time_s = wait_s + expected.time_s
        if self._sla.clock == "catch_up" and option.place is not None:
            time_s += option.place.turns_lost * at.turn_s
        is_in_place = option.action is Action.RETRY
        if not is_in_place and at.recoveries >= RECOVERIES_MAX:
            return f"{at.recoveries} recoveries from this point brought no progress"
        why = self._too_late(time_s, wait_s) or self._too_dear(cost_usd, expected)
        if why is not None:
            return why
        return Decision(
            action=option.action,
            reason=option.reason,
            wait_s=wait_s,
            to=None if option.place is None else option.place.point,
            turns_lost=0 if option.place is None else option.place.turns_lost,
            time_s=time_s,
            p_success=expected.p_success,
            cost_usd=cost_usd,
            stake_usd=self.stake_usd,
            off=self.off,
            down_left_s=None if self._down_s is None else self._down_s - at.elapsed_s - time_s,
        )

    def _wait_s(self, option: _Option, expected: Odds) -> float:
        """The wait, cut to what the promised availability leaves of it; the rest is not ours.

        A call that is asked again in place waits for the sake of whom it asks.
        """
        if self._down_s is None or option.action is Action.RETRY:
            return option.wait_s
        left_s = self._down_s - self._at.elapsed_s - expected.time_s
        return max(option.asked_s, min(option.wait_s, max(0.0, left_s)))

    def _cost_usd(self, option: _Option) -> float | None:
        """What is paid again: the turn that is redone, and those that a rollback drops."""
        if self._sla.turn_usd is None:
            return None
        lost = 0 if option.place is None else option.place.turns_lost
        return self._sla.turn_usd * (1 + lost)

    def _too_late(self, time_s: float, wait_s: float) -> str | None:
        at = self._at
        if self._deadline_s is not None and at.age_s + max(wait_s, time_s) > self._deadline_s:
            left = max(0.0, self._deadline_s - at.age_s)
            return f"it takes {time_s:.1f} s and the deadline is in {left:.1f} s"
        if self._recovery_s is not None and at.elapsed_s + time_s > self._recovery_s:
            took = f"{at.elapsed_s:.1f} s passed since the failure and it takes {time_s:.1f} s"
            return f"{took}: more than max_recovery, {self._recovery_s:.1f} s"
        return None

    def _too_dear(self, cost_usd: float | None, expected: Odds) -> str | None:
        if cost_usd is None:
            return None
        spent_usd = self._at.spent_usd
        if self._budget_usd is not None and spent_usd + cost_usd > self._budget_usd:
            spent = f"${spent_usd:.2f} of ${self._budget_usd:.2f} is spent on recoveries"
            return f"{spent} and it costs ${cost_usd:.2f}"
        if self.stake_usd is not None and cost_usd >= expected.p_success * self.stake_usd:
            worth = f"{expected.p_success:.0%} of ${self.stake_usd:.2f}"
            return f"it costs ${cost_usd:.2f} and is worth {worth}"
        return None


def _stake_usd(sla: SLA) -> float | None:
    """What is lost if nothing is done: the task, and the hours until a person comes."""
    stakes = []
    if sla.task_usd is not None:
        stakes.append(sla.task_usd)
    if sla.breach_usd_per_hour is not None and sla.person is not None:
        stakes.append(sla.breach_usd_per_hour * seconds(sla.person) / _HOUR_S)
    if not stakes:
        return None
    return sum(stakes) * (1.0 if sla.criticality is None else sla.criticality)


def _down_s(sla: SLA, at: Situation) -> float | None:
    """How long a run of this age may be down by its promised availability."""
    if sla.availability is None:
        return None
    lasts_s = max(at.age_s, _seconds(sla.deadline) or 0.0)
    return (1.0 - sla.availability) * lasts_s


def _seconds(text: float | str | None) -> float | None:
    return None if text is None else seconds(text)


def _usd(text: float | str | None) -> float | None:
    """A sum; None also for words of an older record that say none."""
    try:
        return None if text is None else dollars(text)
    except ValueError:
        return None
