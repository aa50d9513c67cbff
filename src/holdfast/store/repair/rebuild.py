"""A new database that holds what is kept, and the exchange: the old one is moved aside whole.

Killed anywhere, the store is the old one or the new one. Nothing is deleted: the old database and
bad files lie below `lost/` in the store's directory.
"""

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.errors import StoreBusy
from holdfast.model.ids import branch_of, row_id, seq_of
from holdfast.model.run import RunBody
from holdfast.store.backends import packs, schema, slots, sweep
from holdfast.store.backends.base import BranchRow, JournalRow, RunRow
from holdfast.store.backends.connection import connect, create, named, transaction
from holdfast.store.backends.fs import RealFs
from holdfast.store.backends.heads import HeadNote
from holdfast.store.backends.locks import CommitLock
from holdfast.store.backends.packs import Packer
from holdfast.store.backends.sqlite import FILE
from holdfast.store.backends.tail import NAME as TAIL
from holdfast.store.backends.tail import read_tail
from holdfast.store.backends.wal import STAGE
from holdfast.store.repair.salvage import Salvage

LOST = "lost"
HEADS = "heads"
READY = "ready"
"""Says that the staged database is whole; once that has moved, only the head note is old."""


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """What a new database holds of one run: rows up to `ends`, then `added` behind them.

    `intents` are marks of its rows, for the index of the run whose number `ledger` is.
    """

    run: RunRow
    body: RunBody
    branches: list[BranchRow]
    ends: dict[int, int]
    added: list[JournalRow]
    intents: list[tuple[bytes, int]]
    ledger: int


@contextlib.contextmanager
def alone(path: Path, clock: Clock) -> Iterator[None]:
    """Nobody else opens the store or commits; `StoreBusy` while another process has it open."""
    lock = CommitLock(path / "lock", clock)
    try:
        with lock.held():
            _refuse_if_open(path / FILE)
            yield
    finally:
        lock.close()


def _refuse_if_open(file: Path) -> None:
    """SQLite lets one connection be exclusive only where there is no other."""
    with named(file), contextlib.closing(sqlite3.connect(file, timeout=0.5)) as link:
        try:
            link.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
            link.execute("BEGIN IMMEDIATE")
            link.execute("ROLLBACK")
            failpoint.reach("repair.emptying")
            link.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            failpoint.reach("repair.emptied")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise StoreBusy(str(file.parent), 0.5) from error
            raise


def stage(path: Path, store_id: bytes, keeps: Iterator[Keep], salvage: Salvage) -> Path:
    """Write the new database beside the old one; returns the directory it lies in."""
    place = path / STAGE
    shutil.rmtree(place, ignore_errors=True)  # What a repair that was killed had begun.
    place.mkdir(mode=0o700)
    file = place / FILE
    with named(file), contextlib.closing(connect(file)) as link:
        create(link, store_id)
        failpoint.reach("repair.writing")
        with transaction(link):
            for sql in schema.SEALED_TABLES.values() if salvage.is_sealed else ():
                link.execute(sql)
            for table, rows in salvage.others():
                _copy(link, table, rows)
            link.execute("UPDATE meta SET value=? WHERE key='store_id'", (store_id,))
            if salvage.generation is not None:
                sweep.begin_generation(
                    link, salvage.generation + 1
                )  # It holds all rows of the tail.
            for keep in keeps:
                _write(link, keep, salvage)
        failpoint.reach("repair.written")
        # Only the file is moved: what closing leaves in the log on a full disk would be lost.
        link.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        failpoint.reach("repair.gathered")
    return place


def _copy(link: sqlite3.Connection, table: str, rows: list[tuple[object, ...]]) -> None:
    for row in rows:
        link.execute(f"INSERT OR REPLACE INTO {table} VALUES ({','.join('?' * len(row))})", row)  # noqa: S608 our own names


def _write(link: sqlite3.Connection, keep: Keep, salvage: Salvage) -> None:
    run = keep.run
    link.execute(schema.RUN_INSERT, (run.no, run.kid, run.epoch, run.head, run.mac, run.body))
    for each in keep.branches:
        link.execute(
            schema.BRANCH_INSERT,
            (each.no, each.run, each.parent, each.at, each.mac, each.body),
        )
        first = row_id(each.no, seq_of(each.at) + 1 if each.parent else 0)
        _write_rows(link, range(first, keep.ends[each.no] + 1), salvage)
    for row in keep.added:
        link.execute("INSERT INTO j VALUES (?,?,?)", (row.id, row.mac, row.body))
    for intent, id_ in keep.intents:
        link.execute(schema.EFFECT_INSERT, (keep.ledger, intent, id_))


