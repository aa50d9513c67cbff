"""What still counts of a damaged log, or of a damaged tail.

A log only chooses which pages count, and a tail which rows. Where SQLite believes the same part of
the log, or the same records of the tail are sound, the store is the same, so one of them read in
full tells of all.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast.store.backends import slots

_BELIEVED = slice(16, 32)
"""In the index of a log: how many frames, of how many pages, and their checksum."""


def records(tail: bytes, store: bytes, generation: int) -> bytes:
    """What counts of a tail for the database of that store, which knows of this generation."""
    seed = slots.seed(store)
    return msgspec.msgpack.encode((slots.read(tail, seed, generation), slots.newest(tail, seed)))


class Believed:
    """A database and its log, which is damaged and healed in place."""

    def __init__(self, folder: Path, database: bytes, log: bytes) -> None:
        folder.mkdir(parents=True)
        self._file, self._log = folder / "store.db", log
        self._file.write_bytes(database)
        wal = self._file.with_name("store.db-wal")
        wal.write_bytes(log)
        self._fd = os.open(wal, os.O_RDWR | os.O_CLOEXEC)

    def after(self, bit: int) -> bytes:
        """What SQLite believes of the log with this bit flipped."""
        place = bit >> 3
        os.pwrite(self._fd, bytes([self._log[place] ^ 1 << (bit & 7)]), place)
        try:
            return self._pages()
        finally:
            os.pwrite(self._fd, self._log[place : place + 1], place)

    def _pages(self) -> bytes:
        """Which part of the log SQLite believes, as its index says; it may write neither file."""
        index = self._file.with_name("store.db-shm")
        index.unlink(missing_ok=True)
        try:
            with contextlib.closing(
                sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)
            ) as link:
                link.execute("PRAGMA schema_version").fetchall()
                believed = index.read_bytes()[_BELIEVED]
                return believed if any(believed[:4]) else b"nothing"
        except sqlite3.Error as error:
            return str(error).encode()

    def close(self) -> None:
        """Let go of the log."""
        os.close(self._fd)


@contextlib.contextmanager
def believed(folder: Path, database: bytes, log: bytes) -> Iterator[Believed]:
    """A log to flip bits of."""
    held = Believed(folder, database, log)
    try:
        yield held
    finally:
        held.close()
