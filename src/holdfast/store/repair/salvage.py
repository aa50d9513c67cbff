"""Whatever can still be read of a damaged store, row by row; nothing is believed yet."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.errors import Damaged
from holdfast.model.ids import branch_of, row_id
from holdfast.store.backends import packs, slots, sweep
from holdfast.store.backends.base import BranchRow, JournalRow, RunRow
from holdfast.store.backends.connection import connect, holds_tail, is_sealed, named
from holdfast.store.backends.packs import Around, Packer
from holdfast.store.backends.rows import branch_row, run_row
from holdfast.store.backends.schema import SEALED_TABLES, TABLES
from holdfast.store.backends.tail import NAME as TAIL
from holdfast.store.backends.tail import read_tail

KEYED_MAX = 1 << 62
PROBES_MAX = 4096
"""How many rows beyond the last one that was found are asked for one by one."""

UNREADABLE = (sqlite3.Error, UnicodeDecodeError, OverflowError)
OWN = frozenset({"run", "branch", "j", "pack", "effect"})
"""Tables that are sifted; any other is carried over as it is."""

Row = tuple[Any, ...]


class Salvage:
    """Reads around pages that SQLite cannot read. `is_torn` once there were any.

    `generation` is the one of the tail whose rows may stand nowhere else; None of a store without
    a tail, or as long as nobody asked for it.
    """

    def __init__(self, file: Path, packer: Packer) -> None:
        with named(file):
            self._link = connect(file, for_reading=True)
            self.is_sealed = is_sealed(self._link)
        self.packer = packer
        self.is_torn = False
        self.generation: int | None = None
        self._tail = file.with_name(TAIL)
        self._beside: dict[int, JournalRow] = {}

    def take_tail(self, store_id: bytes) -> None:
        """Read the rows that stand beside the database of the store with that id."""
        if holds_tail(self._link):
            seed, data = slots.seed(store_id), read_tail(self._tail)
            told = -1
            with contextlib.suppress(*UNREADABLE):
                told = sweep.generation(self._link)
            self.generation = max(told, slots.newest(data, seed))
            self._beside = {row.id: row for row in slots.read(data, seed, self.generation).rows}

    def close(self) -> None:
        """Let go of the file."""
        self._link.close()

    def runs(self) -> list[RunRow]:
        """The rows of the catalog, oldest first."""
        found = self._around("no, kid, epoch, head, mac, body", "run", 0, KEYED_MAX)
        return [run_row(row) for row in found.values()]

    def branches(self) -> list[BranchRow]:
        """The branches of all runs, oldest first."""
        found = self._around("no, run, parent, at, mac, body", "branch", 0, KEYED_MAX)
        return [branch_row(row) for row in found.values()]

    def rooted(self) -> list[int]:
        """Numbers of branches that have rows, whether or not they are listed."""
        ids = (*self._around("id", "j", 0, KEYED_MAX), *self._around("id", "pack", 0, KEYED_MAX))
        return sorted({id_ >> 32 for id_ in (*ids, *self._beside)})

    def rows(self, branch: int) -> dict[int, JournalRow]:
        """The rows of a branch by their ids, loose or out of packs that can be opened."""
        packed, loose = self._of_branch(branch)
        found: dict[int, JournalRow] = {}
        for id_, start, body in packed.values():
            with contextlib.suppress(Damaged, TypeError, ValueError, *UNREADABLE):
                rows = self.packer.unpack(start, id_, body, Around(self._link, start))
                found.update((row.id, row) for row in rows)
        for id_, mac, body in loose.values():
            found[id_] = JournalRow(id=id_, mac=mac, body=body)
        return dict(sorted(found.items()))

    def packs(self, branch: int) -> dict[int, tuple[int, bytes]]:
        """First row and body of each sound pack of a branch, by the id of its last row."""
        packed, _ = self._of_branch(branch)
        return {
            id_: (start, body)
            for id_, start, body in packed.values()
            if self._is_sound(id_, start, body)
        }

    def _of_branch(self, branch: int) -> tuple[dict[int, Row], dict[int, Row]]:
        """The packs of a branch and its loose rows, those of the tail among them, by their ids."""
        first, last = row_id(branch, 0), row_id(branch + 1, 0) - 1
        was_torn, self.is_torn = self.is_torn, False
        packed = self._around("id, first, body", "pack", first, last)
        loose = self._around("id, mac, body", "j", first, last)
        if self.is_torn:
            self._probe(first, packed, loose)
        self.is_torn |= was_torn
        for id_, row in self._beside.items():
            if first <= id_ <= last:
                loose.setdefault(id_, (id_, row.mac, row.body))
        return packed, loose

    def _is_sound(self, last: int, first: int, body: bytes) -> bool:
        """Whether what a pack holds beside its rows is as it was written."""
        with contextlib.suppress(Damaged, TypeError, ValueError, *UNREADABLE):
            self.packer.beside(first, last, body, Around(self._link, first))
            return True
        return False

    def end(self, branch: int) -> int:
        """The id of the newest row of a branch; -2 where that cannot be read."""
        beside = (id_ for id_ in self._beside if branch_of(id_) == branch)
        with contextlib.suppress(*UNREADABLE, Damaged):
            return max([packs.end(self._link, branch), *beside])
        return -2

    def _probe(self, first: int, packed: dict[int, Row], loose: dict[int, Row]) -> None:
        """Ask for each row by itself: those on other pages are still found."""
        end = first
        for id_ in sorted({*packed, *loose}):
            # A damaged key may lie billions of rows away; those before it are asked for.
            end = id_ if id_ - end <= PROBES_MAX else end
        for id_ in range(first, end + PROBES_MAX + 1):
            for table, columns, found in (
                ("j", "id, mac, body", loose),
                ("pack", "id, first, body", packed),
            ):
                if id_ not in found:
                    found.update(self._around(columns, table, id_, id_))

    def indexed(self, run: int) -> list[int]:
        """Ids of rows that the index says to hold intents of a run."""
        with contextlib.suppress(*UNREADABLE):
            sql = "SELECT id FROM effect WHERE run=? ORDER BY id"
            return [id_ for (id_,) in self._link.execute(sql, (run,)) if type(id_) is int]
        return []

    def others(self) -> Iterator[tuple[str, list[Row]]]:
        """Tables that nothing here looks into, with all of their rows."""
        for name, sql in {**TABLES, **(SEALED_TABLES if self.is_sealed else {})}.items():
            if name not in OWN and sql.startswith("CREATE TABLE"):
                yield name, self._link.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608 our own names

    def _around(self, columns: str, table: str, first: int, last: int) -> dict[int, Row]:
        """Rows by their keys: from the front up to what cannot be read, then from the back."""
        key = columns.partition(",")[0]
        found: dict[int, Row] = {}
        for order in ("ASC", "DESC"):
            sql = (
                f"SELECT {columns} FROM {table} WHERE {key} BETWEEN ? AND ? ORDER BY {key} {order}"  # noqa: S608 our own names
            )
            low, high = first, last
            try:
                for row in self._link.execute(sql, (first, last)):
                    if row[0] in found:
                        break
                    found[row[0]] = row
                    low, high = (row[0] + 1, last) if order == "ASC" else (first, row[0] - 1)
                else:
                    break  # All of them were read.
            except UNREADABLE:
                self.is_torn = True
                # The module reads one row ahead: the last good one went down with the bad one.
                with contextlib.suppress(*UNREADABLE, TypeError):
                    found.update(
                        (row[0], row) for row in self._link.execute(f"{sql} LIMIT 1", (low, high))
                    )
        return dict(sorted(found.items()))
