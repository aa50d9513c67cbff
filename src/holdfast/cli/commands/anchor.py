"""`holdfast anchor [RUN ...]`: how far history goes, as one line to be kept elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.cli.stores import find_run, opened
from holdfast.clock import SystemClock
from holdfast.store.anchor import Anchor, take
from holdfast.store.open import Opened

CLOSING = closing(
    ("holdfast anchor > anchor.txt", "holdfast verify --anchor @anchor.txt"), (0, 1, 2, 3, 7)
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
        seen = _taken(found, ids or [], config.store)
    told = {"anchor": str(seen), "at": seen.at, "runs": len(seen.runs)}
    emit(config.output, document=told, lines=[told], grids=[str(seen)])


def _taken(found: Opened, ids: list[str], path: Path) -> Anchor:
    runs = [find_run(found.reader, id_, path) for id_ in ids] if ids else found.reader.runs()
    return take(found, runs, SystemClock().now())
