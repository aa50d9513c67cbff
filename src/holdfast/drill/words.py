"""A scorecard in words and rows, the same for a terminal, Markdown and HTML."""

from collections.abc import Sequence

from holdfast.drill.scorecard import Kind, Never, Scorecard
from holdfast.report.metrics import Measured, Verdict

Rows = Sequence[Sequence[str]]

PROMISES = ("promise", "target", "measured", "sure of (95 %)", "samples", "verdict")
NEVERS = ("must not happen", "seen", "runs", "sure of (95 %)", "verdict")
KINDS = (
    "fault", "runs", "struck", "episodes", "recovered", "repaired", "median", "P95", "longest",
)  # fmt: skip

CALM = "no fault"
"""What a run that was left alone is said to have had."""


def promises(card: Scorecard) -> Rows:
    """The five promises."""
    return [_promise(each) for each in card.measured]


def nevers(card: Scorecard) -> Rows:
    """What must not happen at all."""
    return [_never(each) for each in card.nevers]


def kinds(card: Scorecard) -> Rows:
    """One line for each kind of fault."""
    return [_kind(each) for each in card.kinds]


def opening(card: Scorecard) -> list[tuple[str, str]]:
    """Which drill it was."""
    head = card.head
    return [
        ("agent", head.agent),
        ("runs", f"{card.runs:,} of {head.runs:,}, {card.struck:,} struck by a fault"),
        ("episodes", f"{card.episodes:,} failures to recover from"),
        ("took", f"{card.took_s / 60:.1f} min, {card.workers} runs side by side"),
        ("seed", str(head.seed)),
        ("scale", scale(card)),
        ("stand-ins", ", ".join(head.stubs) or "none"),
        ("machine", f"{head.machine}; holdfast {head.version}"),
    ]


def scale(card: Scorecard) -> str:
    """What was done about time."""
    if card.head.scale == 1.0:
        return "pauses at full length"
    return (
        f"pauses times {card.head.scale:g}; what was redone is scaled back, and the overhead was "
        f"measured on {card.unscaled} runs at full length"
    )


def closing(card: Scorecard) -> str:
    """The verdict in one line."""
    if card.is_missed:
        return "a promise was MISSED"
    open_ = [each.name for each in card.measured if each.verdict is Verdict.NOT_SHOWN]
    if open_:
        return f"no promise was missed; too few samples to show: {', '.join(open_)}"
    return "every promise was met, and nothing happened that must not"


def number(value: float | None, unit: str) -> str:
    """A measurement as people read it."""
    if value is None:
        return "-"
    match unit:
        case "share":
            return f"{100 * value:.3g} %" if value < 0.9 else f"{100 * value:.5g} %"  # noqa: PLR2004 digits after 99
        case "B":
            return f"{value / 1000:.1f} kB"
        case _:
            return time(value)


def time(value: float | None) -> str:
    """Seconds, with as many digits as say something."""
    if value is None:
        return "-"
    return "never" if value == float("inf") else f"{value:.3g} s"


def _promise(each: Measured) -> tuple[str, ...]:
    sign = "≥" if each.is_least else "≤"
    wanted = f", {each.needed:,} needed" if each.needed else ""
    counted = f"{each.samples:,}" + (f", {each.failures} bad" if each.failures is not None else "")
    return (
        each.name,
        f"{sign} {number(each.target, each.unit)}",
        number(each.value, each.unit),
        "-" if each.bound is None else f"{sign} {number(each.bound, each.unit)}",
        f"{counted}{wanted}",
        str(each.verdict),
    )


def _never(each: Never) -> tuple[str, ...]:
    sure = f"≤ {number(each.bound, 'share')}"
    return each.name, str(each.seen), f"{each.runs:,}", sure, str(each.verdict)


def _kind(each: Kind) -> tuple[str, ...]:
    times = (time(each.median_s), time(each.p95_s), time(each.longest_s))
    counts = (each.runs, each.struck, each.episodes, each.recovered, each.repaired)
    return each.fault, *(f"{count:,}" for count in counts), *times
