"""Records in one SQLite file, the newest rows beside it: one flush a commit, many processes."""

import contextlib
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.errors import Damaged, StoreClosed, StoreError
from holdfast.store.backends import packs, sweep
from holdfast.store.backends.base import (
    Append,
    Create,
    Grow,
    JournalRow,
    Objects,
    Write,
)
from holdfast.store.backends.connection import (
    FOREIGN,
    check,
    connect,
    create,
    holds_patches,
    holds_tail,
    holds_values,
    is_sealed,
    named,
    names_leaves,
    transaction,
    translate,
)
from holdfast.store.backends.doing import Doing
from holdfast.store.backends.heads import HeadNote
from holdfast.store.backends.locks import CommitLock
from holdfast.store.backends.packs import OpenPacker
from holdfast.store.backends.reads import SqliteReads
from holdfast.store.backends.sole import Soles, is_bare
from holdfast.store.backends.tail import Tail
from holdfast.store.backends.wal import Wal

FILE = "store.db"


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
        self._wal = Wal(self._file, self._lock)
        self._tail = Tail(directory)
        self._soles = Soles()
        self._is_in = False
        self._begun: list[JournalRow] = []  # first rows of branches that this commit begins
        self._ready: dict[int, packs.Ready] = {}  # packs made for this commit, by their last rows
        try:
            with named(self._file):
                self._open()
        except BaseException:
            self._tail.close()
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
                self._has_tail = holds_tail(writer)
                if not self._is_in:  # A failed append is void: it was not acknowledged.
                    generation = sweep.generation(writer) if self._has_tail else None
                    self._tail.enter(self.store_id, generation)
                    self._is_in = True
                self._reader = connect(self._file, for_reading=True)
            except BaseException:
                writer.close()
                raise
            self._writer = writer
            if is_made:  # Whoever makes a store writes to it; who only reads one leaves its log.
                try:
                    self._wal.grow(writer)
                except BaseException:
                    self._drop()
                    raise

    def commit(self, writes: Sequence[Write]) -> list[int]:
        """Do all `writes` in one transaction, durable when this returns."""
        with self._writing:
            if self._fault is not None:
                raise self._fault
            try:
                if len(writes) == 1 and (row := self._add_at_once(writes[0])) >= 0:
                    return [row]
                self._make_packs(writes)
                done = self._commit_alone(writes)
                self._note(writes, done)
            except StoreError as error:
                self._fault = error
                self._drop()
                raise
        return done

    def _add_at_once(self, write: Write) -> int:
        """Commit a bare row that goes to the tail as a matter of course: every answer waits for it.

        -1, and nothing done, where it is none.
        """
        fence = self._tail.fence
        if write.objects or not self._soles.are_next((write,), fence):
            return -1
        assert type(write) is Append
        try:
            if self._tail.add(write.row, fence, self._lock, self.heads):
                return write.row.id
        except BaseException:
            self._soles.forget()
            raise
        self._soles.put_back(write)
        return -1

    def _make_packs(self, writes: Sequence[Write]) -> None:
        """Make the packs that fall due before other processes have to wait for this commit."""
        self._ready.clear()
        for write in writes:
            if type(write) is Append and write.pack_from >= 0 and not self._writer.in_transaction:
                first, new, beside = write.pack_from, write.row, self._tail.rows()
                with named(self._file):
                    made = packs.ready(self._writer, self.packer, first, new.id, new, beside=beside)
                self._ready[new.id] = made

    def _commit_alone(self, writes: Sequence[Write]) -> list[int]:
        """Commit while no other process does. Written out, since every answer waits for it."""
        try:
            self._lock.take()
            self._uphold(writes)
            failpoint.reach("store.committing")
            done = self._append_to_tail(writes) or self._commit_rows(writes)
            failpoint.reach("store.committed")
        except BaseException as error:
            self._soles.forget()  # What was taken for written may not be.
            if isinstance(error, FOREIGN):
                raise translate(error, self._file) from error
            raise
        finally:
            self._lock.give()
        return done

    def _append_to_tail(self, writes: Sequence[Write]) -> list[int] | None:
        """Commit bare rows of branches that only this process writes; None where that cannot be."""
        tail = self._tail
        if tail.is_unsettled or tail.is_damaged or not self._soles.are_next(writes, tail.fence):
            return None
        rows = [write.row for write in writes if type(write) is Append]
        return [row.id for row in rows] if tail.append(rows) else None

    def _commit_rows(self, writes: Sequence[Write]) -> list[int]:
        """Commit to the database, which takes in all that stands in the tail."""
        if self._writer.in_transaction:  # Ctrl-C cut off a commit: it is done again.
            self._writer.execute("ROLLBACK")
        if not self._wal.is_grown:
            self._wal.grow(self._writer)
        if any(map(_may_fence, writes)):
            self._soles.forget()
            self._tail.raise_fence()
        standing = self._standing()
        beside = standing or {}
        doing = Doing(self._writer, self.packer, beside, self._ready)
        if standing is None and len(writes) == 1 and is_bare(writes[0]):
            done = [doing.do(writes[0])]
        else:
            with self._taking_in(standing):
                done = [doing.do(write) for write in writes]
        self._begun = doing.begun
        if self._has_tail:
            self._soles.learn(writes, done, self._tail.fence)
        self._wal.recycle(self._writer, writes, sum(len(row.body) for row in beside.values()))
        return done

    def _standing(self) -> Mapping[int, JournalRow] | None:
        """The rows of the tail that the database is to take in; None where it has nothing to do.

        Where somebody was cut off it has, also without a row: what was left must count no more.
        """
        tail = self._tail
        if not (tail.is_filled or tail.is_unsettled):
            return None
        tail.refuse_damaged()
        generation = sweep.generation(self._writer)
        if generation < tail.generation:
            raise Damaged("meta", "it does not say which generation of the tail counts")
        if generation > tail.generation:  # Cut off when the database had taken all in.
            tail.begun_anew(generation)
            return None
        return tail.rows()

    @contextlib.contextmanager
    def _taking_in(self, standing: Mapping[int, JournalRow] | None) -> Iterator[None]:
        """A transaction; with it the database takes in the tail, but for what packs of it hold."""
        generation = self._tail.generation + 1
        if standing is not None:
            self._tail.begin_anew()
        failpoint.reach("tail.taking")
        with transaction(self._writer):
            if standing is not None:
                packed = {id_ for made in self._ready.values() for id_ in made.inner}
                rows = (row for row in standing.values() if row.id not in packed)
                packs.insert(self._writer, rows)
                sweep.begin_generation(self._writer, generation)
            yield
        failpoint.reach("tail.taken")
        if standing is not None:
            self._tail.begun_anew(generation)

    def _take_in(self) -> None:
        """Let the database take in the tail; whoever asks holds the lock."""
        self._ready.clear()
        standing = self._standing()
        if standing is not None:
            with self._taking_in(standing):
                pass
            self._wal.recycle(self._writer, (), sum(len(row.body) for row in standing.values()))

    def _uphold(self, writes: Sequence[Write]) -> None:
        """What these writes name is there, or is again: nobody collects garbage now."""
        for write in writes:
            if write.objects and self._objects is not None:
                for id_, data in write.objects.items():
                    self._objects.uphold(id_, data)

    def _note(self, writes: Sequence[Write], done: Sequence[int]) -> None:
        for write, row in zip(writes, done, strict=True):
            if type(write) is Append and row >= 0:
                self.heads.write(row, write.row.mac)
        for first in self._begun:
            self.heads.write(first.id, first.mac)
        self._begun = []

    def settle(self) -> None:
        """Let the database hold all rows, for who reads it by itself."""
        with self.alone():
            pass

    def empty_log(self) -> None:
        """Let no log and no tail hold an old page: all of it is moved into the database."""
        with self.alone() as link:
            self._wal.empty(link)
            self._tail.wipe()

    @contextlib.contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
        """The writing connection, while nobody else commits; a fault there is one of the store.

        The database holds all rows then. Whatever is done to them, every writer looks there first.
        """
        with self._writing:
            self._refuse_if_unfit()
            try:
                with self._lock.held(), named(self._file):
                    self._soles.forget()
                    self._tail.raise_fence()
                    self._take_in()
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
            self._fault, self._wal.is_grown = None, False

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
        self._tail.close()
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
                    self._leave_tail()
                    self._wal.shorten(self._writer)
                    failpoint.reach("store.closing")
                    self._writer.close()
                    failpoint.reach("store.closed")
            self._fault = StoreClosed(str(self._file.parent), "is closed")
            with contextlib.suppress(OSError):
                self.heads.close()
            self._tail.close()
            self._lock.close()

    def _leave_tail(self) -> None:
        """Leave all rows in the database, and no tail if nobody else has the store open.

        Where that cannot be, as on a full disk, they stay where they are, and whoever comes next
        finds them. Who only read leaves them too.
        """
        if self._wal.is_grown:
            with contextlib.suppress(*FOREIGN, StoreError):
                self._take_in()
        self._tail.leave()


def _may_fence(write: Write) -> bool:
    """Whether somebody else may have written the run until now, who is to do so no more."""
    match write:
        case Append():
            return write.run is not None and write.run.epoch != write.epoch
        case Grow():
            return True
        case Create():
            return False
