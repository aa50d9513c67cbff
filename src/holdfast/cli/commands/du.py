"""`holdfast du [RUN]`: where the bytes of a store or of a run are."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from holdfast.cli.grid import Grid
from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit
from holdfast.cli.stores import find_run, opened
from holdfast.cli.text import plural, size
from holdfast.report.sizes import Part, Sizes, entries, sizes
from holdfast.store.open import Opened
from holdfast.store.steady import steadily

CLOSING = closing(("holdfast du", "holdfast du run-42", "holdfast du --json"), (0, 1, 2, 3, 7))
RUNS_SHOWN = 20

Id = Annotated[
    str | None, typer.Argument(metavar="ID", help="A run: explain its journal, entry by entry.")
]


def du(
    id: Id = None,  # noqa: A002 the public word
    *,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Explain the bytes of a store, or of one run.

    The parts of a store add up to its size on disk. Those of a run are what its journal says,
    before rows are packed and compressed.
    """
    config = settings(store, output, as_json=as_json)
    with opened(config.store) as found:
        if id is None:
            told = sizes(found)
            grids, kind = _store_grids(told), "part"
            parts, document = told.parts, msgspec.structs.asdict(told)
        else:
            name, parts = steadily(lambda: _entries(found, id, config.store))
            document = {"run": name, "parts": parts}
            grids, kind = [_parts(parts, "holds")], "entry"
    lines = ({"kind": kind, **msgspec.structs.asdict(part)} for part in parts)
    emit(config.output, document=document, lines=lines, grids=grids)


def _entries(found: Opened, id_: str, path: Path) -> tuple[str, list[Part]]:
    run = find_run(found.reader, id_, path)
    return run.body.id, entries(found, run)


def _store_grids(told: Sizes) -> list[Grid | str]:
    rows = [
        (each.run, str(each.rows), str(each.packed), size(each.bytes))
        for each in told.runs[:RUNS_SHOWN]
    ]
    total = Part(what="all", count=0, bytes=told.bytes)
    grids: list[Grid | str] = [_parts([*told.parts, total], "part")]
    if rows:
        columns = ("run", "rows", "packed", "bytes")
        grids += ["", Grid(columns=columns, rows=rows, right=frozenset(columns[1:]))]
    if len(told.runs) > RUNS_SHOWN:
        grids.append(f"… and {plural(len(told.runs) - RUNS_SHOWN, 'run')} more (--json has all)")
    return grids


def _parts(parts: Iterable[Part], name: str) -> Grid:
    rows = [(part.what, str(part.count or ""), size(part.bytes)) for part in parts]
    return Grid(columns=(name, "count", "bytes"), rows=rows, right=frozenset({"count", "bytes"}))
