"""Bare SQLite, timed in the same process and minute as what it is compared with."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from time import perf_counter_ns

from holdfast.store.backends.connection import connect
from holdfast.store.backends.wal import WAL_PAGES

BLOCK = 25
"""Turns of one kind before those of the next kind."""
RECYCLE_BLOCKS = 4
"""After so many blocks a grown log begins anew, as ours does about every hundred turns."""
INSERT = "INSERT INTO turn (body) VALUES (?)"

GROWN = "one INSERT, our pragmas, WAL grown"
FRESH = "one INSERT, WAL as SQLite comes, fresh file"
DEFAULT = "one INSERT, SQLite as it comes, fresh file"


class Floors:
    """One INSERT of a turn's bytes in autocommit: as `names` say, each into a file of its own."""

    def __init__(self, directory: Path, bodies: Iterator[bytes], names: Sequence[str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._bodies = bodies
        self._stack = ExitStack()
        self._links = {
            name: self._stack.enter_context(closing(_FILES[name](directory / f"{number}.db")))
            for number, name in enumerate(names)
        }
        self._blocks = 0
        self.ns: dict[str, list[int]] = {name: [] for name in self._links}

    def block(self) -> None:
        """The next turns of each kind; only the INSERT is timed, its bytes are there already."""
        bodies = list(islice(self._bodies, BLOCK))
        for name, link in self._links.items():
            self.ns[name] += [_insert(link, body) for body in bodies]
        self._blocks += 1
        if self._blocks % RECYCLE_BLOCKS == 0:
            self._links[GROWN].execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Close the files."""
        self._stack.close()


def _insert(link: sqlite3.Connection, body: bytes) -> int:
    begin = perf_counter_ns()
    link.execute(INSERT, (body,))
    return perf_counter_ns() - begin


def grown(file: Path) -> sqlite3.Connection:
    """Every setting as ours; the log made its full length once, then used again."""
    link = connect(file)
    _table(link)
    link.execute("PRAGMA synchronous=OFF")
    link.execute("INSERT INTO turn (id, body) VALUES (0, x'00')")
    for _ in range(WAL_PAGES):
        link.execute("UPDATE turn SET body = randomblob(8) WHERE id = 0")
    link.execute("PRAGMA synchronous=FULL")
    link.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return link


def _fresh(file: Path) -> sqlite3.Connection:
    link = sqlite3.connect(file, isolation_level=None)
    link.execute("PRAGMA journal_mode=WAL")
    link.execute("PRAGMA synchronous=FULL")
    _table(link)
    return link


def _default(file: Path) -> sqlite3.Connection:
    link = sqlite3.connect(file, isolation_level=None)
    _table(link)
    return link


def _table(link: sqlite3.Connection) -> None:
    link.execute("CREATE TABLE turn (id INTEGER PRIMARY KEY, body BLOB)")


_FILES: dict[str, Callable[[Path], sqlite3.Connection]] = {
    GROWN: grown,
    FRESH: _fresh,
    DEFAULT: _default,
}
