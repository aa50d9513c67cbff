"""A scorecard as one HTML page that needs nothing else: tables, and charts drawn as SVG."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from holdfast.drill import words
from holdfast.drill.scorecard import Kind, Scorecard
from holdfast.report.episodes import PARTS
from holdfast.report.metrics import Verdict

WIDTH, BAR, GAP = 640, 22, 8
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2426; --paper: #fbfaf7; --line: #d5d9d6;
  --kelp: #2f6f57; --sand: #c98a2b; --coral: #b8402f; --soft: #8a9793; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebe8; --paper: #14191a; --line: #344043;
  --kelp: #63b894; --sand: #e0b060; --coral: #ef7f6d; --soft: #7d8b88; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.told { border-left: .3rem solid var(--kelp); padding: .3rem 1rem; font-weight: 600; }
.told.missed { border-color: var(--coral); } .told.not-shown { border-color: var(--sand); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; font-size: .85rem; color: var(--soft); }
.met, .never-seen { color: var(--kelp); font-weight: 600; } .missed { color: var(--coral);
  font-weight: 600; } .not-shown { color: var(--sand); font-weight: 600; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 12px; }
.wide { overflow-x: auto; } code, pre { font-size: .85rem; } pre { overflow-x: auto; }
"""
_COLOURS = ("--soft", "--sand", "--coral", "--line", "--kelp")


def page(card: Scorecard) -> str:
    """The whole page."""
    missed, shown = card.is_missed, all(e.verdict is Verdict.MET for e in card.measured)
    tone = "missed" if missed else "met" if shown else "not-shown"
    title = f"Drill of {card.head.agent}"
    body = "\n".join(_body(card, title, tone))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _body(card: Scorecard, title: str, tone: str) -> Iterator[str]:
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="told {tone}">{escape(words.closing(card))}</p>'
    yield _table((), words.opening(card))
    yield f"<pre>{escape(card.head.command)}</pre>"
    yield "<h2>Promises</h2>" + _table(words.PROMISES, words.promises(card))
    yield "<h2>What must not happen</h2>" + _table(words.NEVERS, words.nevers(card))
    yield "<h2>Recovery times, all episodes</h2>" + _histogram(card)
    yield "<h2>Faults</h2>" + _table(words.KINDS, words.kinds(card)) + _bars(card.kinds)
    if card.parts:
        yield "<h2>Where the time of a mean recovery went</h2>" + _shares(card)
    if card.broken:
        rows = [(str(each.no), each.fault or "none", each.why) for each in card.broken]
        yield "<h2>Runs that broke a promise</h2>" + _table(("run", "fault", "why"), rows)
        lines = "\n".join(each.repeat for each in card.broken)
        yield f"<p>Each is repeated by one line:</p><pre>{escape(lines)}</pre>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = [f"<tr>{head}</tr>"] if columns else []
    for row in rows:
        cells = "".join(f"<td{_tone(cell)}>{escape(cell)}</td>" for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'


def _tone(cell: str) -> str:
    return f' class="{cell.replace(" ", "-")}"' if cell in set(Verdict) else ""


def _histogram(card: Scorecard) -> str:
    """How many episodes took how long, on a scale of powers, and where the promise lies."""
    times = [max(0.01, each) for each in card.times_s]
    if not times:
        return "<p>There were none.</p>"
    limit = card.head.promises.recovery_s
    low, high = math.log10(0.01), math.log10(max(limit * 2, times[-1]))
    bins = [0] * 40
    for each in times:
        place = int((math.log10(each) - low) / (high - low) * len(bins))
        bins[min(len(bins) - 1, place)] += 1
    step, most, tall = WIDTH / len(bins), max(bins), 140
    bars = [
        f'<rect x="{n * step:.1f}" y="{tall - tall * count / most:.1f}" width="{step - 1:.1f}" '
        f'height="{tall * count / most:.1f}" fill="var(--kelp)">'
        f"<title>{count} episodes</title></rect>"
        for n, count in enumerate(bins)
        if count
    ]
    at = (math.log10(limit) - low) / (high - low) * WIDTH
    places = {s: (math.log10(s) - low) / (high - low) * WIDTH for s in (0.01, 0.1, 1, 10)}
    marks = "".join(f'<text x="{x:.1f}" y="{tall + 16}">{s:g} s</text>' for s, x in places.items())
    line = (
        f'<line x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{tall}" stroke="var(--coral)" '
        f'stroke-dasharray="4 3"/><text x="{at - 4:.1f}" y="12" text-anchor="end">'
        f"promised: {limit:g} s</text>"
    )
    return _svg(tall + 24, "".join(bars) + marks + line)


def _bars(kinds: Sequence[Kind]) -> str:
    """Median and P95 of each kind of fault."""
    shown = [each for each in kinds if each.p95_s is not None]
    most = max((each.p95_s or 0.0 for each in shown), default=0.0) or 1.0
    left, room = 140, WIDTH - 290  # A name before each bar, its times behind it.
    parts = []
    for n, each in enumerate(shown):
        y = n * (BAR + GAP)
        wide, middle = room * (each.p95_s or 0) / most, room * (each.median_s or 0) / most
        parts.append(
            f'<text x="0" y="{y + 15}">{escape(each.fault)}</text>'
            f'<rect x="{left}" y="{y}" width="{wide:.1f}" height="{BAR}" fill="var(--soft)"/>'
            f'<rect x="{left}" y="{y}" width="{middle:.1f}" height="{BAR}" fill="var(--kelp)"/>'
            f'<text x="{left + wide + 6:.1f}" y="{y + 15}">{words.time(each.median_s)} / '
            f"{words.time(each.p95_s)}</text>"
        )
    note = "<p>Median (dark) and P95 (light).</p>"
    return _svg(len(shown) * (BAR + GAP), "".join(parts)) + note if shown else ""


def _shares(card: Scorecard) -> str:
    """The parts of a mean recovery, as one bar."""
    whole = sum(card.parts.values()) or 1.0
    x, parts = 0.0, []
    for n, name in enumerate(PARTS):
        wide = WIDTH * card.parts[name] / whole
        y = 44 + 18 * n
        told = f"{name} {words.time(card.parts[name])}"
        parts.append(
            f'<rect x="{x:.1f}" y="0" width="{wide:.1f}" height="30" fill="var({_COLOURS[n]})"/>'
            f'<rect x="0" y="{y}" width="12" height="12" fill="var({_COLOURS[n]})"/>'
            f'<text x="18" y="{y + 11}">{told}</text>'
        )
        x += wide
    return _svg(44 + 18 * len(PARTS), "".join(parts))


def _svg(height: float, inside: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img">{inside}</svg>'