def _write_rows(link: sqlite3.Connection, ids: range, salvage: Salvage) -> None:
    """Packs as they are where all of their rows are kept, else the rows by themselves."""
    packed: set[int] = set()
    branch = branch_of(ids.start)
    rows = salvage.rows(branch)
    for last, (first, body) in salvage.packs(branch).items():
        if type(first) is int and first in ids and last in ids and first in rows:
            link.execute("INSERT INTO pack VALUES (?,?,?)", (last, first, body))
            packed.update(range(first, last + 1))
    for id_, row in rows.items():
        if id_ in ids and id_ not in packed:
            link.execute("INSERT INTO j VALUES (?,?,?)", (row.id, row.mac, row.body))


def is_unsettled(path: Path) -> bool:
    """Whether an exchange was killed when the new database stood already."""
    return (path / STAGE / READY).exists() and not (path / STAGE / FILE).exists()


def settle(path: Path, clock: Clock, packer: Packer) -> None:
    """Finish such an exchange."""
    with alone(path, clock):
        _finish(path, packer)


def exchange(path: Path, into: Path, bad: list[Path], packer: Packer) -> None:
    """Keep the old database and bad files in `into`, and put the new database in its place."""
    fs = RealFs()
    fs.make_directory(into.parent)
    fs.make_directory(into)
    for name in (FILE, HEADS):
        _link(path / name, into / name)
    if tail := read_tail(path / TAIL):
        # A copy: whoever opens the store before we are done writes into that same file.
        fs.write_new(into / TAIL, tail)
    fs.flush_directory(into)
    for file in bad:
        if os.path.lexists(file):  # Also a link that leads nowhere.
            fs.make_directory(into / "objects")
            fs.rename(file, into / "objects" / file.name)
            fs.flush_directory(file.parent)
    with contextlib.suppress(FileNotFoundError):
        # Emptied above: an old log must not be read into the new database.
        (path / f"{FILE}-wal").unlink()
    fs.write_new(path / STAGE / READY, b"")
    fs.flush_directory(path / STAGE)
    shutil.copymode(path / FILE, path / STAGE / FILE)  # Whoever could read it still can.
    failpoint.reach("repair.exchanging")
    os.replace(path / STAGE / FILE, path / FILE)  # noqa: PTH105 the name says that it replaces
    failpoint.reach("repair.exchanged")
    fs.flush_directory(path)
    _finish(path, packer)


def _finish(path: Path, packer: Packer) -> None:
    """The new database stands: nothing beside it is of the old one any more."""
    note(path, packer)
    if not _is_in_use(path):
        RealFs().remove(path / TAIL)
    shutil.rmtree(path / STAGE, ignore_errors=True)


def _is_in_use(path: Path) -> bool:
    """Whether rows stand in the tail since the new database does: somebody went on meanwhile."""
    file, data = path / FILE, read_tail(path / TAIL)
    with named(file), contextlib.closing(connect(file, for_reading=True)) as link:
        seed = slots.seed(sweep.noted(link, "store_id") or b"")
        return slots.newest(data, seed) >= max(sweep.generation(link), 0)


def _link(file: Path, into: Path) -> None:
    """A second name for a file, so that giving the first one away loses nothing."""
    if file.exists() and not into.exists():
        os.link(file, into)


def note(path: Path, packer: Packer) -> None:
    """Write the head note anew, as the database says it."""
    new = path / f"{HEADS}.part"
    new.unlink(missing_ok=True)
    heads = HeadNote(new)
    file = path / FILE
    with named(file), contextlib.closing(connect(file, for_reading=True)) as link:
        for id_, mac in _newest(link, packer):
            heads.write(id_, mac)
    heads.close()
    RealFs().rename(new, path / HEADS)


def _newest(link: sqlite3.Connection, packer: Packer) -> Iterator[tuple[int, bytes]]:
    """The newest row of each branch, the oldest branch first."""
    for (no,) in link.execute("SELECT no FROM branch ORDER BY no").fetchall():
        end = packs.end(link, no)
        loose = packs.read_rows(link, end, end)
        row = (loose or list(packs.Packs(packer).rows(link, end, end)))[-1]
        yield row.id, row.mac
