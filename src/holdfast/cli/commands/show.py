"""`holdfast show ID`: what happened to a run."""

from typing import Annotated

import msgspec
import typer

from holdfast.cli.grid import Grid
from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.cli.stores import find_run, opened, status_of
from holdfast.cli.story import event_grid, header
from holdfast.report.timeline import Timeline, timeline

CLOSING = closing(
    (
        "holdfast show run-42",
        "holdfast show run-42 --last 20",
        "holdfast show run-42 -o jsonl | jq 'select(.kind == \"effect\")'",
    ),
    (0, 2, 3, 7),
)


def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the run, or how it begins.")],  # noqa: A002 the public word
    *,
    last: Annotated[
        int | None, typer.Option("--last", min=1, metavar="N", help="Only the last N events.")
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Print the recorded traceback of its error.")
    ] = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show what happened to a run: turns, steps, effects, restarts.

    Needs none of the agent's code: a value whose class is not known here is shown by its name
    and size.
    """
    config = settings(store, output, as_json=as_json)
    with opened(config.store) as found:
        run = find_run(found.reader, id, config.store)
        is_held = found.leases.is_held(run.row.no)
        told = timeline(found.reader, run)
    status = status_of(told.status, is_held=is_held)
    events = told.events[-last:] if last else told.events
    summary = _summary(told, status)
    grids: list[Grid | str] = [header(told, status, config, is_held=is_held)]
    if trace and told.trace:
        grids += ["", told.trace.rstrip()]
    grids += ["", event_grid(events)]
    emit(
        config.output,
        document={"run": summary, "events": events},
        lines=({"run": told.id, **msgspec.structs.asdict(event)} for event in events),
        grids=grids,
    )


def _summary(told: Timeline, status: str) -> dict[str, object]:
    known = msgspec.structs.asdict(told)
    del known["events"]
    known["in_doubt"] = known.pop("doubts")
    return {**known, "status": status}
