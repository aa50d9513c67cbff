"""SQLite's write-ahead log, kept at one length: a log that grows doubles the time of a commit."""

import os
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from holdfast import failpoint
from holdfast.errors import StoreBusy
from holdfast.store.backends.base import Append, Write
from holdfast.store.backends.locks import CommitLock
from holdfast.store.backends.place import unwritable
from holdfast.store.backends.shrink import shrink

STAGE = "repairing"
"""Where a repair writes the new database until it takes the place of the old one."""
WAL_PAGES = 512
"""The log is grown to this many pages once and reused."""
_PAGE, _FRAME_BYTES = 4096, 24
PACK_PAGES = 40
"""About how many pages a pack and the deletion of its rows write."""
LOG_ATTEMPTS, LOG_WAIT_S = 3, 5.0
"""How often the log is tried to be emptied, and how long SQLite waits for readers each time."""
PAGES_UNTOLD_MAX = 8
"""So many pages a process may write before it adds them to the count that all of them share."""


class Wal:
    """The log of the database in `file`; for whoever holds the commit lock."""

    def __init__(self, file: Path, lock: CommitLock) -> None:
        self._file, self._lock = file, lock
        self.is_grown = False
        self._pages = 0  # written to the log by this process and not told to the others

    def grow(self, link: sqlite3.Connection) -> None:
        """Make the log its full length once, unflushed; then empty it, flushed.

        The log ends for SQLite where no frame follows with its checksum, so zeros add nothing to
        it. Nobody appends meanwhile: we hold the lock.
        """
        self.is_grown = True
        wal = self._file.with_name(f"{self._file.name}-wal")
        try:
            with wal.open("r+b") as log:  # SQLite has made it, with the rights it is to have.
                missing = WAL_PAGES * (_PAGE + _FRAME_BYTES) - log.seek(0, os.SEEK_END)
                log.write(bytes(max(0, missing)))
        except OSError as error:
            raise unwritable(self._file.parent, error) from error
        if missing > 0:
            self._checkpoint(link)

    def recycle(self, link: sqlite3.Connection, writes: Sequence[Write], more: int = 0) -> None:
        """Move the log into the database before it outgrows its length; all processes count.

        It holds `writes` now, and about so many bytes `more`.
        """
        pages = (more + _PAGE - 1) // _PAGE
        for write in writes:
            size = len(write.row.body) if type(write) is Append else _PAGE
            pages += 2 + size // _PAGE
            if type(write) is Append and write.pack_from >= 0:
                pages += PACK_PAGES
        self._pages += pages
        if self._pages >= PAGES_UNTOLD_MAX:
            told, self._pages = self._pages, 0
            if self._lock.count(told) >= WAL_PAGES * 3 // 4:
                self._checkpoint(link)

    def _checkpoint(self, link: sqlite3.Connection) -> None:
        failpoint.reach("store.recycling")
        link.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        failpoint.reach("store.recycled")
        self._lock.count(-self._lock.count(0))

    def empty(self, link: sqlite3.Connection) -> None:
        """Move the whole log into the database and cut it to nothing, so that no page is left.

        What a killed repair had begun goes too: a copy of all rows. `StoreBusy` if somebody reads
        from the log for too long.
        """
        stage = self._file.parent / STAGE
        if (stage / self._file.name).exists():  # Else a repair is all but over, or there was none.
            shutil.rmtree(stage)
        for _ in range(LOG_ATTEMPTS):
            failpoint.reach("store.emptying")
            busy = link.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            failpoint.reach("store.emptied")
            if not busy:
                self._lock.count(-self._lock.count(0))
                return
        raise StoreBusy(str(self._file.parent), LOG_ATTEMPTS * LOG_WAIT_S)

    def shorten(self, link: sqlite3.Connection) -> None:
        """The last act of a connection that wrote: the database as short as it can be."""
        if self.is_grown:
            self._lock.count(shrink(link))
