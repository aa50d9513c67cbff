"""Pins: what a person wants kept, whatever the rules say. They stand beside all history."""

from holdfast import failpoint
from holdfast.store.backends.connection import transaction
from holdfast.store.open import Opened

_PREFIX = "pin/"
WHOLE_RUN = (-1, -1)
"""In place of a point: the run as it is."""

Pin = tuple[int, int, int]
"""A run's number, and a row and an entry in it."""


def pins(opened: Opened) -> set[Pin]:
    """Everything that is pinned."""
    with opened.records.alone() as link:
        found = link.execute("SELECT key FROM meta WHERE key LIKE ?", (_PREFIX + "%",)).fetchall()
    return {_read(str(key)) for (key,) in found}


def pin(opened: Opened, what: Pin) -> None:
    """Keep this."""
    _write(opened, "INSERT OR REPLACE INTO meta VALUES (?, x'')", what)


def unpin(opened: Opened, what: Pin) -> None:
    """Keep this no longer for a pin's sake."""
    _write(opened, "DELETE FROM meta WHERE key=?", what)


def _write(opened: Opened, sql: str, what: Pin) -> None:
    with opened.records.alone() as link:
        failpoint.reach("pin.writing")
        with transaction(link):
            link.execute(sql, (_PREFIX + "/".join(map(str, what)),))
        failpoint.reach("pin.written")


def _read(key: str) -> Pin:
    run, row, index = map(int, key.removeprefix(_PREFIX).split("/"))
    return run, row, index
