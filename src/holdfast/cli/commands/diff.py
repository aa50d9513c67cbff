"""`holdfast diff A B`: what is different between two points of runs."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from holdfast.capture.diff import Change
from holdfast.cli import apps
from holdfast.cli.grid import Grid
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit, tell
from holdfast.cli.points import full_name
from holdfast.cli.stores import opened
from holdfast.cli.text import apart, short
from holdfast.cli.values import to_json
from holdfast.engine.points import Points
from holdfast.store.open import Opened
from holdfast.store.steady import steadily

CLOSING = closing(
    (
        "holdfast diff run-42@3 run-42@7",
        "holdfast diff run-42@1.17.0 run-42",
        "holdfast diff run-42 run-43 -o json",
    ),
    (0, 1, 2, 3, 7),
)
COLUMNS = ("kind", "path", "before", "after")


def diff(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A checkpoint's id, RUN@TURN, or a run: its newest.")
    ],
    after: Annotated[str, typer.Argument(metavar="B", help="The same; may be of another run.")],
    *,
    store: StorePath = None,
    app: Apps = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show what is different in the state between two points.

    Paths are written as `show --path` takes them; lists are aligned, so an insertion is one line.
    `--app` names the modules of classes that the states hold.
    """
    config = settings(store, output, app, as_json=as_json)
    apps.load(config.app)
    with opened(config.store) as found:
        names, (changes, notes) = steadily(lambda: _changes(found, config.store, (before, after)))
    for note in notes:
        tell(f"degraded: {note}")
    rows = [(change.kind, change.path, *_sides(change)) for change in changes]
    emit(
        config.output,
        document={"before": names[0], "after": names[1], "changes": changes},
        lines=(msgspec.structs.asdict(change) for change in changes),
        grids=[Grid(columns=COLUMNS, rows=rows) if rows else "no difference"],
    )


def _changes(
    found: Opened, path: Path, said: tuple[str, str]
) -> tuple[tuple[str, str], tuple[list[Change], list[str]]]:
    first, second = (full_name(found.reader, text, path) for text in said)
    return (first, second), Points(found.reader, path).compare(first, second)


def _sides(change: Change) -> tuple[str, str]:
    before, after = to_json(change.before, indent=None), to_json(change.after, indent=None)
    match change.kind:
        case "added":
            return "", short(after)
        case "removed":
            return short(before), ""
        case _:
            return apart(before, after)
