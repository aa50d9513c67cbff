"""The tail: the newest rows, in a file of their own until the database takes them in.

A row is one write and one flush there, where an INSERT is several pages. Only rows of which nobody
else writes any go there (`sole`). All processes of a store append to one file, each while it holds
the commit lock; where it ends they tell each other in shared memory. When the database has taken
all rows in, a new generation begins at the front, and what the old one left counts no more.
"""

import contextlib
import errno
import mmap
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import failpoint, native
from holdfast.errors import Damaged, StoreBusy
from holdfast.ondemand import OnDemand
from holdfast.store.backends import slots
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.fs import RealFs
from holdfast.store.backends.heads import HeadNote
from holdfast.store.backends.locks import ByteLocks, CommitLock
from holdfast.store.backends.place import file_system, unwritable

if TYPE_CHECKING:
    import fcntl
else:
    fcntl = OnDemand("fcntl")  # Windows has none: there `place` refuses the store, not the import.

NAME = "tail"
BYTES_MIN, BYTES_MAX = 256 * 1024, 4 * 1024 * 1024
"""The file is this long at first and doubles up to this length; then the database takes it in."""

PASSED_BY = frozenset({"ext4", "xfs", "tmpfs"})
"""File systems whose page cache rows pass by: where tests cut the power meanwhile, and memory."""

FEW_ROWS = 16
"""Who adds no more than these has C sleep: for looking, the process would end 30 ms later."""

LOOK_NS = 200_000
"""So long C looks for the answer of the disk. One that takes longer is slept for, then and next."""

PLACE, _SHARED_BYTES = 16, 64
"""Where in the lock file the shared numbers begin, and where they end."""
_UNSETTLED, _GENERATION, _END, _FENCE, _DAMAGED = 2, 3, 4, 5, 6  # among its 8-byte numbers
PRESENT = 1 << 41
"""Everybody who has the rows of a store open shares this byte of the file of leases."""


