"""A run taken out of the database, with everything that belongs to it alone."""

import sqlite3

from holdfast import failpoint
from holdfast.store.backends.connection import transaction

FLOOR = "floor"
"""The key in `meta` of the highest numbers of run and branch that were ever removed."""


def floor(link: sqlite3.Connection) -> tuple[int, int]:
    """The highest numbers of run and branch that were removed: they are never given again."""
    found = link.execute("SELECT value FROM meta WHERE key=?", (FLOOR,)).fetchone()
    if found is None or type(found[0]) is not bytes:
        return 0, 0
    return int.from_bytes(found[0][:8], "big"), int.from_bytes(found[0][8:], "big")


def branches(link: sqlite3.Connection, no: int, epoch: int) -> list[int] | None:
    """The branches of a run that may go; None while it is at another epoch or a fork needs it."""
    found = link.execute("SELECT epoch FROM run WHERE no=?", (no,)).fetchone()
    if found != (epoch,):
        return None
    own = [each[0] for each in link.execute("SELECT no FROM branch WHERE run=?", (no,))]
    grown = link.execute(
        "SELECT 1 FROM branch WHERE run<>? AND parent IN (SELECT no FROM branch WHERE run=?)",
        (no, no),
    ).fetchone()
    return None if grown else own


def remove(link: sqlite3.Connection, no: int, own: list[int]) -> None:
    """Delete a run with its branches, rows, packs and index entries, in one transaction."""
    failpoint.reach("gc.deleting")
    with transaction(link):
        for branch in own:
            low, high = branch << 32, (branch + 1 << 32) - 1
            link.execute("DELETE FROM j WHERE id BETWEEN ? AND ?", (low, high))
            link.execute("DELETE FROM pack WHERE id BETWEEN ? AND ?", (low, high))
        link.execute("DELETE FROM branch WHERE run=?", (no,))
        link.execute("DELETE FROM effect WHERE run=?", (no,))
        link.execute("DELETE FROM run WHERE no=?", (no,))
        if link.execute("SELECT 1 FROM sqlite_master WHERE name='key'").fetchone():
            link.execute("DELETE FROM key WHERE no=?", (no,))
        runs, lines = floor(link)
        numbers = max(runs, no), max([lines, *own])
        value = b"".join(number.to_bytes(8, "big") for number in numbers)
        link.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (FLOOR, value))
    failpoint.reach("gc.deleted")
