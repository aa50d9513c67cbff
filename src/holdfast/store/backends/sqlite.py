"""Records in one SQLite file: write-ahead log, one flush per commit, many processes."""

import contextlib
import os
import secrets
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.errors import Damaged, StoreBusy, StoreClosed, StoreError
from holdfast.model.ids import SEQ_MAX, branch_of
from holdfast.store.backends import packs, schema, sweep
from holdfast.store.backends.base import (
    Append,
    BranchRow,
    Create,
    Grow,
    JournalRow,
    Objects,
    RunRow,
    Write,
)
from holdfast.store.backends.connection import (
    FOREIGN,
    check,
    connect,
    create,
    holds_patches,
    holds_values,
    is_sealed,
    named,
    names_leaves,
    transaction,
    translate,
)
from holdfast.store.backends.heads import HeadNote
from holdfast.store.backends.locks import CommitLock
from holdfast.store.backends.packs import OpenPacker, Packs
from holdfast.store.backends.place import unwritable
from holdfast.store.backends.reads import SqliteReads
from holdfast.store.backends.shrink import shrink

FILE = "store.db"
STAGE = "repairing"
"""Where a repair writes the new database until it takes the place of the old one."""
WAL_PAGES = 512
"""The log is grown to this many pages once and reused: growing it doubles a commit's time."""
_PAGE, _FRAME_BYTES = 4096, 24
PACK_PAGES = 40
"""About how many pages a pack and the deletion of its rows write."""
LOG_ATTEMPTS, LOG_WAIT_S = 3, 5.0
"""How often the log is tried to be emptied, and how long SQLite waits for readers each time."""
PAGES_UNTOLD_MAX = 8
"""So many pages a process may write before it adds them to the count that all of them share."""


