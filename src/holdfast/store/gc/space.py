"""The room that removed rows left in the database file, given back to the disk."""

import contextlib

from holdfast import failpoint
from holdfast.store.backends.connection import connect, named
from holdfast.store.backends.shrink import shrink
from holdfast.store.backends.sqlite import FILE
from holdfast.store.open import Opened

PAGES_MAX = 64 * 1024
"""A longer file keeps its free pages: others would wait too long to commit."""


def give_back(opened: Opened) -> None:
    """Write the database without its free pages while nobody commits, if that is worth it.

    By a connection of its own: the settings under which it is safe are not those of a commit.
    """
    file = opened.path / FILE
    with opened.records.alone(), named(file), contextlib.closing(connect(file)) as link:
        if shrink(link, PAGES_MAX):
            failpoint.reach("space.moving")
            link.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            failpoint.reach("space.moved")
