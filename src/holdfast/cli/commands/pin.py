"""`holdfast pin NAME`: keep a run or checkpoint whatever the rules say."""

from typing import Annotated

import typer

from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.engine.handle import open as open_store

CLOSING = closing(("holdfast pin run-42", "holdfast pin run-42@1.17.0"), (0, 1, 2, 3, 7))

Name = Annotated[str, typer.Argument(metavar="NAME", help="A run, or a checkpoint of one.")]


def pin(
    name: Name, *, store: StorePath = None, output: Output = None, as_json: AsJson = False
) -> None:
    """Keep a run or checkpoint, whatever the rules of `gc` say."""
    config = settings(store, output, as_json=as_json)
    with open_store(config.store, must_exist=True) as opened:
        opened.pin(name)
    told = {"name": name, "is_pinned": True}
    emit(config.output, document=told, lines=[told], grids=[f"{name} is pinned"])
