"""`holdfast fork RUN`: a new run from a point of another."""

import contextlib
import json
import re
from collections.abc import Iterable
from typing import Annotated

import typer

from holdfast.capture.paths import parse
from holdfast.cli import apps
from holdfast.cli.carry import restart_command
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.cli.stores import find_run, opened
from holdfast.engine.handle import open as open_store
from holdfast.errors import UsageError

CLOSING = closing(
    (
        "holdfast fork run-42",
        "holdfast fork run-42 --at 7 --as what-if",
        "holdfast fork run-42 --at 7 --set 'plan.limit=50' --set 'messages[-1].content=\"No.\"'",
    ),
    (0, 1, 2, 3, 7),
)


def fork(
    id: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or how it begins.")],  # noqa: A002 the public word
    *,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="CP", help="A checkpoint or a turn; its newest by default."),
    ] = None,
    as_: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="Id of the new run.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=JSON", help="Change the state; may be repeated."),
    ] = None,
    fork_effects: Annotated[
        bool,
        typer.Option("--fork-effects", help="Its effects are its own: the fence does not hold."),
    ] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; recorded.")] = None,
    app: Apps = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Make a new run that shares the history of another up to a point.

    Nothing is copied and the other run is not touched. The fork is not started: `holdfast restart`
    goes on with it. `--app` names the modules of classes that a changed state holds.
    """
    config = settings(store, output, app, as_json=as_json)
    edits = dict(_edits(set_ or ()))
    with opened(config.store) as found:
        parent = find_run(found.reader, id, config.store).body.id
    apps.load(config.app)
    with open_store(config.store, must_exist=True) as handle:
        made = handle.fork(
            parent, at=at, state=edits, new_id=as_, fork_effects=fork_effects, reason=reason
        )
    assert made.origin is not None
    told = {"run": made.id, "from": parent, "at": made.origin.point}
    again = restart_command(made.id, config, (made.module,))
    text = f"{made.id} goes on from {made.origin.point}; start it with\n  {again}"
    emit(config.output, document=told, lines=[told], grids=[text])


def _edits(said: Iterable[str]) -> Iterable[tuple[str, object]]:
    for text in said:
        path, value = _parted(text)
        if value is None:
            msg = f"--set {text}: write it as PATH=JSON, such as plan.limit=50"
            raise UsageError(msg)
        try:
            yield path, json.loads(value)
        except ValueError as error:
            msg = f"--set {path}=…: the value is no JSON ({error}); a text is written '\"so\"'"
            raise UsageError(msg) from error


def _parted(text: str) -> tuple[str, str | None]:
    """The path and the value: parted at the first sign that does not stand inside a key."""
    at = text.find("=")
    for n in [found.start() for found in re.finditer("=", text)]:
        with contextlib.suppress(UsageError):
            parse(text[:n])
            at = n
            break
    return (text, None) if at < 0 else (text[:at], text[at + 1 :])
