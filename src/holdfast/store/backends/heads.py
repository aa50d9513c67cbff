"""The head note: which rows were acknowledged last, kept beside the database.

SQLite silently drops the end of a damaged write-ahead log. After each commit the newest row id
and its hash are written to one of 64 slots of a small file, without a flush. The note may lag
behind the database; it can never honestly be ahead, so a noted row that is not there means that
acknowledged work is missing.
"""

import os
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast import failpoint
from holdfast.model.ids import branch_of
from holdfast.store.backends.place import unwritable

SLOTS = 64
_SLOT = struct.Struct(">Q32sI")
_NOTED = struct.Struct(">Q32s")  # A seal is shorter, and filled up with zeros.
_SLOT_BYTES = 64


class HeadNote:
    """Slots of (row id, row hash, checksum), chosen by the row's branch."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unwritable(path.parent, error) from error

    def write(self, row: int, mac: bytes) -> None:
        """Note an acknowledged row."""
        plain = _NOTED.pack(row, mac)
        slot = branch_of(row) % SLOTS * _SLOT_BYTES
        try:
            os.pwrite(self.fd, plain + zlib.crc32(plain).to_bytes(4, "big"), slot)
        except OSError as error:
            raise unwritable(self._path.parent, error) from error

    def forget(self, branches: Iterable[int]) -> None:
        """Say nothing more of these branches, durably: their rows are about to go or to change."""
        gone = set(branches)
        slots = [branch_of(row) % SLOTS for row, _ in self.read() if branch_of(row) in gone]
        try:
            for slot in slots:
                os.pwrite(self.fd, bytes(_SLOT.size), slot * _SLOT_BYTES)
            # Flushed: after a power cut the note would speak of rows that are gone on purpose.
            failpoint.reach("heads.forgetting")
            os.fsync(self.fd)
            failpoint.reach("heads.forgotten")
        except OSError as error:
            raise unwritable(self._path.parent, error) from error

    def read(self) -> Iterator[tuple[int, bytes]]:
        """The noted rows; a slot that was torn or never written says nothing."""
        data = os.pread(self.fd, SLOTS * _SLOT_BYTES, 0)
        for slot in range(0, len(data), _SLOT_BYTES):
            part = data[slot : slot + _SLOT.size]
            if len(part) == _SLOT.size:
                row, mac, check = _SLOT.unpack(part)
                if row and check == zlib.crc32(part[:-4]):
                    yield row, mac

    def close(self) -> None:
        """Flush the note and close it."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            failpoint.reach("heads.flushing")
            os.fsync(fd)
            failpoint.reach("heads.flushed")
            os.close(fd)

    def abandon(self) -> None:
        """Close without a flush: in a forked child the note is the parent's."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)
