"""Where an embedded store may live: platform, file system, directory."""

import contextlib
import errno
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import StoreUnwritable, Unsupported
from holdfast.ondemand import OnDemand
from holdfast.store.backends.fs import Fs, RealFs

if TYPE_CHECKING:
    import resource
else:
    resource = OnDemand("resource")  # Windows has none, and is refused below.

_OTHER_PATH = "give a path that this user may write to, or make this one so"
_ELSEWHERE = frozenset(
    {errno.EEXIST, errno.ENOTDIR, errno.ENOENT, errno.ENAMETOOLONG}
    | {errno.EACCES, errno.EPERM, errno.EROFS}
)
"""What the system says of a path that is no place for a store, however much room there is."""

_TOO_MANY = frozenset((errno.EMFILE, errno.ENFILE))
_MOVED = "move it away; if the file was there before, put it back, else `holdfast verify` the store"
_FEWER = (
    "close files and connections that the program has no use for, or allow more of them "
    "(`ulimit -n`); then do it again: a run that is restarted continues where it was"
)

FILES_AT_ONCE = 8
"""As many as the connections of a store have open, and some."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""`postgresql://…`, `s3://…`, `file:///…`, as a path writes them."""

_MEMORY = ":memory:"
"""What SQLite calls a database that lies nowhere."""

NETWORK = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "glusterfs", "gfs2", "lustre", "ncpfs", "nfs"}
    | {"nfs4", "ocfs2", "orangefs", "smb", "smb2", "smb3", "smbfs"}
    | {"fuse.glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone"}
)
"""File systems whose locks or shared memory do not hold what SQLite's WAL needs."""


MOUNTS = Path("/proc/self/mountinfo")
"""Where Linux tells what is mounted."""


def prepare(path: Path, mounts: Path = MOUNTS) -> None:
    """Make the directory if it is missing; refuse a place that cannot keep the promises.

    One that is new survives a power cut: else all that is acknowledged there could go with it.
    """
    if sys.platform == "win32":
        raise Unsupported("Windows", "file locks and flushes there are not what Holdfast needs")
    if _ADDRESS.match(str(path)):
        raise Unsupported(str(path), "a store is a directory of this machine, not an address")
    if path.name == _MEMORY:
        raise Unsupported(
            str(path), "a store outlives its process, so it cannot lie in memory only"
        )
    try:
        whole = path.absolute()
    except OSError as error:
        raise StoreUnwritable(str(path), "the working directory is gone", _OTHER_PATH) from error
    kind = file_system(whole, mounts)
    if kind in NETWORK:
        raise Unsupported(str(path), f"{kind} is a network file system")
    try:
        _make(whole, RealFs())
    except OSError as error:
        raise unwritable(path, error) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise StoreUnwritable(str(path), "the directory is not writable for this user", _OTHER_PATH)


def _make(path: Path, fs: Fs) -> None:
    """Make the directory and those above it, each flushed into the one that holds it."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        fs.make_directory(each)
    if not missing and not any(path.iterdir()):
        # Whoever made it may not have come to flush it; and where nobody may look, so be it.
        with contextlib.suppress(PermissionError):
            fs.flush_directory(path.parent)


def holds_file(path: Path, name: str) -> bool:
    """Whether the store at `path` has that file; `StoreUnwritable` where nobody lets us look."""
    try:
        (path / name).stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise unwritable(path, error) from error
    return True


def file_system(path: Path, mounts: Path = MOUNTS) -> str:
    """The kind of file system `path` would lie on, or "" where the system does not say."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    target = str(path.absolute().resolve())
    found, kind = "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        point = fields[4].replace("\\040", " ") if len(fields) > 4 and rest else ""  # noqa: PLR2004 the mount point is the fifth field
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if point and inside and len(point) >= len(found):
            found, kind = point, rest[0]
    return kind


def unwritable(path: Path, error: OSError) -> StoreUnwritable:
    """Say why the system refused a write, in words."""
    why = (error.strerror or str(error)).lower()
    if error.errno in (errno.EACCES, errno.EPERM) and error.filename is not None:
        why = f"{error.filename}: {why}"
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        why = "there is a file where the store's directory should be"
    if error.errno in _TOO_MANY:
        return StoreUnwritable(str(path), why, _FEWER)
    if error.errno == errno.EISDIR and error.filename is not None:
        why = f"there is a directory where a file of the store belongs: {error.filename}"
        return StoreUnwritable(str(path), why, _MOVED)
    return StoreUnwritable(str(path), why, "" if error.errno not in _ELSEWHERE else _OTHER_PATH)


def refused(path: Path, said: str) -> StoreUnwritable:
    """Say why SQLite was refused a file: too many are open, or what it said itself."""
    try:
        is_last = 0 <= _files_max() - sum(1 for _ in Path("/dev/fd").iterdir()) < FILES_AT_ONCE
    except (OSError, ImportError):  # Not one is left to look with.
        is_last = True
    if is_last:
        return unwritable(path, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    return StoreUnwritable(str(path), said)


def _files_max() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
