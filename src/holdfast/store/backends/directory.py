"""Objects as files: written beside their place, flushed, renamed, their directory flushed."""

import contextlib
import errno
import re
import secrets
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import Damaged
from holdfast.store.backends.fs import Fs, is_being_written
from holdfast.store.backends.place import unwritable
from holdfast.store.codec.frame import PLAIN_BYTES_MAX

_TEMP = ".part"
_NAME = re.compile("(?:[0-9a-f]{2})+")
_UNREADABLE = frozenset({errno.EIO, errno.EISDIR, errno.ELOOP, errno.ENOTDIR})
"""What reading a file says where its bytes are gone, and not that somebody must wait or may not."""
FILE_BYTES_MAX = PLAIN_BYTES_MAX + 4096
"""No object is as long, with what stands around its bytes."""


class Directory:
    """Large bytes under their id, two levels deep: `ab/abcdef…`."""

    def __init__(self, root: Path, fs: Fs) -> None:
        self._root, self._fs = root, fs
        self._known: set[bytes] = set()
        self._durable: set[Path] = set()  # folders whose own names are flushed
        self._lock = threading.Lock()

    def put(self, id_: bytes, data: bytes) -> None:
        """Keep `data`. Once this returns it survives a power cut."""
        place = self._place(id_)
        with self._lock:
            if id_ in self._known:
                return
            try:
                if place.exists():
                    # Whoever wrote it may not have come to flush these yet.
                    self._fs.flush_directory(place.parent)
                    self._fs.flush_directory(self._root)
                else:
                    self._write(place, data)
            except OSError as error:
                raise unwritable(self._root, error) from error
            self._known.add(id_)

    def _write(self, place: Path, data: bytes) -> None:
        self._make(self._root)
        self._make(place.parent)
        part = place.with_name(place.name + f".{secrets.token_hex(6)}{_TEMP}")
        try:
            self._fs.write_new(part, data)
            self._fs.rename(part, place)
        except BaseException:
            self._fs.remove(part)
            raise

    def _make(self, folder: Path) -> None:
        """See to it that a folder is there, also after a power cut."""
        if not folder.is_dir():
            self._fs.make_directory(folder)
        elif folder not in self._durable:
            # Whoever made it may have died before flushing that; so with those beside it.
            beside = [*folder.parent.iterdir()]
            self._fs.flush_directory(folder.parent)
            self._durable.update(beside)
        self._durable.add(folder)

    def uphold(self, id_: bytes, data: bytes) -> None:
        """Keep `data` again if it was taken away since; asked while nobody can take it away."""
        with self._lock:
            if self._place(id_).exists():
                return
            self._known.discard(id_)
        self.put(id_, data)

    def remove(self, id_: bytes) -> None:
        """Take away what is kept under `id_`; asked while nobody can come to name it.

        After a power cut it may be there again; `settle` rules that out.
        """
        with self._lock:
            self._known.discard(id_)
            try:
                self._fs.remove(self._place(id_))
            except OSError as error:
                raise unwritable(self._root, error) from error

    def get(self, id_: bytes) -> bytes | None:
        """The bytes kept under `id_`, or None; `Damaged` where the disk cannot read them."""
        place = self._place(id_)
        try:
            if odd := _oddness(place):
                raise Damaged(f"chunk {id_.hex()}", odd)
            return self._fs.read(place)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in _UNREADABLE:
                why = f"its file cannot be read ({(error.strerror or str(error)).lower()})"
                raise Damaged(f"chunk {id_.hex()}", why) from error
            raise unwritable(self._root, error) from error

    def ids(self) -> Iterator[bytes]:
        """Every id that is kept."""
        for path in sorted(self._root.glob("??/*")):
            if _NAME.fullmatch(path.name):
                yield bytes.fromhex(path.name)

    def parts(self, before: float = float("inf")) -> list[Path]:
        """What was left half-written before that time, in seconds since 1970, by who is dead."""
        found = []
        for part in sorted(self._root.glob(f"??/*{_TEMP}")):
            with contextlib.suppress(FileNotFoundError):  # Whoever wrote it is done with it.
                if part.stat().st_mtime < before and not is_being_written(part):
                    found.append(part)
        return found

    def sweep(self, before: float = float("inf")) -> int:
        """Remove such parts; without a time only when nobody else writes. Says how many."""
        parts = self.parts(before)
        for part in parts:
            self._fs.remove(part)
        return len(parts)

    def settle(self) -> None:
        """Whatever was removed, by whomever, stays removed after a power cut."""
        try:
            for folder in sorted(self._root.glob("??")):
                self._fs.flush_directory(folder)
        except OSError as error:
            raise unwritable(self._root, error) from error

    def _place(self, id_: bytes) -> Path:
        name = id_.hex()
        return self._root / name[:2] / name


def _oddness(place: Path) -> str:
    """Why what lies there is not even read: it may never end, or fill the memory."""
    found = place.stat()
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        return "its file cannot be read (it is a pipe or a device)"
    if found.st_size > FILE_BYTES_MAX:
        return f"its file has {found.st_size:,} bytes, more than was ever written into one"
    return ""
