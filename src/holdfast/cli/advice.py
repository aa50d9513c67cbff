"""Advice as tables and charts on a terminal, and as data."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.cli.grid import Grid
from holdfast.cli.text import duration, number, plural, size
from holdfast.model.case import Case
from holdfast.policy.advise.change import Change
from holdfast.policy.advise.explain import Rule
from holdfast.policy.advise.options import Option, chain_of
from holdfast.policy.advise.rank import Advice
from holdfast.policy.advise.simulate import Simulated
from holdfast.policy.advise.tail import Tail
from holdfast.policy.advise.tokens import off
from holdfast.policy.advise.worth import Worth

SHOWN = 8
BAR = 32
ALL = 0.99995
"""A chart ends where nothing more is to be seen."""
TIMES_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
"""Recovery times at which the distribution is shown: those of the metric's buckets, and beyond."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """All that is said of a case."""

    case: Case
    advice: Advice
    changes: list[Change]
    notes: list[str]
    rules: list[Rule]
    simulated: Simulated | None


def document(told: Told) -> dict[str, Any]:
    """Advice as data."""
    advice = told.advice
    return {
        "case": advice.case,
        "best": row(advice.best, advice),
        "is_kept": not advice.best.misses,
        "why": advice.why,
        "binding": advice.binding,
        "floor": advice.floor,
        "best_interval_s": advice.best_interval_s,
        "bounds": advice.bounds,
        "options": [row(option, advice) for option in advice.options],
        "current": None if advice.current is None else row(advice.current, advice),
        "hopeless": advice.hopeless,
        "changes": told.changes,
        "notes": told.notes,
        "missing": advice.missing,
        "not_ranked": off(told.case),
        "rules": told.rules,
        "simulated": told.simulated,
        "distribution": distribution(told),
        "curve": curve(told),
    }


def row(option: Option, advice: Advice) -> dict[str, Any]:
    """One strategy as data, with what it is worth against none and the current one."""
    return {
        "name": option.strategy.name,
        **msgspec.structs.asdict(option),
        "misses": [check.name for check in option.misses],
        "against_none": _worth(option, advice.none),
        "against_current": _worth(option, advice.current),
    }


def _worth(option: Option, other: Option | None) -> dict[str, Any] | None:
    if other is None or other.strategy == option.strategy:
        return None
    worth = option.against(other)
    return {
        "benefit_usd": worth.benefit_usd,
        "cost_usd": worth.cost_usd,
        "benefit_cost_ratio": worth.benefit_cost_ratio,
        "net_roi": worth.net_roi,
        "inputs": worth.inputs,
    }


def distribution(told: Told) -> list[dict[str, float]]:
    """The share of recoveries that take no longer than each time, with the best way and none."""
    case, found = told.case, []
    best = _tail(case, told.advice.best)
    none = None if told.advice.none is None else _tail(case, told.advice.none)
    for limit_s in TIMES_S:
        share = best.at_most(limit_s)
        if share is None:
            return []
        bare = None if none is None else none.at_most(limit_s)
        found.append({"seconds": limit_s, "best": share, "none": bare or 0.0})
    return found


def _tail(case: Case, option: Option) -> Tail:
    chain = chain_of(case, option.strategy)
    return chain.tail(chain.reached().visits)


def curve(told: Told) -> list[dict[str, Any]]:
    """Cost against interval: the journal of one way to save, with each interval that was tried.

    Ways with two levels have two intervals, and are no points of one curve.
    """
    best = _drawn(told.advice).strategy
    alike = [
        option
        for option in told.advice.options
        if option.strategy.journal == best.journal
        and option.strategy.is_snapshot == best.is_snapshot
        and option.interval_s is not None
        and not (option.strategy.local_every and option.strategy.remote_every)
    ]
    alike.sort(key=lambda option: option.interval_s or 0.0)
    return [
        {
            "interval_s": option.interval_s,
            "total_usd": option.total_usd,
            "p95_s": option.catch_up_s[1],
            "name": option.strategy.name,
            "is_kept": not option.misses,
        }
        for option in alike
    ]


def _drawn(advice: Advice) -> Option:
    """The best way to save; where that is not to, the best of those that have an interval."""
    if advice.best.mode != "none":
        return advice.best
    return next((each for each in advice.options if each.interval_s is not None), advice.best)


