"""`holdfast gc`: what would go, why the rest stays, and, if asked, its removal."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer

from holdfast.cli.config import RULES
from holdfast.cli.grid import Grid
from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.cli.text import plural, size
from holdfast.engine.handle import open as open_store
from holdfast.engine.retain import Collected, Plan
from holdfast.policy.retention import Fate, Retention

CLOSING = closing(
    (
        "holdfast gc --dry-run --last 20 --within 7d",
        "holdfast gc --runs-within 30d",
        "holdfast gc --last 5 --every 100 --quota 2GB",
    ),
    (0, 1, 2, 3, 7),
)
SHOWN = 40

Last = Annotated[int | None, typer.Option(min=1, metavar="N", help="Checkpoints: the last N.")]
Within = Annotated[str | None, typer.Option(metavar="AGE", help="Checkpoints: younger than 7d.")]
Every = Annotated[int | None, typer.Option(min=1, metavar="N", help="Checkpoints: one in N turns.")]
RunsLast = Annotated[int | None, typer.Option(min=1, metavar="N", help="Ended runs: the last N.")]
RunsWithin = Annotated[
    str | None, typer.Option(metavar="AGE", help="Ended runs: younger than 30d.")
]
Quota = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Remove the oldest ended runs beyond 2GB.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would go and why the rest stays; do nothing.")
]


def gc(
    *,
    last: Last = None,
    within: Within = None,
    every: Every = None,
    runs_last: RunsLast = None,
    runs_within: RunsWithin = None,
    quota: Quota = None,
    dry_run: DryRun = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Remove what no rule keeps.

    A rule keeps; without a rule for checkpoints, or for runs, all of them stay. Whatever the rules
    say, these stay too: what is pinned, what a fork grows from, runs that have not ended, the
    newest point of a run, and its two newest checkpoints that verify. Large values that nothing
    names any more go in any case. A rule that is not given here is taken from [retention] in
    holdfast.toml.
    """
    flags = {"last": last, "within": within, "every": every, "quota": quota}
    flags |= {"runs_last": runs_last, "runs_within": runs_within}
    asked = {RULES + name: value for name, value in flags.items()}
    config = settings(store, output, as_json=as_json, more=asked)
    rules = config.retention or Retention()
    with open_store(config.store, must_exist=True) as opened:
        if dry_run:
            plan = opened.plan_gc(rules)
            document, grids = msgspec.to_builtins(plan), _told(plan)
            lines: list[dict[str, Any]] = list(_lines(plan))
        else:
            done = opened.gc(rules)
            document, grids = msgspec.to_builtins(done), [_done(done)]
            lines = [{"kind": "collected", **document}]
    emit(config.output, document=document, lines=lines, grids=grids)


def _told(plan: Plan) -> list[Grid | str]:
    grids: list[Grid | str] = []
    for word, fates in (("run", plan.runs), ("checkpoint", plan.checkpoints)):
        if fates:
            shown = [*(f for f in fates if not f.is_kept), *(f for f in fates if f.is_kept)]
            grids.append(Grid(columns=(word, "fate", "why"), rows=list(map(_row, shown[:SHOWN]))))
            if len(fates) > SHOWN:
                grids.append(f"… and {plural(len(fates) - SHOWN, word)} more (--json has all)")
            grids.append("")
    runs = sum(not fate.is_kept for fate in plan.runs)
    grids.append(
        f"would go: {plural(runs, 'run')} ({size(plan.bytes)}), what {plural(plan.rows, 'row')} of "
        f"older points held, {plural(plan.values, 'large value')} that nothing names "
        f"then{_parts(plan.parts)}"
    )
    return grids


def _row(fate: Fate) -> tuple[str, str, str]:
    return fate.id, "stays" if fate.is_kept else "goes", "; ".join(fate.why) or "no rule keeps it"


def _lines(plan: Plan) -> Iterator[dict[str, Any]]:
    for kind, fates in (("run", plan.runs), ("checkpoint", plan.checkpoints)):
        for fate in fates:
            yield {"kind": kind, "id": fate.id, "is_kept": fate.is_kept, "why": fate.why}


def _done(done: Collected) -> str:
    passed = f"; passed over, in use: {', '.join(done.passed_over)}" if done.passed_over else ""
    return (
        f"removed {plural(len(done.runs), 'run')}, what {plural(done.rows, 'row')} of older points "
        f"held, {plural(done.values, 'large value')} that nothing named{_parts(done.parts)}{passed}"
    )


def _parts(count: int) -> str:
    return f", {plural(count, 'file')} that a crash left half-written" if count else ""
