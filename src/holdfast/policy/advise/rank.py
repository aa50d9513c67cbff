"""Which way to save is best for a case, which limit decides that, and why."""

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from holdfast.model.case import Case, Policy, Scope, Strategy
from holdfast.policy.advise.chain import floor
from holdfast.policy.advise.intervals import Clamp, clamp, money
from holdfast.policy.advise.options import GB, REPEATED, Check, Option, made, strategies, weigh

PRICES = {
    "gb_month_usd": "the price of a GB-month, so storage is free here",
    "second_usd": "what a second of waiting costs, so time is weighed only by its limits",
    "person_usd": "what it costs to ask a person, so giving up is free here",
}
FAILING = ("recovery P95", "breach rate")
"""The limits that saving is for."""
COARSE = 5
"""So many times the unit is what people often choose; told beside the advice."""


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """Between what the work between two checkpoints may take, for one cause of failure."""

    cause: str
    low_s: float
    high_s: float


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """The ranked ways to save, best first; `misses` of the best are limits that none keeps.

    `floor` is the breach rate that no interval can beat; `best_interval_s` is what the closed form
    says of checkpoints in this case. `hopeless` are ways under which a task never ends.
    """

    case: str
    options: list[Option]
    hopeless: list[str]
    current: Option | None
    none: Option | None
    floor: float
    best_interval_s: float | None
    bounds: list[Bound]
    binding: str
    why: str
    missing: list[str]

    @property
    def best(self) -> Option:
        """The first."""
        return self.options[0]


class NothingWorks(ArithmeticError):
    """Under no way to save does a task of this case come to its end."""


def advise(case: Case) -> Advice:
    """Rank every way to save; raises `NothingWorks` where no task ever ends."""
    interval_s = best_interval(case)
    unit_s = case.work_s / len(case.units)
    best_units = None
    if interval_s is not None and math.isfinite(interval_s):
        best_units = max(1, round(interval_s / unit_s))
    weighed = {strategy: weigh(case, strategy) for strategy in strategies(case, best_units)}
    found = [option for option in weighed.values() if option is not None]
    if not found:
        raise NothingWorks
    none = next((each for each in found if each.mode == "none"), None)
    found.sort(key=_order)
    bounds = list(_bounds(case))
    return Advice(
        case=case.name,
        options=found,
        hopeless=[strategy.name for strategy, option in weighed.items() if option is None],
        current=_current(case, weighed),
        none=none,
        floor=floor(case.units, case.causes),
        best_interval_s=interval_s,
        bounds=bounds,
        binding=_binding(found, floor(case.units, case.causes)),
        why=_why(case, found[0], interval_s, bounds),
        missing=[
            *(text for name, text in PRICES.items() if getattr(case.prices, name) is None),
            *_unknown_of_current(case),
        ],
    )


def _current(case: Case, weighed: Mapping[Strategy, Option | None]) -> Option | None:
    if case.current is None or list(_unknown_of_current(case)):
        return None
    strategy = made(case, case.current)
    return weighed[strategy] if strategy in weighed else weigh(case, strategy)


def _unknown_of_current(case: Case) -> Iterator[str]:
    """What nobody said of the saves that are made at present: they are not free for that."""
    now, saving = case.current or Policy(), case.saving
    for is_made, name, blocked_s in (
        (now.journal == "local", "journal_local", saving.journal_local_s),
        (now.journal == "remote", "journal_remote", saving.journal_remote_s),
        (now.local_every, "checkpoint_local", saving.checkpoint_local_s),
        (now.remote_every, "checkpoint_remote", saving.checkpoint_remote_s),
    ):
        if is_made and blocked_s is None:
            yield f"how long a {name} of the current way blocks, so nothing is compared with it"


def _order(option: Option) -> tuple[bool, bool, float, float, int, float, float]:
    """Nothing is worth an effect done twice; then limits count, then money, then time, then room.

    Where no way keeps every limit, money decides, and what a breach costs is in it: to save nothing
    keeps many limits, and is no answer to a promise that cannot be kept. Where nothing has a price,
    what comes nearest to that promise does.
    """
    is_twice = any(check.name == REPEATED for check in option.misses)
    far, misses = _far(option), len(option.misses)
    return is_twice, bool(misses), option.total_usd, far, misses, option.time_s, option.bytes


def _far(option: Option) -> float:
    """How far it is beyond the time or the rate that is promised for failures, whichever is more.

    Differences of a hundredth are none.
    """
    beyond = [
        check.value / check.limit
        for check in option.misses
        if check.name in FAILING and check.limit > 0
    ]
    return round(max(beyond, default=1.0), 2)


def best_interval(case: Case) -> float | None:
    """The money form for this case's checkpoints; without prices, time against time."""
    saving, prices = case.saving, case.prices
    save_s = saving.checkpoint_remote_s
    save_s = saving.checkpoint_local_s if save_s is None else save_s
    if save_s is None:
        return None
    if prices.second_usd is None:
        return money(save_s, case.per_second, 1.0)
    work_usd = math.fsum(unit.usd for unit in case.units) / case.work_s
    stored = saving.checkpoint_bytes * saving.stored / GB * prices.months
    save_usd = save_s * prices.second_usd + stored * (prices.gb_month_usd or 0.0)
    if saving.checkpoint_remote_s is not None:
        save_usd += prices.put_usd or 0.0
    return money(save_usd, case.per_second, work_usd + prices.second_usd)


