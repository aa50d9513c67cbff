"""The well-known rules of thumb for checkpointing, answered for one case with its own numbers."""

import math
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from holdfast.model.case import Case, Scope
from holdfast.policy.advise.options import Option
from holdfast.policy.advise.rank import Advice

MUST_AVAILABILITY, STANDBY_AVAILABILITY = 0.9995, 0.9999
MUST_USD_PER_HOUR = 10_000.0
CHEAP_USD, DEAR_USD = 100.0, 500.0
SHORT_S, REAL_TIME_S, RELAXED_S = 300.0, 5.0, 30.0
MONTH_MIN = 43_200.0


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of thumb, whether what it speaks of is so here, and what the numbers say.

    `applies` is yes, no or unknown; where it is yes, `follow` says whether the best way to save
    does what the rule says (yes, no), else it is empty.
    """

    group: str
    rule: str
    applies: str
    answer: str
    follow: str = ""


def explain(case: Case, advice: Advice) -> list[Rule]:
    """Every rule, answered."""
    told = [
        *_matrix(case, advice),
        *_framework(case, advice),
        *_verdicts(case, advice),
        _principle(advice),
    ]
    return [rule if rule.applies == "yes" else replace(rule, follow="") for rule in told]


def _matrix(case: Case, advice: Advice) -> Iterator[Rule]:
    group, best = "decision matrix", advice.best
    is_saved = best.mode != "none"
    task_usd = math.fsum(unit.usd for unit in case.units)
    target = case.promise.availability
    yield Rule(
        group=group,
        rule="reliability decides: availability of 99.95 % or more needs checkpoints",
        follow=_word(is_saved),
        applies="unknown" if target is None else _word(target >= MUST_AVAILABILITY),
        answer="no availability is promised"
        if target is None
        else f"{target:.4%} allows {(1 - target) * MONTH_MIN:.3g} min a month; "
        f"best here: {best.strategy.name} with {best.availability:.4%}",
    )
    yield Rule(
        group=group,
        rule="cost decides: a task below $100 needs no checkpoint",
        follow=_word(not is_saved),
        applies=_word(task_usd < CHEAP_USD),
        answer=f"the price of a task (${task_usd:.3g}) does not decide; {_loss(advice)}",
    )
    yield Rule(
        group=group,
        rule="a task above $500 is worth saving inside a step",
        follow=_word(best.strategy.is_streamed),
        applies=_word(task_usd > DEAR_USD),
        answer=f"a {case.unit} is worth ${task_usd / len(case.units):.3g}; token records buy "
        "recovery time, not money, and need a provider that continues a prefix",
    )
    yield Rule(
        group=group,
        rule="tasks under 5 minutes that may fail in part: snapshots on demand",
        follow=_word(best.strategy.is_snapshot),
        applies=_word(case.work_s < SHORT_S),
        answer=f"a task takes {case.work_s:.4g} s; from scratch it redoes {case.work_s / 2:.4g} s "
        f"on average, {best.strategy.name} at P95 {_seconds(best.catch_up_s[1])}",
    )


def _framework(case: Case, advice: Advice) -> Iterator[Rule]:
    group, best = "decision framework", advice.best
    is_saved = best.mode != "none"
    has_effects = any(unit.is_effect for unit in case.units)
    limit_s = case.promise.max_recovery_s
    yield Rule(
        group=group,
        rule="checkpoint where the state cannot be computed again",
        follow=_word(is_saved),
        applies=_word(has_effects),
        answer="effects cannot be repeated, so what was done must be known"
        if has_effects
        else f"it can be, at a price: a task comes to {_money(advice.none)} without saves, "
        f"{_money(best)} with {best.strategy.name}",
    )
    yield Rule(
        group=group,
        rule="checkpoint where latency requirements are relaxed (30 s or more)",
        follow=_word(is_saved),
        applies="unknown" if limit_s is None else _word(limit_s >= RELAXED_S),
        answer=f"saves block {best.overhead:.2%} of the work, so latency does not speak against "
        "them; a synchronous save that blocks longer than its cap would",
    )
    yield Rule(
        group=group,
        rule="restart where the process or its host fails",
        follow=_word(is_saved),
        applies=_word(_share(case, Scope.PROCESS, Scope.HOST) > 0),
        answer=f"{_share(case, Scope.PROCESS, Scope.HOST):.0%} of failures are of the process or "
        "host; restart needs the same checkpoints as rollback, and loses nothing recorded",
    )
    yield Rule(
        group=group,
        rule="rollback where consistency counts for more than recent work",
        follow=_word(is_saved),
        applies=_word(_share(case, Scope.ROLLBACK) > 0),
        answer=f"{_share(case, Scope.ROLLBACK):.0%} of failures leave a wrong state; it is never "
        "faster than a restart, needs older checkpoints (keep at least 2), and passes over "
        f"{best.effects_passed_over:.3g} effects per task, to be undone",
    )


def _verdicts(case: Case, advice: Advice) -> Iterator[Rule]:
    target, hourly = case.promise.availability, case.promise.breach_usd_per_hour
    best, limit_s = advice.best, case.promise.max_recovery_s
    is_saved = best.mode != "none"
    yield Rule(
        group="must use",
        rule="availability of 99.95 % or more, or interruptions above $10,000 an hour",
        follow=_word(is_saved),
        applies="unknown"
        if target is None and hourly is None
        else _word((target or 0) >= MUST_AVAILABILITY or (hourly or 0) > MUST_USD_PER_HOUR),
        answer="neither is given"
        if target is None and hourly is None
        else "breaches are expected to cost "
        f"{_hourly(advice.none)} per hour of operation without saves, {_hourly(best)} with "
        f"{best.strategy.name}",
    )
    yield Rule(
        group="with caution",
        rule="availability of 99.99 % or more: restoring alone cannot keep it",
        follow=_word(any(check.name == "availability" for check in best.misses)),
        applies="unknown" if target is None else _word(target >= STANDBY_AVAILABILITY),
        answer=f"down {best.time_s * (1 - best.availability):.3g} s per task with the best way"
        + ("" if target is None else f", {best.time_s * (1 - target):.3g} s are allowed"),
    )
    slowest = min((unit.seconds for unit in case.units), default=0.0)
    yield Rule(
        group="avoid",
        rule="checkpoints in real-time work that must answer within 5 s",
        follow=_word(not is_saved),
        applies="unknown" if limit_s is None else _word(limit_s <= REAL_TIME_S),
        answer="only synchronous checkpoints are ruled out: journal each "
        f"{case.unit} (shortest {slowest:.3g} s), checkpoint asynchronously; saves take "
        f"{best.overhead:.2%}",
    )


def _principle(advice: Advice) -> Rule:
    best, none = advice.best, advice.none
    answer = "without saves a task never ends, so any recovery is worth it"
    applies = "yes"
    if none is not None:
        worth = best.against(none)
        applies = _word(worth.benefit_usd > worth.cost_usd)
        answer = (
            f"saving costs ${worth.cost_usd:.3g} a task and avoids ${worth.benefit_usd:.3g} "
            f"(success {best.success:.3%} counted)"
        )
    return Rule(
        group="principle",
        rule="recovery must cost less than the breach it avoids, times its chance of success",
        applies=applies,
        follow="yes",
        answer=answer,
    )


def _loss(advice: Advice) -> str:
    if advice.none is None:
        return "without saves a task never ends"
    worth = advice.best.against(advice.none)
    return (
        f"failures cost ${worth.benefit_usd:.3g} a task more without saves, and saves cost "
        f"${worth.cost_usd:.3g}"
    )


def _share(case: Case, *scopes: Scope) -> float:
    some = math.fsum(cause.per_second for cause in case.causes if cause.scope in scopes)
    return some / case.per_second if case.per_second else 0.0


def _word(is_so: bool) -> str:  # noqa: FBT001 a fact, as a word
    return "yes" if is_so else "no"


def _money(option: Option | None) -> str:
    return "no end in sight" if option is None else f"${option.total_usd:.3g}"


def _hourly(option: Option | None) -> str:
    if option is None:
        return "no end in sight"
    found = option.interruption_usd_per_hour
    return "an unknown sum" if found is None else f"${found:,.2f}"


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g} s"
