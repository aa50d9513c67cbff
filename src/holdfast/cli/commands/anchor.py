"""`holdfast anchor [RUN ...]`: how far history goes, as one line to be kept elsewhere."""

from typing import Annotated

import typer

from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.cli.stores import find_run, opened
from holdfast.clock import SystemClock
from holdfast.store.anchor import take

CLOSING = closing(
    ("holdfast anchor > anchor.txt", "holdfast verify --anchor @anchor.txt"), (0, 2, 3, 7)
)


def anchor(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]...", help="Only these runs.")
    ] = None,
    *,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Print how far the history of every run goes, as one line.

    Keep it where whoever can write to the store cannot: `verify --anchor` then finds a store that
    was set back to an older copy, or whose end was cut off. Print a new one after `gc`, `erase`,
    `keys init` and `keys rotate --data`, which change history on purpose.
    """
    config = settings(store, output, as_json=as_json)
    with opened(config.store) as found:
        reader = found.reader
        runs = [find_run(reader, id_, config.store) for id_ in ids] if ids else reader.runs()
        seen = take(found, runs, SystemClock().now())
    told = {"anchor": str(seen), "at": seen.at, "runs": len(seen.runs)}
    emit(config.output, document=told, lines=[told], grids=[str(seen)])