def _bounds(case: Case) -> list[Bound]:
    saving = case.saving
    save_s = saving.checkpoint_remote_s
    save_s = (saving.checkpoint_local_s or 0.0) if save_s is None else save_s
    found = []
    for cause in case.causes:
        if cause.scope in (Scope.IN_PLACE, Scope.POISON) or not cause.per_second:
            continue
        is_far = cause.scope is Scope.HOST
        between: Clamp = clamp(
            save_s,
            overhead=case.promise.overhead,
            max_recovery_s=case.promise.max_recovery_s,
            detect_s=cause.detect_s,
            restore_s=saving.restore_remote_s if is_far else saving.restore_local_s,
        )
        high_s = between.high_s
        if case.promise.clock == "resume" and high_s >= 0:
            high_s = math.inf  # What is done again is not on this clock.
        found.append(Bound(cause=cause.name, low_s=between.low_s, high_s=high_s))
    return found


def _binding(options: Sequence[Option], least: float) -> str:
    """Which limit decides: one that a cheaper way would break, or one that none keeps."""
    best = options[0]
    if best.misses:
        said = []
        for check in best.misses:
            rest = ""
            if check.name == "breach rate" and least > check.limit:
                rest = (
                    f" (its floor is {least:.3%}: failures that nothing recovers from bind, "
                    "not the interval)"
                )
            said.append(
                f"{limit_text(check.name, check.limit)} is kept {_by(check, options)}{rest}"
            )
        return "; ".join(said)
    cheaper = [each for each in options if each.total_usd < best.total_usd and each.misses]
    if not cheaper:
        return "none: the cheapest way keeps every limit"
    first = min(cheaper, key=lambda each: (len(each.misses), each.total_usd))
    broken = " and ".join(limit_text(each.name, each.limit) for each in first.misses)
    less = best.total_usd - first.total_usd
    return f"{broken}: without it, {first.strategy.name} would cost ${less:.3g} less per task"


def _by(check: Check, options: Sequence[Option]) -> str:
    """Which ways keep a limit that the best one misses; the cheapest of them is named."""
    keeping = [each for each in options if check.name not in {miss.name for miss in each.misses}]
    if not keeping:
        return "by no way to save"
    first = min(keeping, key=lambda each: each.total_usd)
    more = first.total_usd - options[0].total_usd
    price = f" (${more:.3g} more per task)" if more > 0 else ""
    return f"by {first.strategy.name}{price}, which misses others"


def limit_text(name: str, limit: float) -> str:
    """A limit in words."""
    match name:
        case "recovery P95":
            return f"recovery within {limit:g} s at P95"
        case "overhead" | "breach rate":
            return f"{name} of at most {100 * limit:g} %"
        case "recovery budget":
            return f"recoveries of at most ${limit:g} a task"
        case "effects repeated":
            return "no effect done twice"
        case "availability":
            return f"availability of {100 * limit:g} %"
        case _:
            return f"{name} of at most {limit:,.0f}"


def _why(case: Case, best: Option, interval_s: float | None, bounds: Sequence[Bound]) -> str:
    """One sentence."""
    unit_s = case.work_s / len(case.units)
    name = best.strategy.name
    if best.mode == "none":
        return f"{name}: {_why_nothing(case, best)}"
    if best.strategy.is_streamed:
        return (
            f"{name}: a call goes on from the tokens that are recorded of it, so a failure leaves "
            "less to do again"
        )
    if best.interval_s is None:
        return (
            f"{name}: every {case.unit} is recorded, and going through recorded ones again takes "
            "less than a checkpoint would save"
        )
    tight = min(bounds, key=lambda bound: bound.high_s, default=None)
    if interval_s is None or not math.isfinite(interval_s):
        reason = "nothing is known to fail, so saves cost little and lose nothing"
    elif interval_s <= unit_s < best.interval_s:
        reason = (
            f"of the intervals tried it costs least; the interval that costs least by itself is "
            f"{interval_s:.3g} s, less than one {case.unit} ({unit_s:.3g} s), but failures here "
            "cost nearly the same after more work"
        )
    elif interval_s <= unit_s:
        reason = (
            f"the interval that costs least is {interval_s:.3g} s, less than one {case.unit} "
            f"({unit_s:.3g} s)"
        )
    else:
        reason = f"the interval that costs least is {interval_s:.3g} s of work"
    if tight is not None and math.isfinite(tight.high_s):
        spare = COARSE * max(unit_s, best.interval_s)
        if tight.high_s <= 0:
            reason += f"; after a {tight.cause} failure no interval meets the recovery time"
        elif spare > tight.high_s:
            reason += (
                f", and {spare:.3g} s between checkpoints would pass the {tight.high_s:.3g} s that "
                f"a {tight.cause} failure leaves"
            )
    return f"{name}: {reason}"


def _why_nothing(case: Case, best: Option) -> str:
    if not case.per_second:
        return "nothing fails here, so every save is in vain"
    if not best.total_usd:
        return (
            "nothing here has a price and no limit asks for saves, and a task takes the least time "
            "without; say what the work and a breach cost"
        )
    return "what failures cost here is less than any way to save"
