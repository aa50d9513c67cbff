"""The page `docs/mutants.md`: every planted fault and who noticed; `make mutants` with --page."""

# ruff: noqa: E501 the lines of the page are its own

import datetime as dt
import re
from collections.abc import Sequence

from tests.mutants.plant import Verdict
from tests.mutants.table import FAULTS, NO_CODE

START = """\
# Planted faults

Made by machine (`make mutants ARGS="--page docs/mutants.md"`); nobody edits it by hand. Each fault was planted in a copy of the source, and the test named beside it was run:
*noticed* says how it failed. A fault that no test notices, or whose text does not even run, fails the gate, and so do tests that fail without any fault.

"""


def text(verdicts: Sequence[Verdict], commit: str, day: dt.date) -> str:
    """The page of a whole run."""
    noticed = sum(each.is_killed for each in verdicts)
    kinds = {each.mutant.fault for each in verdicts}
    lines = [
        f"**{noticed} of {len(verdicts)}** noticed, {len(kinds)} of {len(FAULTS)} kinds; commit {commit}, {day}.",
        "",
        "| kind | planted | by | noticed |",
        "|---|---|---|---|",
        *(_row(each) for kind in FAULTS for each in verdicts if each.mutant.fault == kind),
        "",
        "## Not planted",
        *(f"- *{fault}*: {why}." for fault, why in NO_CODE.items()),
    ]
    return START + "\n".join(lines) + "\n"


def _row(verdict: Verdict) -> str:
    mutant = verdict.mutant
    file, _, test = mutant.killed_by.partition("::")
    words = "SURVIVED: " * (not verdict.is_killed) + verdict.why
    told = _plain(words)
    return f"| {mutant.fault} | {mutant.name} | `{file.removeprefix('tests/')}` {_plain(test)} | {told} |"


def _plain(words: str) -> str:
    """Words that are no markup in a cell of a table."""
    named = re.sub(r"/[^\s']*/temp/", "", words)  # Where the copy was says nothing to anybody.
    return "`" + named.replace("|", "¦").replace("`", "'") + "`"
