"""`holdfast unpin NAME`: leave a run or checkpoint to the rules again."""

from typing import Annotated

import typer

from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.engine.handle import open as open_store

CLOSING = closing(("holdfast unpin run-42", "holdfast unpin run-42@1.17.0"), (0, 1, 2, 3, 7))

Name = Annotated[str, typer.Argument(metavar="NAME", help="A run, or a checkpoint of one.")]


def unpin(
    name: Name, *, store: StorePath = None, output: Output = None, as_json: AsJson = False
) -> None:
    """Leave a run or checkpoint to the rules of `gc` again."""
    config = settings(store, output, as_json=as_json)
    with open_store(config.store, must_exist=True) as opened:
        opened.unpin(name)
    told = {"name": name, "is_pinned": False}
    emit(config.output, document=told, lines=[told], grids=[f"{name} is no longer pinned"])
