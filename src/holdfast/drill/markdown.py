"""A scorecard as Markdown, to be committed beside the code that it speaks of."""

from collections.abc import Sequence

from holdfast.drill import words
from holdfast.drill.faults import FAULTS
from holdfast.drill.scorecard import Scorecard
from holdfast.report.episodes import PARTS

BOUNDS = """\
A promise is *met* only if its 95 % bound is on the right side of the target (Clopper-Pearson for
shares, bootstrap for means)."""
TIMES = """\
Times run from the strike until the run had caught up with what it had, and one record more. A
damaged store is repaired as a script of an operator's would do it (`holdfast repair --apply`), then
the run goes on. Processes are forked from one that has everything imported, as the spare process of
`supervise` has."""


def markdown(card: Scorecard) -> str:
    """The whole page."""
    said = words.closing(card)
    parts = [
        f"# Drill of {card.head.agent}",
        f"Made by the machine: `holdfast drill report`. {said[:1].upper()}{said[1:]}.",
        _table(("", " "), words.opening(card)),
        f"```text\n{card.head.command}\n```",
        "## Promises",
        _table(words.PROMISES, words.promises(card)),
        BOUNDS,
        "## What must not happen",
        _table(words.NEVERS, words.nevers(card)),
        "Counted against a ledger outside the store and an undisturbed run of the same case.",
        "## Faults",
        _table(words.KINDS, words.kinds(card)),
        _about(card),
        TIMES,
        *_where(card),
        *_broken(card),
    ]
    return "\n\n".join(parts) + "\n"


def _about(card: Scorecard) -> str:
    known = [(name, FAULTS[name].traits) for name in card.head.faults if name in FAULTS]
    return "\n".join(f"- **{name}**: {getattr(traits, 'about', '')}" for name, traits in known)


def _where(card: Scorecard) -> list[str]:
    if not card.parts:
        return []
    mean = [tuple(words.time(card.parts[name]) for name in PARTS)]
    return ["## Where the time of a mean recovery went", _table(PARTS, mean)]


def _broken(card: Scorecard) -> list[str]:
    if not card.broken:
        return []
    rows = [(str(each.no), each.fault or "none", each.why) for each in card.broken]
    lines = "\n".join(each.repeat for each in card.broken)
    return [
        "## Runs that broke a promise",
        _table(("run", "fault", "why"), rows),
        f"Each is repeated by one line:\n```text\n{lines}\n```",
    ]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