def grids(told: Told) -> list[Grid | str]:
    """Advice for a terminal."""
    advice, best = told.advice, told.advice.best
    verdict = "every limit is kept" if not best.misses else "no way keeps every limit"
    what = f"{plural(len(told.case.units), told.case.unit)}, {duration(told.case.work_s)} of work"
    found: list[Grid | str] = [
        f"{advice.case}: {what}; {verdict}",
        "",
        _ranking(advice, is_resume=told.case.promise.clock == "resume"),
    ]
    if len(advice.options) > SHOWN:
        found.append(f"… and {len(advice.options) - SHOWN} more (-o json has all)")
    if best.misses and len(advice.options) > 1:
        decides = "so what a task costs decides, breaches counted"
        if not best.total_usd:
            decides = "and nothing has a price, so what comes nearest to the promise decides"
        found.append(f"none keeps every limit, {decides}")
    found += ["", _details(told)]
    if chart := _distribution_chart(told):
        found += ["", "recovery times: the share that takes no longer", chart]
    if chart := _curve_chart(told):
        found += ["", f"cost against interval (with {_journal_words(_drawn(advice))})", chart]
    found += _remarks(told)
    if told.simulated is not None:
        found += ["", *_simulated(told.simulated, best)]
    if told.rules:
        found += ["", _rules(told.rules)]
    return found


def _remarks(told: Told) -> list[Grid | str]:
    """What would keep a limit, what to know, and what is missing."""
    found: list[Grid | str] = []
    for change in told.changes:
        found += ["", f"{change.limit}: {change.would}"]
    for text in [*told.notes, *told.case.notes]:
        found += ["", f"note: {text}"]
    if missing := told.advice.missing:
        found += ["", f"not known: {'; '.join(missing)}"]
    if left_out := off(told.case):
        where = " (keys of a case: `holdfast advise --example`)" if told.case.notes else ""
        found += ["", f"not ranked: {'; '.join(left_out)}{where}"]
    return found


def _rules(rules: Sequence[Rule]) -> Grid:
    columns = ("rules", "rule of thumb", "applies", "follow it", "what the numbers say here")
    rows = [(rule.group, rule.rule, rule.applies, rule.follow, rule.answer) for rule in rules]
    return Grid(columns=columns, rows=rows)


def _ranking(advice: Advice, *, is_resume: bool) -> Grid:
    columns = ("way to save", "P95", "breach", "avail.", "overhead", "bytes", "$/task", "misses")
    rows = [
        (
            option.strategy.name,
            duration((option.resume_s if is_resume else option.catch_up_s)[1]),
            share(option.breach),
            share(option.availability),
            share(option.overhead),
            size(round(option.bytes)),
            number(option.total_usd),
            ", ".join(check.name for check in option.misses),
        )
        for option in advice.options[:SHOWN]
    ]
    return Grid(columns=columns, rows=rows, right=frozenset(columns[1:-1]))


def _details(told: Told) -> Grid:
    advice, best = told.advice, told.advice.best
    rows = [
        ("best", best.strategy.name),
        ("why", advice.why.partition(": ")[2]),
        ("binds", advice.binding),
        ("mode", best.mode),
        ("granularity", _granularity(told.case, best)),
        ("catch-up P50/P95/P99", _times(best.catch_up_s)),
        ("resume P50/P95/P99", _times(best.resume_s)),
        ("success", f"{best.success:.5%}"),
        ("breach, its floor", f"{share(best.breach) or 'not promised'}, {share(advice.floor)}"),
        ("availability", f"{best.availability:.4%}"),
        ("blocked by saves", share(best.overhead)),
        ("bytes per task", size(round(best.bytes))),
        ("USD per task", _parts(best)),
        ("effects per task", _effects(best)),
    ]
    if best.interruption_usd_per_hour is not None:
        rows.append(("interruptions", f"${best.interruption_usd_per_hour:,.2f} per operating hour"))
    for name, other in (("nothing", advice.none), ("current", advice.current)):
        if other is not None and other.strategy != best.strategy:
            rows.append((f"against {name}", worth_text(best.against(other))))
    if advice.current is not None and advice.current.strategy == best.strategy:
        rows.append(("against current", "it is what you have"))
    for bound in advice.bounds:
        text = f"at least {duration(bound.low_s)} between checkpoints"
        if bound.high_s <= 0:
            text = "no interval keeps the recovery time: see the note"
        elif not math.isfinite(bound.low_s):
            text = "no interval keeps the overhead cap: see the note"
        elif bound.low_s > bound.high_s:
            text = "no interval keeps both the overhead cap and the recovery time: see the note"
        elif math.isfinite(bound.high_s):
            text = f"{duration(bound.low_s)} to {duration(bound.high_s)} between checkpoints"
        rows.append((f"{bound.cause} failures", text))
    return Grid(columns=("", " "), rows=rows, has_header=False)


