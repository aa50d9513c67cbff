"""Reports as tables on a terminal."""

import math
from collections.abc import Sequence

from holdfast.cli.grid import Grid
from holdfast.cli.text import duration, moment, number, plural, size
from holdfast.model.journal import Usage
from holdfast.report.cost import Cost, Growth
from holdfast.report.event import when
from holdfast.report.metrics import Measured
from holdfast.report.roi import Return
from holdfast.report.sla import Kept
from holdfast.report.smells import Smell

SHOWN = 20
MANIFOLD = 10
"""From so many times the whole on, a share is told without digits after the point."""


def sla(kept: Kept, found: Sequence[Smell]) -> list[Grid | str]:
    """The promises, what they are made of, and what broke them."""
    rows = [_promise(each) for each in kept.measured]
    columns = ("promise", "target", "measured", "95 % sure", "samples", "verdict", "note")
    grids: list[Grid | str] = [
        Grid(columns=columns, rows=rows, right=frozenset(columns[1:5])),
        "",
        Grid(columns=("", " "), rows=_around(kept), has_header=False),
    ]
    if kept.breaches:
        broken = [
            (
                each.run,
                moment(when(each.failed_at)),
                each.kind,
                each.why,
                duration(each.took_s),
                ", ".join(f"{name} {duration(took)}" for name, took in each.parts.items() if took),
            )
            for each in kept.breaches[:SHOWN]
        ]
        names = ("breach of", "failed at", "kind", "why", "took", "of which")
        grids += ["", Grid(columns=names, rows=broken)]
    if len(kept.breaches) > SHOWN:
        grids.append(f"… and {len(kept.breaches) - SHOWN} more (-o json has all)")
    for smell in found:
        grids += ["", f"{smell.name}: {smell.found}; {smell.instead}"]
    return grids


def _promise(each: Measured) -> tuple[str, ...]:
    need = "" if each.needed is None else f"{each.needed:,} samples would show it"
    sign = "≥" if each.is_least else "≤"
    return (
        each.name,
        f"{sign} {amount(each.target, each.unit)}",
        amount(each.value, each.unit),
        amount(each.bound, each.unit) and f"{sign} {amount(each.bound, each.unit)}",
        str(each.samples),
        each.verdict,
        "; ".join(filter(None, (each.note, need))),
    )


def amount(value: float | None, unit: str) -> str:
    """A measurement as people read it."""
    if value is None or not math.isfinite(value):
        return "" if value is None else "never"
    match unit:
        case "share":
            return f"{100 * value:,.0f} %" if value >= MANIFOLD else f"{100 * value:.4g} %"
        case "s":
            return duration(value)
        case _:
            return size(round(value))


def _around(kept: Kept) -> list[tuple[str, str]]:
    others = "; each run is held to its own" if kept.is_mixed else ""
    rows = [
        ("runs", f"{kept.runs}, of which {kept.ended} ended; {plural(kept.episodes, 'failure')}"),
        ("promise", f"{kept.targets.max_recovery_s:g} s to recover ({kept.targets.clock}){others}"),
    ]
    if kept.apart:
        rows.append(("apart", f"{plural(kept.apart, 'run')} that nobody watched: not judged"))
    if kept.success is not None:
        rows.append(("task success", f"{kept.success:.4%}"))
    if kept.availability is not None:
        rows.append(("availability", f"{kept.availability:.4%}"))
    rows.append(("downtime", _per_month(kept.down_s, kept.down_h_per_month)))
    rows.append(("beyond the limit", _per_month(kept.breach_s, kept.breach_h_per_month)))
    if kept.budget_left is not None:
        rows.append(("error budget left", _budget(kept.budget_left)))
    spent = ", ".join(f"{name} {duration(took)}" for name, took in kept.parts.items() if took)
    rows.append(("recoveries went into", spent or "nothing"))
    return rows


def _budget(left: float) -> str:
    """What is left of the downtime that the promise allows."""
    return f"{left:.2%}" if left >= 0 else f"none: spent {number(1 - left, 3)} times"


def _per_month(seconds: float, hours: float | None) -> str:
    month = "" if hours is None else f", {number(hours, 3)} h in a month of such running"
    return f"{duration(seconds)}{month}"


def cost(found: Cost) -> list[Grid | str]:
    """Tokens and dollars by model."""
    columns = ("model", "spent", "usd", "not spent again", "usd ", "lost", "usd  ")
    rows = [
        (
            each.model or "(none named)",
            _tokens(each.spent),
            _usd(each.spent),
            _tokens(each.saved),
            _usd(each.saved),
            _tokens(each.lost),
            _usd(each.lost),
        )
        for each in found.models
    ]
    told: list[Grid | str] = []
    if rows:
        told.append(Grid(columns=columns, rows=rows, right=frozenset(columns[1:])))
    runs, restarts = plural(found.runs, "run"), plural(found.restarts, "restart")
    tokens = _tokens(found.saved)
    total = f"{tokens or '0'} tokens, {_usd(found.saved) or ('unknown' if tokens else '0')} dollars"
    told.append(f"{runs}, {restarts}; not spent again because of replay: {total}")
    if any(each.priced_today for each in found.models):
        told.append(
            "some answers recorded no price: yours or today's is taken (usage=holdfast.priced)"
        )
    if found.missing:
        told.append(
            f"no price is known of {', '.join(found.missing)}: let the answer's usage say `usd`, "
            "install holdfast[prices], or say it under [prices] in holdfast.toml"
        )
    return told


def _tokens(used: Usage) -> str:
    if used.tokens_in is None and used.tokens_out is None:
        return ""
    return f"{(used.tokens_in or 0) + (used.tokens_out or 0):,}"


def _usd(used: Usage) -> str:
    return "" if used.usd is None else number(used.usd)


def storage(found: Growth) -> list[Grid | str]:
    """Room by run."""
    rows = [
        ("runs that ended", str(found.ended)),
        ("they added", size(found.bytes)),
        ("a run, on average", size(round(found.bytes_per_run or 0)) if found.ended else "unknown"),
        (
            "a million runs",
            "unknown: none ended yet"
            if found.gb_per_million is None
            else f"{number(found.gb_per_million, 3)} GB (the target is 50 GB)",
        ),
        ("the store now", size(found.store_bytes)),
    ]
    if found.usd_per_month is not None:
        rows.append(("a month costs", f"{number(found.usd_per_month, 3)} USD"))
    rows += [(f"largest: {run}", size(count)) for run, count in found.largest]
    return [Grid(columns=("", " "), rows=rows, has_header=False)]


def roi(found: Return) -> list[Grid | str]:
    """What it was worth, from what."""
    worth = found.worth
    ratio = f"{worth.benefit_cost_ratio:.1f}, net {worth.net_roi:.1f}"
    rows = [
        ("benefit", f"{number(worth.benefit_usd)} USD"),
        ("cost", f"{number(worth.cost_usd)} USD"),
        ("benefit/cost", ratio if worth.cost_usd else "unknown: no cost is priced"),
        *(
            (name, "not given" if name in found.unpriced else number(value, 6))
            for name, value in worth.inputs.items()
        ),
    ]
    told: list[Grid | str] = [Grid(columns=("", " "), rows=rows, has_header=False)]
    if found.missing:
        told.append(f"not counted, because it is not known: {'; '.join(found.missing)}")
    return told
