"""What is asked of a run that another process holds: that it stops."""

from holdfast import failpoint
from holdfast.store.backends.connection import transaction
from holdfast.store.open import Opened

_PREFIX = "stop/"


def asked(opened: Opened) -> set[int]:
    """The numbers of the runs that are asked to stop."""
    return {
        int(key.removeprefix(_PREFIX))
        for key in opened.records.noted(_PREFIX)
        if key.removeprefix(_PREFIX).isdecimal()
    }


def ask(opened: Opened, run: int) -> None:
    """Ask whoever holds a run, now or next, to stop it."""
    _write(opened, "INSERT OR REPLACE INTO meta VALUES (?, x'')", run)


def forget(opened: Opened, run: int) -> None:
    """It has stopped, or is to go on."""
    if run in asked(opened):
        _write(opened, "DELETE FROM meta WHERE key=?", run)


def _write(opened: Opened, sql: str, run: int) -> None:
    with opened.records.alone() as link:
        failpoint.reach("wish.writing")
        with transaction(link):
            link.execute(sql, (f"{_PREFIX}{run}",))
        failpoint.reach("wish.written")
