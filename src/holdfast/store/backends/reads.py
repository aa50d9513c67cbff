"""Rows read from the database file and the tail beside it: the reading half of `SqliteRecords`.

The tail is read first: a row that the database takes in meanwhile is found twice, not never.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from holdfast.errors import Damaged, StoreError
from holdfast.model.ids import branch_of, row_id
from holdfast.store.backends import catalog, packs, schema
from holdfast.store.backends.base import Beside, BranchRow, JournalRow, RunRow
from holdfast.store.backends.connection import FOREIGN, translate
from holdfast.store.backends.heads import HeadNote
from holdfast.store.backends.packs import Packer, Packs
from holdfast.store.backends.rows import branch_row, journal_row, run_row
from holdfast.store.backends.tail import Tail


class SqliteReads:
    """Reads over one connection, each under its lock."""

    _file: Path
    _reading: threading.RLock
    _reader: sqlite3.Connection
    holds_values: bool
    packer: Packer
    _packs: Packs
    heads: HeadNote
    _tail: Tail
    _fault: StoreError | None
    _is_catalog_sound = False

    @contextlib.contextmanager
    def _link(self) -> Iterator[sqlite3.Connection]:
        with self._reading:
            self._refuse_if_unfit()
            try:
                yield self._reader
            except FOREIGN as error:
                raise translate(error, self._file) from error

    def run(self, kid: bytes) -> RunRow | None:
        """The run of that keyed id."""
        with self._link() as link:
            found = link.execute(schema.RUN_BY_KID, (kid,)).fetchone()
        return run_row(found) if found else None

    def runs(self, before: int | None, limit: int) -> list[RunRow]:
        """Up to `limit` runs, newest first."""
        with self._link() as link:
            found = link.execute(
                schema.RUNS_BELOW, (before if before is not None else 1 << 62, limit)
            ).fetchall()
        return [run_row(each) for each in found]

    def check_catalog(self, span: tuple[int, int] | None = None) -> None:
        """Raise `Damaged` if a run may look absent though it is there; of these numbers alone."""
        if not self._is_catalog_sound:
            with self._link() as link:
                catalog.check(link, span)
            self._is_catalog_sound = span is None

    def note(self, key: str) -> bytes | None:
        """What is noted under a key about the whole store."""
        with self._link() as link:
            found = link.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return found[0] if found else None

    def noted(self, start: str) -> dict[str, bytes]:
        """The notes about the whole store whose keys begin so."""
        with self._link() as link:
            found = link.execute(
                "SELECT key, value FROM meta WHERE key >= ? AND key < ?",
                (start, start + "\U0010ffff"),
            ).fetchall()
        return {str(key): bytes(value) for key, value in found}

    def branch(self, no: int) -> BranchRow | None:
        """The branch of that number."""
        with self._link() as link:
            found = link.execute(schema.BRANCH_BY_NO, (no,)).fetchone()
        return branch_row(found) if found else None

    def branches(self, run: int) -> list[BranchRow]:
        """Every branch of a run, oldest first."""
        with self._link() as link:
            return [branch_row(each) for each in catalog.branches(link, run)]

    def rows(self, first: int, last: int) -> list[JournalRow]:
        """The journal rows with ids from `first` to `last`, in order."""
        with self._link() as link:
            # Unpacked rows first: a row that is packed in between is then found twice, not never.
            loose = packs.loose(link, first, last, self._tail.rows())
            if len(loose) == last - first + 1:
                return loose
            packed = list(self._packs.rows(link, first, last))
        if not loose:
            return packed
        found = {row.id: row for row in chain(packed, loose)}
        return [found[id_] for id_ in sorted(found)]

    def beside(self, first: int, last: int) -> list[Beside]:
        """Values of rows from `first` to `last` that can be had without the rows, pack by pack."""
        if not self.holds_values:
            return []
        with self._link() as link:
            found = list(self._packs.beside(link, first, last))
        return [each for each in found if isinstance(each, Beside)]

    def unsound(self, branch: int) -> list[Damaged]:
        """What is wrong with the values that packs of a branch hold beside their rows."""
        with self._link() as link:
            found = list(self._packs.beside(link, *_all(branch)))
        return [each for each in found if isinstance(each, Damaged)]

    def last(self, branch: int) -> JournalRow | None:
        """The newest journal row of a branch."""
        first, end = _all(branch)
        with self._link() as link:
            beside = self._beside(branch)
            found = link.execute(
                "SELECT id, mac, body FROM j WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
                (first, end),
            ).fetchone()
            loose = journal_row(found) if found else None
            if beside and (loose is None or loose.id < beside[-1].id):
                loose = beside[-1]
            # In a damaged file a row may lie loose before packed ones; it is not the newest.
            return self._packs.last(link, loose.id + 1 if loose else first, end) or loose

    def end(self, branch: int) -> int:
        """The id of the newest row of a branch, known without opening any row."""
        with self._link() as link:
            beside = self._beside(branch)
            return max([packs.end(link, branch), *(row.id for row in beside)])

    def next_row(self, first: int, last: int) -> int:
        """Where the next row, or pack of rows, begins from `first` on; behind `last` if none does.

        Known without opening any row.
        """
        with self._link() as link:
            asked = {"first": first, "last": last}
            found = [id_ for id_ in self._tail.rows() if first <= id_ <= last]
            found += [
                link.execute(
                    "SELECT min(id) FROM j WHERE id BETWEEN :first AND :last", asked
                ).fetchone()[0],
                link.execute(
                    "SELECT min(first) FROM pack WHERE id BETWEEN :first AND :last "
                    "AND typeof(first)='integer' AND first>=:first",
                    asked,
                ).fetchone()[0],
            ]
        # A damaged tree may lead back to where one came from.
        return min([id_ for id_ in found if type(id_) is int and id_ >= first], default=last + 1)

    def tail(self, branch: int) -> tuple[int, int]:
        """The id of the first row of a branch that is not packed, and their bytes."""
        with self._link() as link:
            beside = self._beside(branch)
            first, size = link.execute(
                "SELECT coalesce(min(id), -1), coalesce(sum(length(body)), 0) FROM j "
                "WHERE id BETWEEN ? AND ?",
                _all(branch),
            ).fetchone()
        if beside:
            first = beside[0].id if first < 0 else min(first, beside[0].id)
        return first, size + sum(len(row.body) for row in beside)

    def beside_database(self) -> Mapping[int, JournalRow]:
        """The rows that stand in the tail, by their ids; `Damaged` if it cannot be read whole."""
        self._tail.refuse_damaged()
        return self._tail.rows()

    def _beside(self, branch: int) -> list[JournalRow]:
        """The rows of a branch that stand in the tail, in order."""
        rows = self._tail.rows()
        return [rows[id_] for id_ in sorted(rows) if branch_of(id_) == branch] if rows else []

    def intended(self, run: int, intent: bytes) -> list[int]:
        """Ids of the rows of a run that record this intent."""
        with self._link() as link:
            found = link.execute(
                "SELECT id FROM effect WHERE run=? AND intent=? ORDER BY id", (run, intent)
            ).fetchall()
        return [each[0] for each in found]

    def key(self, no: int) -> bytes | None:
        """The wrapped key of a run, or (0) of the store."""
        with self._link() as link:
            found = link.execute("SELECT body FROM key WHERE no=?", (no,)).fetchone()
        return found[0] if found else None

    def pack_with(self, packer: Packer) -> None:
        """From now on rows are packed, and packs read, by `packer`."""
        self.packer, self._packs = packer, Packs(packer)

    def missing(self) -> list[int]:
        """Acknowledged rows that the store does not hold as they were acknowledged."""
        gone = [(row, mac) for row, mac in self.heads.read() if not self._holds(row, mac)]
        # A run that was removed since the note was read: what removes it first leaves the note.
        noted = set(self.heads.read()) if gone else set()
        return [row for row, mac in gone if (row, mac) in noted] + self._missing_before_tail()

    def _missing_before_tail(self) -> list[int]:
        """Rows that must stand before those of the tail, and that the log has lost."""
        firsts: dict[int, int] = {}
        for id_ in sorted(self._tail.rows()):
            firsts.setdefault(branch_of(id_), id_)
        gone: list[int] = []
        for branch, first in firsts.items():
            with contextlib.suppress(Damaged), self._link() as link:
                if packs.end(link, branch) < first - 1:
                    gone.append(first - 1)
        standing = self._tail.rows() if gone else {}  # A run that was removed since has none.
        return [id_ for id_ in gone if id_ + 1 in standing]

    def _holds(self, row: int, mac: bytes) -> bool:
        with contextlib.suppress(Damaged):
            macs = [each.mac for each in self.rows(row, row)]
            return any(type(m) is bytes and m.ljust(len(mac), b"\0") == mac for m in macs)
        return False

    def integrity(self) -> list[str]:
        """What SQLite's own check finds wrong in the file."""
        with self._link() as link:
            found = link.execute("PRAGMA integrity_check").fetchall()
        return [str(each[0]) for each in found if each[0] != "ok"]

    def _refuse_if_unfit(self) -> None:
        if self._fault is not None:
            raise self._fault


def _all(branch: int) -> tuple[int, int]:
    """The first and the last id that a row of a branch may have."""
    return row_id(branch, 0), row_id(branch + 1, 0) - 1
