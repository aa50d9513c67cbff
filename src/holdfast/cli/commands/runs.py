"""`holdfast runs`: the runs of a store, newest first."""

import datetime as dt
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from holdfast.cli.grid import Grid
from holdfast.cli.noun import Noun
from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit, is_terminal
from holdfast.cli.stores import find_run, opened, status_of_info
from holdfast.cli.text import duration, moment, short
from holdfast.clock import SystemClock
from holdfast.engine.handle import RUNS_MAX, Store
from holdfast.engine.handle import open as open_store
from holdfast.model.run import RunInfo, Status
from holdfast.report.event import when

CLOSING = closing(
    (
        "holdfast runs",
        "holdfast runs list --status interrupted --limit 200",
        "holdfast runs -o jsonl | jq -r .id",
        "holdfast runs cancel run-42 --reason 'no longer needed'",
    ),
    (0, 1, 2, 3, 7),
)
CANCEL_CLOSING = closing(
    (
        "holdfast runs cancel run-42",
        "holdfast runs cancel run-42 --reason 'no longer needed'",
    ),
    (0, 1, 2, 3, 7),
)
COLUMNS = ("id", "agent", "status", "created", "took", "error")


class Wanted(StrEnum):
    """Runs of one status only."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"
    FAILED = "failed"
    IN_DOUBT = "in-doubt"
    DIVERGED = "diverged"
    WAITING = "waiting"
    BLOCKED = "blocked"
    ROLLING_BACK = "rolling-back"
    CANCELLED = "cancelled"


runs = typer.Typer(
    cls=Noun,
    epilog=CLOSING,
    rich_markup_mode=None,
    add_completion=False,
    help="List runs, newest first; without an act, `runs` is `runs list`.",
)


@runs.callback()
def _noun() -> None:
    """Runs of a store."""


@runs.command("list", epilog=CLOSING)
def list_(
    *,
    status: Annotated[
        Wanted | None, typer.Option(metavar="STATUS", help=f"One of {', '.join(Wanted)}.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=RUNS_MAX, metavar="N", help="At most so many.")
    ] = 50,
    watch: Annotated[
        bool, typer.Option("--watch", help="Refresh until Ctrl-C, on a terminal.")
    ] = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first.

    An unfinished run whose process is gone is shown as interrupted: `holdfast restart` goes on
    with it.
    """
    config = settings(store, output, as_json=as_json)
    clock = SystemClock()
    with open_store(config.store, must_exist=True) as handle:
        if watch and is_terminal() and config.output == "table":
            from holdfast.cli import terminal  # noqa: PLC0415 rich is slow to load

            try:
                terminal.watch(lambda: [_grid(_found(handle, status, limit), clock.now())], clock)
            except KeyboardInterrupt:
                return
        found = _found(handle, status, limit)
    lines = [_line(info) for info in found]
    emit(
        config.output,
        document={"runs": lines},
        lines=lines,
        grids=[_grid(found, clock.now()) if found else "no runs"],
    )


@runs.command("cancel", epilog=CANCEL_CLOSING)
def cancel(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the run, or how it begins.")],  # noqa: A002 the public word
    *,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; recorded.")] = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a run; one that a process works on stops at its next call.

    What it recorded and did stays as it is. `holdfast restart ID --revive` goes on with it.
    """
    config = settings(store, output, as_json=as_json)
    with opened(config.store) as found:
        run = find_run(found.reader, id, config.store).body.id
    with open_store(config.store, must_exist=True) as handle:
        info = handle.cancel(run, reason=reason)
    is_over = info.status is Status.CANCELLED
    told = {"run": run, "status": status_of_info(info), "is_asked": not is_over}
    text = f"{run} is cancelled" if is_over else f"{run} is asked to stop at its next call"
    emit(config.output, document=told, lines=[told], grids=[text])


def _found(store: Store, wanted: Wanted | None, limit: int) -> list[RunInfo]:
    match wanted:
        case None:
            return store.runs(limit=limit)
        case Wanted.RUNNING | Wanted.INTERRUPTED:
            unfinished = store.runs(limit=RUNS_MAX, status=Status.RUNNING)
            is_wanted_held = wanted is Wanted.RUNNING
            return [info for info in unfinished if info.is_held == is_wanted_held][:limit]
        case _:
            return store.runs(limit=limit, status=Status(wanted.value.replace("-", " ")))


def _grid(found: Sequence[RunInfo], now: float) -> Grid:
    rows = [
        (
            info.id,
            f"{info.module}:{info.agent}",
            status_of_info(info),
            moment(when(info.created)),
            _took(info, now),
            short(info.error or ""),
        )
        for info in found
    ]
    return Grid(columns=COLUMNS, rows=rows, right=frozenset({"took"}))


def _took(info: RunInfo, now: float) -> str:
    """From its start to its end; a run that goes on has taken as long as it is old."""
    if info.ended is not None:
        return duration(info.ended - info.created)
    return duration(now - info.created) if info.is_held else f"{duration(now - info.created)} ago"


def _line(info: RunInfo) -> dict[str, object]:
    ended: dt.datetime | None = None if info.ended is None else when(info.ended)
    return {
        "id": info.id,
        "agent": info.agent,
        "module": info.module,
        "version": info.version,
        "status": status_of_info(info),
        "created": when(info.created),
        "ended": ended,
        "took_s": None if info.ended is None else info.ended - info.created,
        "holder": {
            "pid": info.holder.pid,
            "host": info.holder.host,
            "since": when(info.holder.since),
        },
        "epoch": info.epoch,
        "branch": info.branch,
        "error": info.error,
    }
