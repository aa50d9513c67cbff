"""Every file call of the store in one place, so that a test can lose what was not flushed."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast import failpoint
from holdfast.ondemand import OnDemand

if TYPE_CHECKING:
    import fcntl
else:
    fcntl = OnDemand("fcntl")  # Windows has none: there `place` refuses the store, not the import.


class Fs(Protocol):
    """The few acts a file of the store is made with."""

    def write_new(self, path: Path, data: bytes) -> None:
        """Make a file that was not there, whole and flushed; none is left where that fails."""

    def rename(self, source: Path, target: Path) -> None:
        """Give a file its name, durably: its directory is flushed."""

    def make_directory(self, path: Path) -> None:
        """Make a directory if it is missing, durably: its parent is flushed."""

    def flush_directory(self, path: Path) -> None:
        """Make the names in a directory durable."""

    def read(self, path: Path) -> bytes:
        """All bytes of a file."""

    def remove(self, path: Path) -> None:
        """Remove a file if it is there."""


class RealFs:
    """The file system of this machine."""

    def write_new(self, path: Path, data: bytes) -> None:
        """Make a file that was not there, whole and flushed; none is left where that fails."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)  # Nobody else has it open: it is granted at once.
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            failpoint.reach("file.flushing")
            os.fsync(fd)
            failpoint.reach("file.flushed")
        except OSError:
            path.unlink(missing_ok=True)  # On a full disk it would take what space there was.
            raise
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file its name, durably."""
        failpoint.reach("file.naming")
        source.rename(target)
        failpoint.reach("file.named")
        self.flush_directory(target.parent)

    def make_directory(self, path: Path) -> None:
        """Make a directory if it is missing, durably."""
        if not path.is_dir():
            path.mkdir(mode=0o700, exist_ok=True)
            self.flush_directory(path.parent)

    def flush_directory(self, path: Path) -> None:
        """Make the names in a directory durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            failpoint.reach("directory.flushing")
            os.fsync(fd)
            failpoint.reach("directory.flushed")
        finally:
            os.close(fd)

    def read(self, path: Path) -> bytes:
        """All bytes of a file."""
        return path.read_bytes()

    def remove(self, path: Path) -> None:
        """Remove a file if it is there."""
        failpoint.reach("file.removing")
        path.unlink(missing_ok=True)
        failpoint.reach("file.removed")


def is_being_written(path: Path) -> bool:
    """Whether a process that lives is writing a file with `write_new` now."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
