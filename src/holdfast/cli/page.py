"""Advice as one self-contained HTML page: tables and charts, light and dark, no other files."""

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from holdfast.cli.advice import Told, curve, distribution, grids
from holdfast.cli.grid import Grid
from holdfast.cli.text import duration
from holdfast.store.codec.veil import redact

WIDTH, HEIGHT, LEFT, BELOW = 640, 240, 56, 36
LETTER = 7  # how wide one is, about

STYLE = """
:root { color-scheme: light dark; --fg: #1b1f24; --bg: #fff; --dim: #6a737d; --line: #d0d7de;
  --best: #0969da; --none: #bc4c00; }
@media (prefers-color-scheme: dark) { :root { --fg: #e6edf3; --bg: #0d1117; --dim: #8b949e;
  --line: #30363d; --best: #58a6ff; --none: #f0883e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg);
  max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
.right { text-align: right; }
figure { margin: 1.5rem 0; } figcaption { color: var(--dim); } svg { max-width: 100%; }
text { fill: var(--dim); font: 12px system-ui, sans-serif; }
"""


def page(told: Told) -> str:
    """The page."""
    title = escape(redact(f"Advice: {told.advice.case}"))
    body = "".join(_part(each) for each in grids(told) if not isinstance(each, str) or each)
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body><h1>{title}</h1>{_recovery(told)}{_cost(told)}{body}</body></html>\n"
    )


def _part(part: Grid | str) -> str:
    if isinstance(part, str):
        return f"<p>{escape(redact(part))}</p>"
    head = ""
    if part.has_header:
        head = "".join(_cell("th", name, name in part.right) for name in part.columns)
        head = f"<tr>{head}</tr>"
    rows = "".join(
        "<tr>"
        + "".join(
            _cell("td", cell, name in part.right)
            for name, cell in zip(part.columns, row, strict=True)
        )
        + "</tr>"
        for row in part.rows
    )
    return f"<table>{head}{rows}</table>"


def _cell(tag: str, text: str, is_right: bool) -> str:  # noqa: FBT001 a column is or is not
    kind = ' class="right"' if is_right else ""
    return f"<{tag}{kind}>{escape(redact(text))}</{tag}>"


def _recovery(told: Told) -> str:
    points = distribution(told)
    if not points:
        return ""
    at = [math.log(point["seconds"]) for point in points]
    marks = [(x, duration(point["seconds"])) for x, point in zip(at, points, strict=True)]
    return _figure(
        "Share of recoveries that take no longer (blue: the best way, orange: nothing saved)",
        [
            ("best", list(zip(at, [point["best"] for point in points], strict=True))),
            ("none", list(zip(at, [point["none"] for point in points], strict=True))),
        ],
        marks,
    )


def _cost(told: Told) -> str:
    points = curve(told)
    if len(points) < 2:  # noqa: PLR2004 one point is no curve
        return ""
    at = [math.log(point["interval_s"]) for point in points]
    marks = [(x, duration(point["interval_s"])) for x, point in zip(at, points, strict=True)]
    line = list(zip(at, [point["total_usd"] for point in points], strict=True))
    return _figure(
        "Dollars per task against the interval between checkpoints", [("best", line)], marks
    )


def _figure(
    caption: str,
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    marks: Sequence[tuple[float, str]],
) -> str:
    xs = [x for _, line in lines for x, _ in line]
    ys = [y for _, line in lines for _, y in line]
    low, high = min(0.0, *ys), max(ys) or 1.0
    left, right = min(xs), max(xs)

    def across(x: float) -> float:
        return LEFT + (WIDTH - LEFT - 40) * (x - left) / ((right - left) or 1.0)

    def down(y: float) -> float:
        return 8 + (HEIGHT - BELOW - 8) * (1 - (y - low) / ((high - low) or 1.0))

    drawn = [
        f'<line x1="{LEFT}" y1="{down(y):.1f}" x2="{WIDTH}" y2="{down(y):.1f}" '
        f'stroke="var(--line)"/><text x="0" y="{down(y) + 4:.1f}">{y:.3g}</text>'
        for y in (low, (low + high) / 2, high)
    ]
    drawn += [
        f'<text x="{x:.1f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(text)}</text>'
        for x, text in _apart((across(x), text) for x, text in marks)
    ]
    for name, line in lines:
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in line)
        drawn.append(
            f'<polyline points="{path}" fill="none" stroke="var(--{name})" stroke-width="2"/>'
        )
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(caption)}">'
    return f"<figure>{svg}{''.join(drawn)}</svg><figcaption>{escape(caption)}</figcaption></figure>"


def _apart(marks: Iterable[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """Those marks below a chart that have room: beside the one before, and on the page."""
    free = 0.0
    for x, text in marks:
        half = len(text) * LETTER / 2
        if x - half >= free and x + half <= WIDTH:
            yield x, text
            free = x + half + LETTER