def worth_text(worth: Worth) -> str:
    """Benefit over cost, and its parts."""
    if worth.cost_usd <= 0:
        net = worth.benefit_usd - worth.cost_usd
        if net < 0:
            return f"loses ${number(-net)} a task, and saving costs no more"
        return f"saves ${number(net)} a task and costs nothing more"
    return (
        f"benefit/cost {worth.benefit_cost_ratio:.1f}, net ROI {worth.net_roi:.1f} "
        f"(${number(worth.benefit_usd)} for ${number(worth.cost_usd)} a task)"
    )


def _granularity(case: Case, best: Option) -> str:
    every = best.strategy.remote_every or best.strategy.local_every
    if not every:
        often = f"every {case.saving.tokens_every:,.0f} tokens and " * best.strategy.is_streamed
        return f"{often}every {case.unit} (recovery points)" if best.mode != "none" else "none"
    often = _often(every, case.unit)
    if best.strategy.remote_every and best.strategy.local_every:
        often = f"{_often(best.strategy.local_every, case.unit)} here, {often} elsewhere"
    return f"{often} ({duration(best.interval_s)} of work)"


def _often(every: int, unit: str) -> str:
    return f"every {unit}" if every == 1 else f"every {every} {unit}s"


def _effects(best: Option) -> str:
    return (
        f"{best.effects_passed_over:.3g} passed over by going back, of these "
        f"{best.effects_repeated:.3g} repeated; {best.effects_in_doubt:.3g} in doubt"
    )


def _parts(best: Option) -> str:
    parts = ", ".join(f"{name} {number(usd, 3)}" for name, usd in best.usd.items())
    return f"{number(best.total_usd)} ({parts})"


def _times(times_s: Sequence[float | None]) -> str:
    return " / ".join(duration(each) or "none" for each in times_s)


def _journal_words(option: Option) -> str:
    journal = option.strategy.journal
    return "no journal" if journal == "none" else f"a {journal} journal"


def _distribution_chart(told: Told) -> Grid | None:
    rows = []
    for each in distribution(told):
        bar = "#" * round(BAR * each["best"])
        rows.append((duration(each["seconds"]), bar, share(each["best"]), share(each["none"])))
        if each["best"] > ALL:
            break
    columns = ("within", "share", "best", "nothing saved")
    return Grid(columns=columns, rows=rows, right=frozenset(columns) - {"share"}) if rows else None


def _curve_chart(told: Told) -> Grid | None:
    points = curve(told)
    if len(points) < 2:  # noqa: PLR2004 one point is no curve
        return None
    least = min(point["total_usd"] for point in points)
    most = max(point["total_usd"] for point in points)
    span = (most - least) or 1.0
    rows = [
        (
            duration(point["interval_s"]),
            "#" * (1 + round((BAR - 1) * (point["total_usd"] - least) / span)),
            number(point["total_usd"]),
            "yes" if point["is_kept"] else "no",
        )
        for point in points
    ]
    columns = ("interval", "above the least", "$/task", "limits kept")
    return Grid(columns=columns, rows=rows, right=frozenset({"interval", "$/task"}))


def _simulated(seen: Simulated, best: Option) -> list[Grid | str]:
    rows = [
        ("time, s", f"{best.time_s:.4f}", f"{seen.time_s.value:.4f} ± {seen.time_s.error:.4f}"),
        ("success", f"{best.success:.5f}", f"{seen.success.value:.5f} ± {seen.success.error:.5f}"),
    ]
    if seen.breach is not None and best.breach is not None:
        found = f"{seen.breach.value:.5f} ± {seen.breach.error:.5f}"
        rows.append(("breach", f"{best.breach:.5f}", found))
    for name, told_s, seen_s in (
        ("P50, s", best.catch_up_s[0], seen.p50_s),
        ("P95, s", best.catch_up_s[1], seen.p95_s),
    ):
        if told_s is not None and seen_s is not None:
            rows.append((name, f"{told_s:.2f}", f"{seen_s:.2f}"))
    tasks = "task" if seen.runs == 1 else "tasks"
    text = f"{seen.runs:,} {tasks} played by chance (one standard error)"
    return [text, Grid(columns=("of the best", "exact", "played"), rows=rows)]


def share(value: float | None) -> str:
    """A share in per cent, with as many digits as say something."""
    if value is None:
        return ""
    is_near = value < 0.01 or value > 0.99  # noqa: PLR2004 where two digits say too little
    return f"{value:.4%}" if is_near else f"{value:.2%}"
