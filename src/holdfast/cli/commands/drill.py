"""`holdfast drill run AGENT`: an agent under injected faults, and a verdict on its promises."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.drills import Asked, carry_out, show
from holdfast.cli.options import AsJson, Format, Output, closing, settings
from holdfast.cli.output import put
from holdfast.drill.faults import FAULTS
from holdfast.drill.markdown import markdown
from holdfast.drill.page import page
from holdfast.drill.prometheus import exposition
from holdfast.drill.result import read
from holdfast.drill.scorecard import scorecard
from holdfast.errors import UsageError

EXIT_MISSED = 6
RUNS, RUNS_MAX, SEED_MAX = 200, 1_000_000, 10_000
EXITS = (0, 1, 2, EXIT_MISSED, 130)
CLOSING_RUN = closing(
    (
        "holdfast drill run support:support --scenario support.toml",
        "holdfast drill run shop:trader --runs 500 --faults kill,hang --stub pay=shop:fake_pay",
        "holdfast drill run shop:trader --fault my_faults:PowerSag --allow-effects",
        "holdfast drill run support:support --scenario support.toml --seed 7 --only 1234",
    ),
    EXITS,
)
CLOSING_REPORT = closing(
    (
        "holdfast drill report drill.jsonl",
        "holdfast drill report drill.jsonl --as markdown > DRILL.md",
        "holdfast drill report drill.jsonl --as html > drill.html",
    ),
    (0, 2, EXIT_MISSED),
)

drill = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Run an agent under injected faults and see which promises it keeps.",
    epilog=CLOSING_RUN,
)

Runs = Annotated[int, typer.Option(min=1, max=RUNS_MAX, help="How many runs.")]
Faults = Annotated[
    str | None,
    typer.Option(metavar="A,B", help=f"Which faults, of {', '.join(FAULTS)}."),
]
OwnFault = Annotated[
    list[str] | None,
    typer.Option("--fault", metavar="MODULE:NAME", help="A fault of yours; may be repeated."),
]
FromFile = Annotated[
    Path | None, typer.Option("--scenario", metavar="FILE", help="Input, stand-ins, promises.")
]
Workers = Annotated[int, typer.Option(min=1, max=256, help="How many runs side by side.")]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Chooses faults and moments.", show_default="new")
]
Scale = Annotated[float | None, typer.Option(help="What pauses of stand-ins are multiplied by.")]
Share = Annotated[
    float | None, typer.Option(min=0.0, max=1.0, help="The part of the runs with a fault.")
]
Kept = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="A new directory for its stores, which is kept."),
]
AllowEffects = Annotated[
    bool, typer.Option("--allow-effects", help="Effects without a stand-in are done for real.")
]
Stubs = Annotated[
    list[str] | None,
    typer.Option("--stub", metavar="TOOL=MODULE:FAKE", help="Stands in for a step or effect."),
]
Only = Annotated[int | None, typer.Option(min=0, metavar="N", help="Only the run of this number.")]
File = Annotated[
    Path | None,
    typer.Option("--results", metavar="FILE", help="A line for each run; a drill goes on there."),
]


@drill.callback()
def _noun() -> None:
    """Drills: runs under injected faults, whose promises are then measured."""


@drill.command("run", epilog=CLOSING_RUN)
def run_(
    agent: Annotated[str, typer.Argument(metavar="MODULE:AGENT", help="The agent to drill.")],
    *,
    runs: Runs = RUNS,
    faults: Faults = None,
    fault: OwnFault = None,
    scenario: FromFile = None,
    workers: Workers = 2,
    seed: Seed = None,
    scale: Scale = None,
    share: Share = None,
    store: Kept = None,
    allow_effects: AllowEffects = False,
    stub: Stubs = None,
    only: Only = None,
    file: File = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Run an agent under injected faults and say which promises it keeps.

    Each run is a real process of its own, killed, hung, starved or lied to at a moment that the
    seed chooses, kept alive by `supervise`, and compared with an undisturbed run. Everything
    happens in a directory that is removed afterwards: no store of yours is touched.
    """
    how = settings(output=output, as_json=as_json).output
    asked = Asked(
        agent=agent,
        runs=runs,
        seed=_seed(file) if seed is None else seed,
        faults=faults,
        own_faults=tuple(fault or ()),
        scenario=scenario,
        scale=scale,
        share=share,
        stubs=tuple(stub or ()),
        is_allowed=allow_effects,
        store=store,
        only=only,
    )
    card = carry_out(asked, workers=workers, file=file)
    show(card, how, None if only is not None else file)
    return EXIT_MISSED if card.is_missed else 0


def _seed(file: Path | None) -> int:
    """That of the drill in the file, which the same command goes on with; else a new one."""
    if file is not None and file.exists():
        return read(file).head.seed
    return secrets.randbelow(SEED_MAX)


@drill.command("report", epilog=CLOSING_REPORT)
def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `drill run --results` wrote.")],
    *,
    form: Annotated[
        str, typer.Option("--as", metavar="FORM", help="table, markdown, html or metrics.")
    ] = "table",
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Show the scorecard of a drill: as a table, JSON, Markdown, an HTML page, or metrics.

    Metrics are in Prometheus' text format, to be laid beside those of `holdfast report metrics`.
    """
    how = settings(output=output, as_json=as_json).output
    results = read(file)
    card = scorecard(results)
    pages: dict[str, Callable[[], str]] = {
        "markdown": lambda: markdown(card),
        "html": lambda: page(card),
        "metrics": lambda: exposition(results),
    }
    if form in pages and how == Format.TABLE:
        put(pages[form]().rstrip("\n"))
    elif form == "table":
        show(card, how, None)
    elif form in pages:
        raise UsageError(f"--as {form} and -o {how} ask for two forms; say one of them")
    else:
        forms = "table, markdown, html or metrics"
        msg = f"--as takes {forms}, not {form!r}; for JSON say -o json alone"
        raise UsageError(msg)
    return EXIT_MISSED if card.is_missed else 0