class Tail:
    """The tail of one open store. Writing it is for whoever holds the commit lock."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._path = directory, directory / NAME
        self.fd = -1
        self._direct: object = None
        self.room = 0
        self._presence = ByteLocks(directory / "leases")
        try:
            self._shared = _map(directory / "lock")
        except OSError as error:
            self._presence.close()
            raise unwritable(directory, error) from error
        self.words = memoryview(self._shared).cast("Q")
        self._seed, self._is_used = 0, False
        self._reading = threading.RLock()
        self._rows: dict[int, JournalRow] = {}
        self._read = (-1, 0)  # the generation that those are of, and how far it was read

    def enter(self, store: bytes, generation: int | None) -> None:
        """Take part. Who finds nobody else here reads how far the tail goes.

        `generation` is the one that the database says counts, -1 where it cannot tell; None of a
        store that has no tail. What is found may be of a process that was killed before it had
        flushed it: it is flushed now. The next commit moves it into the database, since nobody
        knows yet where any branch ends.
        """
        self._seed, self._is_used = slots.seed(store), generation is not None
        if self._presence.take(PRESENT):
            self._begin(generation)
        if not self._presence.share(PRESENT):  # Killed while it was alone, and its child lives on.
            raise StoreBusy(str(self._directory), 0.0)

    def _begin(self, told: int | None) -> None:
        """Say to all how things stand: nothing is believed of what was said before."""
        data, words = self._bytes(0, BYTES_MAX), self.words
        generation = max(slots.newest(data, self._seed), 0) if told == -1 else told or 0
        found = slots.read(data, self._seed, generation)
        if found.end:
            self._flush()
        words[_END], words[_GENERATION], words[_FENCE] = found.end, generation, 0
        words[_DAMAGED] = found.is_damaged or told == -1
        # Who left a file was cut off; a record of it that is not sound may be the only one.
        words[_UNSETTLED] = bool(data or words[_DAMAGED])

    @property
    def is_filled(self) -> bool:
        """Whether rows stand here that the database may not have."""
        return bool(self.words[_END])

    @property
    def is_unsettled(self) -> bool:
        """Whether somebody was cut off while writing: then the database takes all in, now."""
        return bool(self.words[_UNSETTLED])

    @property
    def is_damaged(self) -> bool:
        """Whether a record cannot be read, as far as somebody who has the store open saw."""
        return bool(self.words[_DAMAGED])

    @property
    def generation(self) -> int:
        """Which generation of the tail it is; the database knows it too."""
        return self.words[_GENERATION]

    @property
    def fence(self) -> int:
        """A number that is another once anybody may have fenced a writer."""
        return self.words[_FENCE]

    def raise_fence(self) -> int:
        """Tell all processes, and this one, that what they know of their runs may be old."""
        self.words[_FENCE] += 1
        return self.words[_FENCE]

    def add(self, row: JournalRow, fence: int, lock: CommitLock, heads: HeadNote) -> bool:
        """Lock, append one row, unlock and note it, all in C; False, and nothing done, else.

        `fence` is what was looked at before. Nothing is done where Python has to wait or to think.
        """
        if native.add_row is None or not failpoint.is_idle():
            return False
        files = lock.fd, self.fd, heads.fd
        told = self.words, self.room, fence, self._seed
        try:
            done = native.add_row(files, *told, row.id, row.mac, row.body, self._direct)
        except OSError as error:
            raise unwritable(self._directory, error) from error
        if done > 1:
            lock.ring()
        return done > 0

    def append(self, rows: Sequence[JournalRow]) -> bool:
        """Add rows, durable when this returns; False, and nothing done, where there is no room."""
        words = self.words
        at = words[_END]
        data = slots.record(rows, self._seed, words[_GENERATION], at)
        size = slots.behind(len(data))
        if at + size > self.room and not self._grow(at + size):
            return False
        words[_UNSETTLED] = 1
        failpoint.reach("tail.writing")
        self._write(data.ljust(size, b"\0"), at)  # Whole: what stood there need not be read.
        self._flush()
        failpoint.reach("tail.written")
        words[_END] = at + size
        words[_UNSETTLED] = 0
        return True

    def _write(self, data: bytes, at: int) -> None:
        try:
            written = os.pwrite(self.fd, data, at)
        except OSError as error:
            raise unwritable(self._directory, error) from error
        if written < len(data):
            part = OSError(errno.ENOSPC, "only a part was written")
            raise unwritable(self._directory, part)

    def _flush(self) -> None:
        try:
            if sys.platform == "darwin":
                fcntl.fcntl(self.fd, fcntl.F_FULLFSYNC)
            else:
                os.fdatasync(self.fd)
        except OSError as error:
            raise unwritable(self._directory, error) from error

    def begin_anew(self) -> None:
        """The database is about to take all in, or to say that it has."""
        if self.is_unsettled:
            self._await_write()
        self.words[_UNSETTLED] = 1

    def _await_write(self) -> None:
        """Let no write of whoever was cut off end later: it could end in the next generation.

        A kill waits for it and keeps the lock so long; not so where somebody looks into the memory
        of who is killed, as a debugger or `/proc/…/smaps` does. Linux, before it sees to the blocks
        of a file, waits for all writes that pass by its page cache.
        """
        self.look()
        if sys.platform == "linux" and self.fd >= 0:
            with contextlib.suppress(OSError):  # A file system that cannot has no such writes.
                os.posix_fallocate(self.fd, 0, 1)

    def begun_anew(self, generation: int) -> None:
        """The database has all rows and says that this generation begins."""
        words = self.words
        words[_END] = 0
        words[_GENERATION] = generation
        words[_UNSETTLED] = 0

    def rows(self) -> dict[int, JournalRow]:
        """The rows that stand here, by their ids: some may be in the database as well."""
        words = self.words
        if not words[_END]:
            return {}
        with self._reading:
            while True:
                generation, end = words[_GENERATION], words[_END]
                known, start = self._read
                if known != generation or start > end:
                    self._rows, start = {}, 0
                data = self._bytes(start, end)
                found = slots.read(data, self._seed, generation, start)
                if words[_GENERATION] != generation or words[_END] < end:
                    continue  # It began anew meanwhile.
                if found.end < end or found.is_damaged:
                    words[_DAMAGED] = 1
                if found.rows:  # Another dict: somebody may be going through the old one.
                    self._rows = self._rows | {row.id: row for row in found.rows}
                self._read = generation, end
                return self._rows

    def refuse_damaged(self) -> None:
        """Raise `Damaged` where a record cannot be read: what it held is missing everywhere."""
        self.rows()
        if self.is_damaged:
            raise Damaged("tail of the journal", "some of what it holds cannot be read")

    def wipe(self) -> None:
        """Let nothing stand here any more of what the database has taken in.

        It is written over: the file stays as long as others know it to be.
        """
        self.look()
        try:
            failpoint.reach("tail.wiping")
            self._write_zeros(0, self.room)
            failpoint.reach("tail.wiped")
            RealFs().flush_directory(self._directory)  # Else one that was removed may come back.
        except OSError as error:
            raise unwritable(self._directory, error) from error

    def leave(self) -> None:
        """The last act here, also to the database, which has all rows where that could be.

        The file goes with the last one here, unless it may hold what nobody has taken in.
        """
        is_needed = self.is_filled or self.is_unsettled or self.is_damaged
        if self._is_used and not is_needed and self._presence.take(PRESENT):  # Nobody else is here.
            with contextlib.suppress(OSError):
                RealFs().remove(self._path)
        self._presence.give(PRESENT)

    def look(self) -> None:
        """Open the file if there is one, and see how long it is: others change that too."""
        try:
            with self._reading:
                if self.fd < 0 and self._is_used and self._path.exists():
                    self._open(os.O_RDWR)
                self.room = min(os.fstat(self.fd).st_size, BYTES_MAX) if self.fd >= 0 else 0
        except OSError as error:
            raise unwritable(self._directory, error) from error

    def _open(self, flags: int) -> None:
        self.fd = os.open(self._path, flags | os.O_CLOEXEC, 0o600)
        if native.direct is not None and file_system(self._path) in PASSED_BY:
            path = os.fsencode(self._path)
            self._direct = native.direct(path, self.fd, FEW_ROWS, LOOK_NS)

    def _grow(self, wanted: int) -> bool:
        """Make the file longer, whose blocks are then only written over; False where it cannot be.

        A full disk, or a full tail: then the database takes all in.
        """
        self.look()
        if wanted <= self.room:
            return True
        room = max(BYTES_MIN, self.room)
        while room < wanted:
            room *= 2
        if room > BYTES_MAX:
            return False
        had = self.room
        try:
            if self.fd < 0:
                self._open(os.O_RDWR | os.O_CREAT)
                RealFs().flush_directory(self._directory)
            failpoint.reach("tail.growing")
            self._write_zeros(had, room)
            failpoint.reach("tail.grown")
        except OSError:
            if self.fd >= 0:
                with contextlib.suppress(OSError):
                    os.ftruncate(self.fd, had)  # What a part of it took is given back.
            return False
        self.room = room
        return True

    def _write_zeros(self, start: int, end: int) -> None:
        zeros = memoryview(bytes(end - start))
        while zeros:
            zeros = zeros[os.pwrite(self.fd, zeros, end - len(zeros)) :]
        if end > start:
            os.fsync(self.fd)
            self._drop_pages()

    def _bytes(self, start: int, end: int) -> bytes:
        try:
            if self.fd < 0:
                self.look()
            found = os.pread(self.fd, end - start, start) if self.fd >= 0 else b""
            self._drop_pages()
        except OSError as error:
            raise unwritable(self._directory, error) from error
        return found

    def _drop_pages(self) -> None:
        """Keep nothing of the file in the page cache: each row that passes it by looks there."""
        if self._direct is not None:
            os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Let go of everything; in a forked child this leaves what is the parent's alone."""
        self._presence.close()
        with contextlib.suppress(BufferError):  # C was writing a row for a thread the child lacks.
            self.words.release()
            self._shared.close()
        fd, self.fd, self._direct = self.fd, -1, None
        if fd >= 0:
            os.close(fd)


def read_tail(file: Path) -> bytes:
    """All that may count of the file of a tail; nothing where there is none."""
    try:
        with file.open("rb") as opened:
            return opened.read(BYTES_MAX)
    except FileNotFoundError:
        return b""


def _map(path: Path) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while (size := os.fstat(fd).st_size) < _SHARED_BYTES:
            # Memory without a disk block is a trap; and the disk may take a part at a time.
            os.pwrite(fd, bytes(_SHARED_BYTES - size), size)
        return mmap.mmap(fd, _SHARED_BYTES)
    finally:
        os.close(fd)
