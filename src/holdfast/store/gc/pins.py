"""What people and rules say of garbage, beside all history: pins, and when it was collected."""

import sqlite3
import struct

from holdfast import failpoint
from holdfast.store.backends.connection import transaction
from holdfast.store.open import Opened

_PREFIX, _COLLECTED = "pin/", "collected"
_TIME = struct.Struct(">d")
WHOLE_RUN = (-1, -1)
"""In place of a point: the run as it is."""

Pin = tuple[int, int, int]
"""A run's number, and a row and an entry in it."""


def pins(opened: Opened) -> set[Pin]:
    """Everything that is pinned."""
    with opened.records.alone() as link:
        return read(link)


def read(link: sqlite3.Connection) -> set[Pin]:
    """Everything that is pinned, for who has the database to himself."""
    found = link.execute("SELECT key FROM meta WHERE key LIKE ?", (_PREFIX + "%",)).fetchall()
    return {_read(str(key)) for (key,) in found}


def pin(opened: Opened, what: Pin) -> None:
    """Keep this."""
    _write(opened, "INSERT OR REPLACE INTO meta VALUES (?, x'')", what)


def unpin(opened: Opened, what: Pin) -> None:
    """Keep this no longer for a pin's sake."""
    _write(opened, "DELETE FROM meta WHERE key=?", what)


def collected(opened: Opened) -> float:
    """When garbage was last collected by itself; 0.0 if never."""
    with opened.records.alone() as link:
        found = link.execute("SELECT value FROM meta WHERE key=?", (_COLLECTED,)).fetchone()
    return _TIME.unpack(found[0])[0] if found and len(found[0]) == _TIME.size else 0.0


def note_collected(opened: Opened, now: float) -> None:
    """Say that garbage is collected now."""
    with opened.records.alone() as link:
        failpoint.reach("collection.noting")
        with transaction(link):
            row = (_COLLECTED, _TIME.pack(now))
            link.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)
        failpoint.reach("collection.noted")


def _write(opened: Opened, sql: str, what: Pin) -> None:
    with opened.records.alone() as link:
        failpoint.reach("pin.writing")
        with transaction(link):
            link.execute(sql, (_PREFIX + "/".join(map(str, what)),))
        failpoint.reach("pin.written")


def _read(key: str) -> Pin:
    run, row, index = map(int, key.removeprefix(_PREFIX).split("/"))
    return run, row, index
