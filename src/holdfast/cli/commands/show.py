"""`holdfast show ID`: what happened to a run."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer

from holdfast.capture.paths import parse, pick
from holdfast.cli import apps
from holdfast.cli.config import Config
from holdfast.cli.grid import Grid
from holdfast.cli.items import line
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit, tell
from holdfast.cli.points import point_grid
from holdfast.cli.stores import find_run, opened, status_of
from holdfast.cli.story import Beside, event_grid, header
from holdfast.cli.text import harmless
from holdfast.cli.values import to_json
from holdfast.clock import SystemClock
from holdfast.engine.budget import balances
from holdfast.engine.cancel import children_of
from holdfast.engine.inbox import Inbox
from holdfast.engine.naming import point_name
from holdfast.engine.points import Points
from holdfast.errors import UsageError
from holdfast.report.timeline import Timeline, timeline
from holdfast.store.ledger import Ledger
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.steady import steadily

CLOSING = closing(
    (
        "holdfast show run-42",
        "holdfast show run-42 --last 20",
        "holdfast show run-42 --checkpoints",
        "holdfast show run-42 --tree",
        "holdfast show run-42 --at 7 --path 'messages[-3:].content'",
        "holdfast show run-42 -o jsonl | jq 'select(.kind == \"effect\")'",
    ),
    (0, 1, 2, 3, 7),
)

NO_POINTS = "no checkpoints; --every-turn lists the end of every turn, which can be shown too"


def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the run, or how it begins.")],  # noqa: A002 the public word
    *,
    last: Annotated[
        int | None, typer.Option("--last", min=1, metavar="N", help="Only the last N events.")
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print the recorded traceback of its error.")
    ] = False,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="List its checkpoints and snapshots.")
    ] = False,
    every_turn: Annotated[
        bool, typer.Option("--every-turn", help="List the end of every turn as well.")
    ] = False,
    tree: Annotated[
        bool, typer.Option("--tree", help="List the run, its children, and theirs.")
    ] = False,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="CP", help="Print the state there: a checkpoint, or a turn."),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="PATH", help="Print this part of the state."),
    ] = None,
    store: StorePath = None,
    app: Apps = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show what happened to a run: turns, steps, effects, restarts.

    Needs none of the agent's code: a value whose class is not known here is shown by its name
    and size, unless `--app` names its module. With `--at` or `--path` the state itself is printed,
    at the newest point unless said otherwise; it needs the modules of the classes it holds.
    """
    config = settings(store, output, app, as_json=as_json)
    _refuse_two(
        {
            "--at or --path": at is not None or path is not None,
            "--checkpoints or --every-turn": checkpoints or every_turn,
            "--tree": tree,
            "--last or --trace": last is not None or trace,
        }
    )

    def read() -> None:
        run = find_run(found.reader, id, config.store)
        if at is not None or path is not None:
            _show_state(found, run, config, at, path)
        elif checkpoints or every_turn:
            _show_points(found, run, config, every_turn=every_turn)
        elif tree:
            _show_tree(found, run, config)
        else:
            _show_story(found, run, config, last, has_trace=trace, is_known=app is not None)

    with opened(config.store) as found:
        steadily(read)  # It prints when everything is read.


def _refuse_two(asked: dict[str, bool]) -> None:
    """One thing is shown at a time; of two that were asked for, one would be passed over."""
    wanted = [name for name, is_asked in asked.items() if is_asked]
    if len(wanted) > 1:
        msg = f"{', '.join(wanted)}: each shows something else; give one of them"
        raise UsageError(msg)


def _show_story(
    found: Opened, run: Run, config: Config, last: int | None, *, has_trace: bool, is_known: bool
) -> None:
    if is_known:  # Modules that only the settings name may not even import, and are not needed.
        apps.load(config.app)
    is_held = found.leases.is_held(run.row.no)
    told = timeline(found.reader, run)
    items = Inbox(found, SystemClock()).of(run)
    spent = balances(Ledger(found.committer, found.reader, run).read())
    status = status_of(told.status, is_held=is_held)
    events = told.events[-last:] if last else told.events
    summary = {**_summary(told, status), "inbox": [line(item) for item in items], "budgets": spent}
    grids: list[Grid | str] = [header(told, status, config, Beside(items, spent), is_held=is_held)]
    if has_trace and told.trace:
        grids += ["", harmless(told.trace.rstrip())]
    grids += ["", event_grid(events)]
    emit(
        config.output,
        document={"run": summary, "events": events},
        lines=({"run": told.id, **msgspec.structs.asdict(event)} for event in events),
        grids=grids,
    )


def _show_state(found: Opened, run: Run, config: Config, at: str | None, path: str | None) -> None:
    steps = parse(path or "")
    apps.load(config.app)
    name = point_name(run.body.id, at) or run.body.id
    told, state = Points(found.reader, config.store).restore(name, run)
    value = pick(state, steps)
    for why in told.degraded.values():
        tell(f"degraded: {why}")
    document = {"checkpoint": told, "path": path, "value": value}
    emit(config.output, document=document, lines=[document], grids=[to_json(value)])


def _show_tree(found: Opened, run: Run, config: Config) -> None:
    lines = list(_family(found, run, 0))
    rows = [
        ("  " * int(str(line["depth"])) + str(line["id"]), str(line["agent"]), str(line["status"]))
        for line in lines
    ]
    emit(
        config.output,
        document={"run": run.body.id, "family": lines},
        lines=lines,
        grids=[Grid(columns=("run", "agent", "status"), rows=rows)],
    )


def _family(found: Opened, run: Run, depth: int) -> Iterator[dict[str, object]]:
    """The run and those below it, each after its parent."""
    is_held = found.leases.is_held(run.row.no)
    status = status_of(run.body.status, is_held=is_held)
    body = run.body
    yield {"id": body.id, "depth": depth, "agent": body.agent, "status": status}
    for child in children_of(found.reader, run):
        yield from _family(found, child, depth + 1)


def _show_points(found: Opened, run: Run, config: Config, *, every_turn: bool) -> None:
    points = Points(found.reader, config.store).of(run, every_turn=every_turn)
    emit(
        config.output,
        document={"run": run.body.id, "checkpoints": points},
        lines=(point.model_dump() for point in points),
        grids=[point_grid(points) if points else NO_POINTS],
    )


def _summary(told: Timeline, status: str) -> dict[str, object]:
    known = msgspec.structs.asdict(told)
    del known["events"]
    known["in_doubt"] = known.pop("doubts")
    return {**known, "status": status}
