"""Opening the store a command works on, and finding a run in it by the start of its id."""

import contextlib
import sqlite3
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.errors import UnknownRun
from holdfast.model.run import RunInfo, Status
from holdfast.store.open import Opened, open_store
from holdfast.store.reader import Reader, Run

ALIKE_MAX = 5
INTERRUPTED = "interrupted"
"""How a run is called that is unfinished and has no holder."""
SQLITE_SOUND = (3, 51, 3)
"""From here on SQLite resets its write-ahead log safely by itself."""


@contextlib.contextmanager
def opened(path: Path, *, must_be_whole: bool = True) -> Iterator[Opened]:
    """The store at `path`, which must exist, to be read."""
    found = open_store(
        path,
        SystemClock(),
        key=given_key(),
        must_exist=True,
        must_be_whole=must_be_whole,
    )
    try:
        yield found
    finally:
        found.close()


def find_run(reader: Reader, text: str, path: Path) -> Run:
    """The run of that id, or the only one whose id begins so."""
    found = reader.find(text)
    if found is not None:
        return found
    alike = list(
        islice((run for run in reader.runs() if run.body.id.startswith(text)), ALIKE_MAX + 1)
    )
    if not alike or not text:
        raise UnknownRun(text, str(path))
    if len(alike) > 1:
        shown = ", ".join(run.body.id for run in alike[:ALIKE_MAX])
        more = ", …" if len(alike) > ALIKE_MAX else ""
        raise UnknownRun(text, str(path), f"more than one run begins with {text!r} ({shown}{more})")
    return alike[0]


def status_of(status: Status, *, is_held: bool) -> str:
    """A run's status in one word for people."""
    return INTERRUPTED if status is Status.RUNNING and not is_held else str(status)


def status_of_info(info: RunInfo) -> str:
    """The same of a run as `store.runs` shows it."""
    return status_of(info.status, is_held=info.is_held)


def sqlite_note() -> str:
    """The linked SQLite, and what its version means here."""
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info >= SQLITE_SOUND:
        return version
    sound = ".".join(map(str, SQLITE_SOUND))
    return f"{version} (before {sound}: its WAL-reset bug is out of reach behind our commit lock)"
