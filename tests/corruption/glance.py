"""A quick look at a damaged database: does it answer as before, or only with rows that fail?

Most of a million flips need no more than this: a database that answers every query of the library
as it did is unaffected, and a row that fails the library's own check is never used. Whatever else
is different is read in full (`trial.judge`).
"""

import contextlib
import sqlite3
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

from holdfast.errors import Damaged
from holdfast.store.backends.base import BranchRow, JournalRow, RunRow
from holdfast.store.chain import check_branch, check_row, check_run
from holdfast.store.codec.frame import open_frame
from holdfast.store.packer import rows_in

Answers = dict[str, list[tuple[Any, ...]]]

QUERIES = {
    "run": "SELECT no, kid, epoch, head, mac, body FROM run ORDER BY no DESC",
    "kid": "SELECT kid, no FROM run INDEXED BY sqlite_autoindex_run_1 ORDER BY kid",
    "branch": "SELECT no, run, parent, at, mac, body FROM branch ORDER BY no",
    "branch_run": "SELECT run, no FROM branch INDEXED BY branch_run ORDER BY run, no",
    "j": "SELECT id, mac, body FROM j ORDER BY id",
    "j back": "SELECT id FROM j ORDER BY id DESC",
    "pack": "SELECT id, first, body FROM pack ORDER BY id",
    "pack back": "SELECT id FROM pack ORDER BY id DESC",
    "effect": "SELECT run, intent, id FROM effect ORDER BY run, intent, id",
    "meta": "SELECT key, value FROM meta WHERE key <> 'pad'",
    "schema": "SELECT name, sql FROM sqlite_master",
    "version": "PRAGMA user_version",
    "application": "PRAGMA application_id",
    "integrity": "PRAGMA integrity_check",
}
LOOKUPS = {
    "kid": "SELECT no FROM run WHERE kid=?",
    "run": "SELECT kid FROM run WHERE no=?",
    "branch": "SELECT run FROM branch WHERE no=?",
    "branch_run": "SELECT no FROM branch WHERE run=? ORDER BY no",
    "j": "SELECT mac FROM j WHERE id=?",
    "pack": "SELECT first FROM pack WHERE id=?",
}
"""How the library finds one row by its key: a damaged tree may list it and not find it."""
ROWS = ("run", "branch", "j", "pack")


class Look(Enum):
    """What a glance can tell."""

    SAME = auto()
    LOUD = auto()
    UNCLEAR = auto()


@dataclass(frozen=True, kw_only=True)
class Healthy:
    """What the database answered before it was damaged."""

    answers: Answers
    store_id: bytes
    before: dict[int, bytes]
    """For each row of the journal and each branch, the hash it follows."""

    @property
    def tail(self) -> bytes:
        """What the database says of the tail: which generation of it counts, and a checksum."""
        found: bytes = next(value for key, value in self.answers["meta"] if key == "tail")
        return found

    @property
    def generation(self) -> int:
        """Which generation of the tail counts."""
        return int.from_bytes(self.tail[:8], "big")


def healthy(file: Path) -> Healthy:
    """Look at a database that nobody has damaged."""
    found = answers(file)
    assert found is not None
    assert [("ok",)] == found["integrity"]
    macs = {row[0]: row[4] for row in found["branch"]}
    rows = {row[0]: row[1] for row in found["j"]}
    for last, first, body in found["pack"]:
        rows |= {row.id: row.mac for row in rows_in(first, last, body)}
    before = {id_: rows.get(id_ - 1) or macs[id_ >> 32] for id_ in rows}
    before |= {row[0]: rows[row[3]] if row[2] else b"" for row in found["branch"]}
    store_id: bytes = next(value for key, value in found["meta"] if key == "store_id")
    return Healthy(answers=found, store_id=store_id, before=before)


def answers(file: Path) -> Answers | None:
    """What the database says to every query of the library; None where it says an error."""
    try:
        with contextlib.closing(sqlite3.connect(file)) as link:
            link.execute("PRAGMA cell_size_check=1")
            found = {name: link.execute(sql).fetchall() for name, sql in QUERIES.items()}
            for name, sql in LOOKUPS.items():
                keys = [row[:1] for row in found[name]]
                found[f"{name} by key"] = [tuple(link.execute(sql, key)) for key in keys]
            return found
    except (sqlite3.Error, UnicodeDecodeError, OverflowError):
        return None


def glance(file: Path, known: Healthy) -> Look:
    """Whether the database answers as before, or differs in nothing but rows that fail."""
    found = answers(file)
    if found is None:
        return Look.UNCLEAR
    if found == known.answers:
        return Look.SAME
    for name, rows in found.items():
        expected = known.answers[name]
        if rows == expected:
            continue
        if name not in ROWS or len(rows) != len(expected):
            return Look.UNCLEAR
        for row, was in zip(rows, expected, strict=True):
            if row != was and not (is_alike(row, was) and fails(name, row, known)):
                return Look.UNCLEAR
    return Look.LOUD


def is_alike(row: tuple[Any, ...], was: tuple[Any, ...]) -> bool:
    """Whether a row stands under its old key and still has numbers and bytes where it had them."""
    return row[0] == was[0] and [*map(type, row)] == [*map(type, was)]


def fails(name: str, row: tuple[Any, ...], known: Healthy) -> bool:
    """Whether the library's own check refuses the row."""
    try:
        match name:
            case "run":
                names = ("no", "kid", "epoch", "head", "mac", "body")
                check_run(known.store_id, RunRow(**dict(zip(names, row, strict=True))))
            case "branch":
                parts = ("no", "run", "parent", "at", "mac", "body")
                branch = BranchRow(**dict(zip(parts, row, strict=True)))
                check_branch(known.store_id, branch, known.before[branch.no])
            case "j":
                _check_rows([JournalRow(id=row[0], mac=row[1], body=row[2])], known)
            case _:
                _check_rows(rows_in(row[1], row[0], row[2]), known)
    except Damaged:
        return True
    return False


def _check_rows(rows: list[JournalRow], known: Healthy) -> None:
    for row in rows:
        check_row(known.store_id, row, known.before[row.id])
        open_frame(row.body, "row")