class SqliteRecords(SqliteReads):
    """Rows of an embedded store. One connection writes, one reads; each under its lock."""

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        root: Callable[[bytes], bytes] | None = None,
        objects: Objects | None = None,
    ) -> None:
        self._file, self._root = directory / FILE, root
        self._objects = objects
        self._lock = CommitLock(directory / "lock", clock)
        self.heads = HeadNote(directory / "heads")
        self._writing, self._reading = threading.Lock(), threading.RLock()
        self._fault: StoreError | None = None
        self._is_grown = False
        self._pages = 0  # written to the log by this process and not told to the others
        self._begun: list[JournalRow] = []  # first rows of branches that this commit begins
        self._ready: dict[int, packs.Ready] = {}  # packs made for this commit, by their last rows
        try:
            with named(self._file):
                self._open()
        except BaseException:
            self._lock.close()
            self.heads.abandon()
            raise
        self.pack_with(OpenPacker())

    def _open(self) -> None:
        with self._lock.held():
            writer = connect(self._file)
            try:
                is_made = create(writer, secrets.token_bytes(16), self._root)
                self.store_id = check(writer, self._file)
                self.is_sealed, self.holds_values = is_sealed(writer), holds_values(writer)
                self.names_leaves = names_leaves(writer)
                self.holds_patches = holds_patches(writer)
                self._reader = connect(self._file, for_reading=True)
            except BaseException:
                writer.close()
                raise
            self._writer = writer
            if is_made:  # Whoever makes a store writes to it; who only reads one leaves its log.
                try:
                    self._grow()
                except BaseException:
                    self._drop()
                    raise

    def commit(self, writes: Sequence[Write]) -> list[int]:
        """Do all `writes` in one transaction, durable when this returns."""
        with self._writing:
            if self._fault is not None:
                raise self._fault
            try:
                self._make_packs(writes)
                done = self._commit_alone(writes)
                self._note(writes, done)
            except StoreError as error:
                self._fault = error
                self._drop()
                raise
        return done

    def _make_packs(self, writes: Sequence[Write]) -> None:
        """Make the packs that fall due before other processes have to wait for this commit."""
        self._ready.clear()
        for write in writes:
            if type(write) is Append and write.pack_from >= 0 and not self._writer.in_transaction:
                first, new = write.pack_from, write.row
                with named(self._file):
                    made = packs.ready(self._writer, self.packer, first, new.id, new)
                self._ready[new.id] = made

    def _commit_alone(self, writes: Sequence[Write]) -> list[int]:
        """Commit while no other process does. Written out, since every answer waits for it."""
        try:
            self._lock.take()
            if self._writer.in_transaction:  # Ctrl-C cut off a commit: it is done again.
                self._writer.execute("ROLLBACK")
            if not self._is_grown:
                self._grow()
            self._uphold(writes)
            failpoint.reach("store.committing")
            done = self._do(writes)
            failpoint.reach("store.committed")
            self._recycle(writes)
        except FOREIGN as error:
            raise translate(error, self._file) from error
        finally:
            self._lock.give()
        return done

    def _uphold(self, writes: Sequence[Write]) -> None:
        """What these writes name is there, or is again: nobody collects garbage now."""
        for write in writes:
            if write.objects and self._objects is not None:
                for id_, data in write.objects.items():
                    self._objects.uphold(id_, data)

    def _do(self, writes: Sequence[Write]) -> list[int]:
        if len(writes) == 1:
            write = writes[0]
            if type(write) is Append and _is_bare(write):
                return [self._append(write)]
        self._begun.clear()
        with transaction(self._writer):
            return [self._one(write) for write in writes]

    def _one(self, write: Write) -> int:
        match write:
            case Append():
                done = self._append(write)
                if done >= 0 and write.run is not None:
                    self._update(write.run, write.epoch)
                self._index(write.ledger or write.no, write.intents, done)
                if done >= 0 and write.pack_from >= 0:
                    made = self._ready.get(done)
                    packs.write(self._writer, self.packer, write.pack_from, done, made)
                if done >= 0 and write.is_pruned:
                    sweep.note_pruned(self._writer, branch_of(done))
                return done
            case Create():
                return self._create(write)
            case Grow():
                return self._branch_off(write)

    def _append(self, write: Append) -> int:
        row, id_ = write.row, write.row.id
        place = (id_ - 1, id_ - 1, id_, id_ | SEQ_MAX)
        try:
            found = self._writer.execute(
                schema.APPEND, (id_, row.mac, row.body, write.no, write.epoch, *place)
            )
            if found.rowcount == 1:
                return id_
        except sqlite3.IntegrityError:
            pass
        # Somebody wrote this place: we did, if it is the same row, else we are fenced.
        return row.id if self._is_at(write.no, write.epoch) and self._stands(row) else -1

    def _is_at(self, no: int, epoch: int) -> bool:
        found = self._writer.execute("SELECT epoch FROM run WHERE no=?", (no,)).fetchone()
        return bool(found == (epoch,))

    def _stands(self, row: JournalRow) -> bool:
        loose = packs.read_rows(self._writer, row.id, row.id)
        packed = Packs(self.packer).rows(self._writer, row.id, row.id)
        return any(row.mac == known.mac for known in loose or packed)

    def _create(self, write: Create) -> int:
        link = self._writer
        if link.execute("SELECT 1 FROM run WHERE kid=?", (write.kid,)).fetchone():
            return -1
        run, branch, row = write.build(*sweep.next_numbers(link))
        if branch.parent and not link.execute(schema.BRANCH_BY_NO, (branch.parent,)).fetchone():
            return -1  # It was to grow from a run that was removed or erased since.
        if any(sweep.noted(link, key) != value for key, value in write.notes.items()):
            return -1
        link.execute(schema.RUN_INSERT, (run.no, run.kid, run.epoch, run.head, run.mac, run.body))
        if run.key:
            link.execute("INSERT INTO key VALUES (?,?)", (run.no, run.key))
        self._insert_branch(branch)
        link.execute("INSERT INTO j VALUES (?,?,?)", (row.id, row.mac, row.body))
        self._index(write.ledger or run.no, write.intents, row.id)
        self._begun.append(row)
        return run.no

    def _branch_off(self, write: Grow) -> int:
        link = self._writer
        if not self._is_at(write.no, write.epoch):
            return -1
        branch, run, row = write.build(sweep.next_numbers(link)[1])
        self._insert_branch(branch)
        if run is not None:
            self._update(run, write.epoch)
        link.execute("INSERT INTO j VALUES (?,?,?)", (row.id, row.mac, row.body))
        self._index(write.ledger or write.no, write.intents, row.id)
        self._begun.append(row)
        return row.id

    def _insert_branch(self, branch: BranchRow) -> None:
        self._writer.execute(
            schema.BRANCH_INSERT,
            (branch.no, branch.run, branch.parent, branch.at, branch.mac, branch.body),
        )

    def _update(self, run: RunRow, epoch: int) -> None:
        self._writer.execute(
            schema.RUN_UPDATE, (run.epoch, run.head, run.mac, run.body, run.no, epoch)
        )

    def _index(self, ledger: int, intents: Sequence[bytes], row: int) -> None:
        if row >= 0:
            for intent in intents:
                self._writer.execute(schema.EFFECT_INSERT, (ledger, intent, row))

    def _note(self, writes: Sequence[Write], done: Sequence[int]) -> None:
        for write, row in zip(writes, done, strict=True):
            if type(write) is Append and row >= 0:
                self.heads.write(row, write.row.mac)
        while self._begun:
            first = self._begun.pop()
            self.heads.write(first.id, first.mac)

    def _grow(self) -> None:
        """Make the log its full length once, unflushed; then empty it, flushed.

        The log ends for SQLite where no frame follows with its checksum, so zeros add nothing to
        it. Nobody appends meanwhile: we hold the lock.
        """
        self._is_grown = True
        wal = self._file.with_name(FILE + "-wal")
        try:
            with wal.open("r+b") as log:  # SQLite has made it, with the rights it is to have.
                missing = WAL_PAGES * (_PAGE + _FRAME_BYTES) - log.seek(0, os.SEEK_END)
                log.write(bytes(max(0, missing)))
        except OSError as error:
            raise unwritable(self._file.parent, error) from error
        if missing > 0:
            self._checkpoint()

    def _recycle(self, writes: Sequence[Write]) -> None:
        """Move the log into the database before it outgrows its length; all processes count."""
        pages = 0
        for write in writes:
            size = len(write.row.body) if type(write) is Append else _PAGE
            pages += 2 + size // _PAGE
            if type(write) is Append and write.pack_from >= 0:
                pages += PACK_PAGES
        self._pages += pages
        if self._pages >= PAGES_UNTOLD_MAX:
            told, self._pages = self._pages, 0
            if self._lock.count(told) >= WAL_PAGES * 3 // 4:
                self._checkpoint()

    def _checkpoint(self) -> None:
        failpoint.reach("store.recycling")
        self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        failpoint.reach("store.recycled")
        self._lock.count(-self._lock.count(0))

    def empty_log(self) -> None:
        """Move the whole log into the database and cut it to nothing, so that no old page is left.

        What a killed repair had begun goes too: a copy of all rows. `StoreBusy` if somebody reads
        from the log for too long.
        """
        with self.alone() as link:
            stage = self._file.parent / STAGE
            if (stage / FILE).exists():  # Else a repair is all but over, or there was none.
                shutil.rmtree(stage)
            for _ in range(LOG_ATTEMPTS):
                failpoint.reach("store.emptying")
                busy = link.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                failpoint.reach("store.emptied")
                if not busy:
                    self._lock.count(-self._lock.count(0))
                    return
        raise StoreBusy(str(self._file.parent), LOG_ATTEMPTS * LOG_WAIT_S)

    @contextlib.contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """The writing connection, while nobody else commits; a fault there is one of the store."""
        with self._writing:
            self._refuse_if_unfit()
            try:
                with self._lock.held(), named(self._file):
                    yield self._writer
            except StoreError as error:
                self._fault = error
                self._drop()
                raise

    def revive(self) -> None:
        """After a failed commit: connect anew; what stands on the disk is what counts."""
        if self._fault is not None:  # Else nobody waits here for a commit that goes on.
            self._connect_anew()

    def _connect_anew(self) -> None:
        with self._writing, self._reading:
            if self._fault is None or isinstance(self._fault, StoreClosed | Damaged):
                return
            with named(self._file):
                self._open()
            self._fault, self._is_grown = None, False

    def _drop(self) -> None:
        """A failed commit has an unknown outcome: this connection is never asked again."""
        with self._reading:
            for link in (self._writer, self._reader):
                with contextlib.suppress(sqlite3.Error):
                    link.close()

    def abandon(self) -> StoreClosed:
        """In a forked child: touch nothing of the parent's and refuse every call, saying why."""
        self._writing, self._reading = threading.Lock(), threading.RLock()
        fault = StoreClosed(str(self._file.parent), "was opened before this process forked")
        self._fault = fault
        self._lock.close()
        self.heads.abandon()
        return fault

    def close(self) -> None:
        """Empty the log into the database, as short as it can be, and close. Idempotent."""
        with self._writing, self._reading:
            if isinstance(self._fault, StoreClosed):
                return
            if self._fault is None:
                with self._lock.held(), named(self._file):
                    self._reader.close()
                    if self._is_grown:
                        self._lock.count(shrink(self._writer))
                    failpoint.reach("store.closing")
                    self._writer.close()
                    failpoint.reach("store.closed")
            self._fault = StoreClosed(str(self._file.parent), "is closed")
            with contextlib.suppress(OSError):
                self.heads.close()
            self._lock.close()


def _is_bare(write: Append) -> bool:
    is_alone = write.run is None and not write.intents and write.pack_from < 0
    return is_alone and not write.is_pruned
