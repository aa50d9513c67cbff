"""`holdfast import FILE`: a run out of a file that `export` made."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.commands.export import ALONE
from holdfast.cli.options import AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import emit, tell
from holdfast.cli.text import plural
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.engine.naming import run_id
from holdfast.engine.parcel import MAGIC, from_bytes
from holdfast.engine.transfer import admit
from holdfast.errors import KeyUnusable, UsageError, WrongKey
from holdfast.store.open import open_store
from holdfast.store.steady import left_of

CLOSING = closing(
    ("holdfast import run-42.holdfast", "holdfast import run-42.holdfast --as run-42-copy"),
    (0, 1, 2, 7),
)


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `holdfast export` made.")],
    *,
    as_: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="Give the run another id.")
    ] = None,
    file_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="The key of a sealed file; without it, that of this store."
        ),
    ] = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Put an exported run into this store, making the store if it is new.

    Every byte is checked first; the run is written in one commit and read back. A run that was not
    finished can be restarted here: then leave it alone where it came from, or its effects are done
    in both places. Children it goes on with that are missing are named: import them first.
    """
    config = settings(store, output, as_json=as_json)
    if as_ is not None:
        run_id(as_)
    with _naming_the_key():
        parcel = from_bytes(_read(file), str(file), given_key(file_key))
    found = open_store(config.store, SystemClock(), key=given_key())
    try:
        run = admit(found, parcel, as_)
        missing = [each for each in parcel.children() if left_of(found.reader, each) is None]
    finally:
        found.close()
    header = parcel.header
    told = {
        "run": run.body.id,
        "file": str(file),
        "rows": header.rows,
        "chunks": header.chunks,
        "status": str(run.body.status),
        "missing": missing,
    }
    text = f"{run.body.id}: {plural(header.rows, 'row')} read back as they were written"
    emit(config.output, document=told, lines=[told], grids=[text])
    for child in missing:
        tell(f"its child {child} is not in this store: import it too; {ALONE}")


@contextlib.contextmanager
def _naming_the_key() -> Iterator[None]:
    """A file may be sealed under another key than the store's: say where that one is given."""
    try:
        yield
    except (KeyUnusable, WrongKey) as error:
        error.add_note("the key of the file:  --file-key KEY")
        raise


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            begin = stream.read(len(MAGIC))  # What is no export may be of any size.
            return begin + stream.read() if begin == MAGIC else begin
    except OSError as error:
        msg = f"{file} cannot be read ({error.strerror})"
        raise UsageError(msg) from error
