"""`holdfast export ID FILE`: a run as one verified file."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit, tell
from holdfast.cli.stores import find_run, opened
from holdfast.cli.text import plural, size
from holdfast.engine.given import given_key
from holdfast.engine.parcel import to_bytes
from holdfast.engine.transfer import collect
from holdfast.errors import UsageError
from holdfast.store.backends.fs import RealFs
from holdfast.store.steady import steadily

ALONE = "where the run is restarted without it, it begins anew and does its effects again"
CLOSING = closing(("holdfast export run-42 run-42.holdfast",), (0, 1, 2, 3, 7))


def export(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the run, or how it begins.")],  # noqa: A002 the public word
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to make.")],
    *,
    clear: Annotated[
        bool, typer.Option("--clear", help="Out of an encrypted store: do not seal the file.")
    ] = False,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Write a run into one file: every branch, every row, every large value, and a hash of all.

    The run may go on meanwhile; what is committed is written. `holdfast import` puts it into
    another store. Out of an encrypted store the file is sealed with the same key. Children are runs
    of their own: those that the run goes on with are named, and need files of their own.
    """
    config = settings(store, output, as_json=as_json)
    with opened(config.store) as found:
        parcel = steadily(lambda: collect(found, find_run(found.reader, id, config.store)))
        key = None if clear or not found.records.is_sealed else given_key()
    data = to_bytes(parcel, key)
    _write(file, data)
    header, children = parcel.header, parcel.children()
    told = {
        "run": header.body.id,
        "file": str(file),
        "rows": header.rows,
        "chunks": header.chunks,
        "bytes": len(data),
        "sealed": key is not None,
        "children": children,
    }
    how = ", sealed" if key is not None else ""
    text = f"{header.body.id}: {plural(header.rows, 'row')}, {size(len(data))} in {file}{how}"
    emit(config.output, document=told, lines=[told], grids=[text])
    for child in children:
        tell(f"its child {child} is not in the file: export it too; {ALONE}")


def _write(file: Path, data: bytes) -> None:
    if file.exists():
        msg = f"{file} is there already; name another file, or remove it first"
        raise UsageError(msg)
    fs, part = RealFs(), file.with_name(file.name + ".part")
    try:
        fs.remove(part)
        fs.write_new(part, data)
        fs.rename(part, file)
    except OSError as error:
        msg = f"{file} cannot be written ({error.strerror})"
        raise UsageError(msg) from error
