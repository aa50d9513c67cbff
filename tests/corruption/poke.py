"""A database whose bits are flipped under a connection that stays open: thousands in a second.

A page belongs to one tree, and SQLite reads only the pages of the trees that a query names. So a
flip is looked at through every query of the library on that tree, and through no others. What
they answer decides: as before; an error or rows that fail the library's own check; or neither,
and then the store is read in full.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.store.backends.catalog import CHECKS
from holdfast.store.backends.connection import check
from holdfast.store.backends.schema import BRANCH_BY_NO, BRANCHES_OF_RUN, RUN_BY_KID, RUNS_BELOW
from tests.corruption.glance import ROWS, Healthy, Look, fails, glance, healthy, is_alike

PAGE = 4096
_VERSION = slice(18, 20)
"""Where the header says that the file has a log; a file without one needs none beside it."""
_COUNTER = 24
"""Where the header counts changes: a connection drops its pages when it finds another number."""
OWNERS = {"sqlite_autoindex_run_1": "run", "branch_run": "branch"}
"""Indexes and their tables."""

Query = tuple[str, str, tuple[Any, ...]]
"""A table if rows of it are read whole, else empty; the words; what is asked for."""


class Poked:
    """One file, one connection."""

    def __init__(self, data: bytes, file: Path, known: Healthy) -> None:
        plain = bytearray(data)
        plain[_VERSION] = b"\x01\x01"
        self._data, self._known, self._file = bytes(plain), known, file
        file.write_bytes(self._data)
        self._plain = healthy(file)
        self._fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        self._link = sqlite3.connect(file, isolation_level=None, cached_statements=1000)
        self._link.execute("PRAGMA cell_size_check=1")
        self._count = 1 << 20
        self._trees = self._read_trees()
        self._queries = {tree: list(_queries(tree, known)) for tree in {*self._trees.values()}}
        self._answers = {
            tree: [self._answer(query) for query in queries]
            for tree, queries in self._queries.items()
        }

    def _read_trees(self) -> dict[int, str]:
        """Page → the table whose tree, or index, it belongs to; free pages belong to none."""
        found = self._link.execute("SELECT pageno, name FROM dbstat").fetchall()
        return {page: OWNERS.get(name, name) for page, name in found if page > 1}

    def looks(self, bit: int) -> Look:
        """What the library would see with this bit flipped."""
        place = bit >> 3
        if place < PAGE:
            return self._look_anew(place, self._data[place] ^ 1 << (bit & 7))
        tree = self._trees.get(place // PAGE + 1)
        if tree is None:
            return Look.SAME
        self._poke(place, self._data[place] ^ 1 << (bit & 7))
        try:
            return self._compare(tree)
        finally:
            self._poke(place, self._data[place])

    def _look_anew(self, place: int, value: int) -> Look:
        """The first page holds the schema: a new connection, and every query there is."""
        if place in range(*_VERSION.indices(PAGE)):
            return Look.UNCLEAR
        os.pwrite(self._fd, bytes([value]), place)
        try:
            with contextlib.closing(sqlite3.connect(self._file)) as link:
                check(link, self._file)
            return glance(self._file, self._plain)
        except (sqlite3.Error, HoldfastError, UnicodeDecodeError, OverflowError):
            return Look.LOUD  # It is refused as it is opened.
        finally:
            os.pwrite(self._fd, self._data[place : place + 1], place)

    def _poke(self, place: int, value: int) -> None:
        self._count += 1
        os.pwrite(self._fd, bytes([value]), place)
        os.pwrite(self._fd, self._count.to_bytes(4, "big"), _COUNTER)

    def _compare(self, tree: str) -> Look:
        look = Look.SAME
        for query, expected in zip(self._queries[tree], self._answers[tree], strict=True):
            found = self._answer(query)
            if found == expected:
                continue
            table = query[0]
            if found is not None and table and not self._is_refused(table, found, expected or []):
                return Look.UNCLEAR
            look = Look.LOUD
        return look

    def _is_refused(
        self, table: str, found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]
    ) -> bool:
        """Whether every row that differs fails the library's check; none may be missing."""
        return len(found) == len(expected) and all(
            row == was or (table in ROWS and is_alike(row, was) and fails(table, row, self._known))
            for row, was in zip(found, expected, strict=True)
        )

    def _answer(self, query: Query) -> list[tuple[Any, ...]] | None:
        try:
            return self._link.execute(query[1], query[2]).fetchall()
        except (sqlite3.Error, UnicodeDecodeError, OverflowError):
            return None

    def close(self) -> None:
        """Let go of the file."""
        self._link.close()
        os.close(self._fd)


def _queries(tree: str, known: Healthy) -> Iterator[Query]:  # noqa: C901, PLR0912 a case for each table
    """What the library asks of one tree; where no table is named, any other answer is loud."""
    answers = known.answers
    branches = [row[0] for row in answers["branch"]]
    match tree:
        case "run":
            yield "run", RUNS_BELOW, (1 << 62, 1000)
            for row in answers["run"]:
                yield "run", RUN_BY_KID, (row[1],)
        case "branch":
            yield "branch", "SELECT no, run, parent, at, mac, body FROM branch ORDER BY no", ()
            for row in answers["branch"]:
                yield "branch", BRANCH_BY_NO, (row[0],)
            for row in answers["run"]:
                yield "branch", BRANCHES_OF_RUN, (row[0],)
        case "j":
            yield "j", "SELECT id, mac, body FROM j ORDER BY id", ()
            yield from _rows("j", [row[0] for row in answers["j"]], branches)
        case "pack":
            yield "pack", "SELECT id, first, body FROM pack ORDER BY id", ()
            yield from _rows("pack", [row[0] for row in answers["pack"]], branches)
        case "effect":
            # Verification compares it with the journal, entry by entry: any other is loud.
            yield "", "SELECT run, intent, id FROM effect ORDER BY run, intent, id", ()
            for run, intent, _ in answers["effect"]:
                sql = "SELECT id FROM effect WHERE run=? AND intent=? ORDER BY id"
                yield "", sql, (run, intent)
        case "meta":
            yield "notes", "SELECT key, value FROM meta WHERE key <> 'pad'", ()
            for key in ("store_id", "incompat"):
                yield "notes", "SELECT value FROM meta WHERE key=?", (key,)
        case _:
            raise AssertionError(tree)
    for sql in CHECKS:
        if tree in sql:
            yield "", sql, ()


def _rows(table: str, ids: list[int], branches: list[int]) -> Iterator[Query]:
    asked = str(ids)
    yield (
        "found",
        f"SELECT k.value, (SELECT id FROM {table} WHERE id=k.value) FROM json_each(?) AS k",
        (asked,),
    )
    where = f"FROM {table} WHERE id BETWEEN b.value << 32 AND (b.value + 1 << 32) - 1"
    newest = f"(SELECT max(id) {where}), (SELECT id {where} ORDER BY id DESC LIMIT 1)"
    yield "found", f"SELECT b.value, {newest} FROM json_each(?) AS b", (str(branches),)


@contextlib.contextmanager
def poked(data: bytes, file: Path, known: Healthy) -> Iterator[Poked]:
    """A database to flip bits of."""
    held = Poked(data, file, known)
    try:
        yield held
    finally:
        held.close()
