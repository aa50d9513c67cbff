"""Locks between processes: one for committing, one byte per run for its lease.

Both belong to the open file description, so a kill frees them at once and a close of another
descriptor of the same file does not.
"""

import contextlib
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.clock import Clock
from holdfast.errors import StoreBusy
from holdfast.ondemand import OnDemand
from holdfast.store.backends.bell import Bell
from holdfast.store.backends.place import unwritable

if TYPE_CHECKING:
    import fcntl
else:
    fcntl = OnDemand("fcntl")  # Windows has none: there `place` refuses the store, not the import.

IS_MAC = sys.platform == "darwin"
# F_OFD_SETLK and F_OFD_GETLK of <fcntl.h>, which Python names for some systems only.
SETLK, GETLK = (90, 92) if IS_MAC else (37, 36)

COMMIT_WAIT_S_MAX = 30.0
LOOK_S = 0.005
"""Who waits for the lock looks again after this long, also if nobody rang."""


class CommitLock:
    """Held while a process commits or checkpoints its database: one at a time on a store."""

    def __init__(self, path: Path, clock: Clock, wait_s_max: float = COMMIT_WAIT_S_MAX) -> None:
        self._path, self._clock, self._wait_s_max = path, clock, wait_s_max
        self.fd = _open(path)
        try:
            self._bell = Bell(self.fd, clock)
        except OSError as error:
            os.close(self.fd)
            raise unwritable(path.parent, error) from error

    def take(self) -> None:
        """Take the lock; `StoreBusy` when another process keeps it for too long."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait()

    def give(self) -> None:
        """Give the lock back, and wake who waits for it."""
        fcntl.flock(self.fd, fcntl.LOCK_UN)
        self.ring()

    def ring(self) -> None:
        """Wake who waits for the lock that was given back."""
        self._bell.ring()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock for a while."""
        self.take()
        try:
            yield
        finally:
            self.give()

    def _wait(self) -> None:
        began = self._clock.monotonic()
        waited = 0.0
        while waited <= self._wait_s_max:
            # Listen first, then look: who gives the lock back in between rings for us.
            heard = self._bell.listen()
            try:
                return fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._bell.wait(heard, LOOK_S)
                waited = self._clock.monotonic() - began
        raise StoreBusy(str(self._path.parent), waited)

    def count(self, more: int) -> int:
        """Add to a number that all processes of the store share; only while the lock is held."""
        try:
            # After a power cut anything may stand there: it goes round, as on a clock.
            total = (int.from_bytes(os.pread(self.fd, 8, 0), "big") + more) % (1 << 64)
            os.pwrite(self.fd, total.to_bytes(8, "big"), 0)
        except OSError as error:
            raise unwritable(self._path.parent, error) from error
        return total

    def close(self) -> None:
        """Close the descriptor; in a forked child this leaves the parent's lock alone."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            self._bell.close()
            os.close(fd)


class ByteLocks:
    """One lock for each number, all in one file: who works on which run."""

    def __init__(self, path: Path) -> None:
        self._fd = _open(path)

    def take(self, number: int) -> bool:
        """Lock `number`; False when another open file holds it."""
        try:
            fcntl.fcntl(self._fd, SETLK, _range(fcntl.F_WRLCK, number))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def share(self, number: int) -> bool:
        """Lock `number` together with others; False when another open file holds it alone."""
        try:
            fcntl.fcntl(self._fd, SETLK, _range(fcntl.F_RDLCK, number))
        except (BlockingIOError, PermissionError):
            return False
        return True

    def give(self, number: int) -> None:
        """Unlock `number`."""
        if self._fd >= 0:
            fcntl.fcntl(self._fd, SETLK, _range(fcntl.F_UNLCK, number))

    def is_taken(self, number: int) -> bool:
        """Whether another open file holds `number` now."""
        asked = fcntl.fcntl(self._fd, GETLK, _range(fcntl.F_WRLCK, number))
        return _kind(asked) != fcntl.F_UNLCK

    def close(self) -> None:
        """Close the descriptor and with it every lock taken here."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _range(kind: int, number: int) -> bytes:
    if IS_MAC:
        return struct.pack("qqihh", number, 1, 0, kind, os.SEEK_SET)
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, number, 1, 0)


def _kind(asked: bytes) -> int:
    kind: int = struct.unpack_from("h", asked, 20 if IS_MAC else 0)[0]
    return kind


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritable(path.parent, error) from error
