"""What is asked of a run that another process holds: that it stops, or pauses for a moment."""

import struct

from holdfast import failpoint
from holdfast.store.backends.connection import transaction
from holdfast.store.open import Opened

_STOP, _PAUSE = "stop/", "pause/"
_UNTIL = struct.Struct(">d")


def asked(opened: Opened) -> set[int]:
    """The numbers of the runs that are asked to stop."""
    return set(_noted(opened, _STOP))


def ask(opened: Opened, run: int) -> None:
    """Ask whoever holds a run, now or next, to stop it."""
    _put(opened, f"{_STOP}{run}", b"")


def forget(opened: Opened, run: int) -> None:
    """It has stopped, or is to go on."""
    if run in asked(opened):
        _drop(opened, f"{_STOP}{run}")


def pauses(opened: Opened) -> dict[int, float]:
    """The runs that are asked to pause, and until when that counts where nobody holds them."""
    found = _noted(opened, _PAUSE)
    return {run: _UNTIL.unpack(data)[0] for run, data in found.items() if len(data) == _UNTIL.size}


def pause(opened: Opened, run: int, until: float) -> None:
    """Ask whoever holds a run to let it go; others leave it alone until then."""
    _put(opened, f"{_PAUSE}{run}", _UNTIL.pack(until))


def resume(opened: Opened, run: int) -> None:
    """It may go on."""
    if run in pauses(opened):
        _drop(opened, f"{_PAUSE}{run}")


def _noted(opened: Opened, start: str) -> dict[int, bytes]:
    return {
        int(key.removeprefix(start)): data
        for key, data in opened.records.noted(start).items()
        if key.removeprefix(start).isdecimal()
    }


def _put(opened: Opened, key: str, data: bytes) -> None:
    _write(opened, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, data))


def _drop(opened: Opened, key: str) -> None:
    _write(opened, "DELETE FROM meta WHERE key=?", (key,))


def _write(opened: Opened, sql: str, values: tuple[object, ...]) -> None:
    with opened.records.alone() as link:
        failpoint.reach("wish.writing")
        with transaction(link):
            link.execute(sql, values)
        failpoint.reach("wish.written")
