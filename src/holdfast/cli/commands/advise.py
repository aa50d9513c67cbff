"""`holdfast advise [CASE]`: how to save, how often, and what it costs."""

import random
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from holdfast.cli.advice import Told, document, grids, row
from holdfast.cli.cases import promise_said, read_case
from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit, put, tell
from holdfast.cli.stores import opened
from holdfast.clock import SystemClock
from holdfast.errors import BadCase, UsageError
from holdfast.model.case import Case
from holdfast.policy.advise.change import changes, contradictions, long_units
from holdfast.policy.advise.explain import explain as answer_rules
from holdfast.policy.advise.rank import Advice, NothingWorks
from holdfast.policy.advise.rank import advise as rank
from holdfast.policy.advise.simulate import Simulated
from holdfast.policy.advise.simulate import simulate as play
from holdfast.policy.advise.tokens import seen_by
from holdfast.report.history import case_of

CLOSING = closing(
    (
        "holdfast advise --example > case.toml",
        "holdfast advise case.toml --explain",
        "holdfast advise --from-store --sla max_recovery=30s,availability=0.999",
        "holdfast advise case.toml --simulate 20000 --html advice.html",
    ),
    (0, 1, 2, 3, 6, 7),
)
EXIT_MISSED = 6
PLAYED_MAX = 1_000_000
EXAMPLE = Path(__file__).parents[1] / "case.toml"


def advise(
    case: Annotated[
        Path | None, typer.Argument(metavar="CASE", help="A case as TOML; see --example.")
    ] = None,
    *,
    from_store: Annotated[
        bool, typer.Option("--from-store", help="Take the case from what this store has seen.")
    ] = False,
    sla: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A promise instead of the case's own."),
    ] = None,
    simulate: Annotated[
        int, typer.Option(metavar="N", help="Play N tasks by chance beside the exact model.")
    ] = 0,
    explain: Annotated[
        bool, typer.Option("--explain", help="Answer the well-known rules of thumb.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a case with every key, and stop.")
    ] = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Say how to save: which way, how often, and what it costs.

    Ranks ways to save by what a task costs with them, within what is promised; says which limit
    decides and, where none keeps all limits, what would. The model is exact; what it is given is
    yours to calibrate, by drills or from the store's own history.
    """
    if example:
        put(EXAMPLE.read_text(encoding="utf-8").rstrip())
        return 0
    config = settings(store, output, as_json=as_json)
    if not 0 <= simulate <= PLAYED_MAX:
        raise UsageError(f"--simulate takes a number from 1 to {PLAYED_MAX:,}, not {simulate}")
    asked = _case(case, config.store, from_store=from_store)
    if sla:
        asked = replace(asked, promise=promise_said(asked.promise, sla))
    told = tell_all(asked, simulate=simulate, is_explained=explain)
    emit(
        config.output,
        document={"advice": document(told)},
        lines=[row(option, told.advice) for option in told.advice.options],
        grids=grids(told),
    )
    if html is not None:
        _write(html, told)
    return EXIT_MISSED if told.advice.best.misses else 0


def tell_all(case: Case, *, simulate: int = 0, is_explained: bool = False) -> Told:
    """Everything there is to say of a case."""
    try:
        advice = rank(case)
    except NothingWorks as error:
        msg = "work fails so often that no task ever ends, however it is saved; shorter units do"
        raise BadCase(case.name, msg) from error
    notes = contradictions(case, advice.bounds)
    if (text := long_units(case, advice.bounds, advice.best.strategy)) is not None:
        notes.append(text)
    if advice.hopeless:
        notes.append(f"a task practically never ends with: {', '.join(advice.hopeless)}")
    return Told(
        case=case,
        advice=advice,
        changes=changes(case, advice.best),
        notes=notes,
        rules=answer_rules(case, advice) if is_explained else [],
        simulated=_played(case, advice, simulate) if simulate else None,
    )


def _played(case: Case, advice: Advice, runs: int) -> Simulated:
    chance = random.Random(0)  # noqa: S311 the same case, the same page
    work = seen_by(case, advice.best.strategy)
    return play(
        work.units,
        work.causes,
        advice.best.strategy,
        case.promise,
        runs=runs,
        random=chance,
    )


def _case(file: Path | None, path: Path, *, from_store: bool) -> Case:
    if (file is None) != from_store:
        msg = "name a case (`holdfast advise case.toml`) or --from-store, one of them"
        raise UsageError(f"{msg}; `holdfast advise --example` prints a case to begin with")
    if file is not None:
        return read_case(file)
    with opened(path) as found:
        return case_of(found, SystemClock().now())


def _write(file: Path, told: Told) -> None:
    from holdfast.cli.page import page  # noqa: PLC0415 few ask for it

    try:
        file.write_text(page(told), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--html {file}: it cannot be written ({error})") from error
    tell(f"written to {file}")
