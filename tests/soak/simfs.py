"""A file system that knows what it has not flushed, and every disk that a power cut may leave.

It acts on a real directory in memory, so that whoever looks there sees what a process sees. Beside
that it keeps what is durable and what is pending. A name that was not flushed is there or not, each
by itself; bytes that were not flushed are there, missing, half there, zeros or garbage.
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple, TypeVar

NAMES_ALL_MAX = 9
"""So many pending names are tried in every combination, more of them in chosen ones."""
DRAWN = 48
T = TypeVar("T")
WHOLE, MISSING, HALF, ZEROS, GARBAGE = range(5)
"""What may have become of bytes that were not flushed."""


class Died(BaseException):
    """The process is killed here, as far as the library can tell."""


class Name(NamedTuple):
    """A change of names that is not durable yet: a link, a move or a removal in one directory."""

    folder: Path
    gone: Path | None
    path: Path | None
    file: int


class Disk(NamedTuple):
    """What a power cut left: names of files, and which of their bytes are not whole."""

    files: dict[Path, int]
    harm: dict[int, int]


@dataclass
class Known:
    """What is durable and what is not."""

    files: dict[Path, int] = field(default_factory=dict)
    folders: set[Path] = field(default_factory=set)
    pending: list[Name] = field(default_factory=list)
    made: list[Path] = field(default_factory=list)
    loose: list[int] = field(default_factory=list)
    """Files whose bytes are not flushed."""

    def copy(self) -> "Known":
        """The same, to be kept."""
        return Known(
            files=dict(self.files),
            folders=set(self.folders),
            pending=list(self.pending),
            made=list(self.made),
            loose=list(self.loose),
        )

    def disks(self, chance: random.Random) -> Iterator[Disk]:
        """Every disk that a power cut may leave now; of very many, a part that is drawn."""
        harms = [dict(zip(self.loose, h, strict=True)) for h in _harms(len(self.loose), chance)]
        for names in _subsets(self.pending, chance):
            for folders in _subsets(self.made, chance):
                files = self._files(names, {*self.folders, *folders})
                for harm in harms:
                    yield Disk(files, harm)

    def _files(self, names: list[Name], folders: set[Path]) -> dict[Path, int]:
        files = dict(self.files)
        for name in names:
            if name.gone is not None:
                files.pop(name.gone, None)
            if name.path is not None:
                files[name.path] = name.file
        if len(folders) < len(self.folders) + len(self.made):
            files = {path: file for path, file in files.items() if path.parent in folders}
        return files


def _harms(count: int, chance: random.Random) -> list[tuple[int, ...]]:
    if count <= 2:
        return list(product(range(5), repeat=count))
    return [tuple(chance.randrange(5) for _ in range(count)) for _ in range(DRAWN)]


def _subsets(items: list[T], chance: random.Random) -> Iterator[list[T]]:
    size = len(items)
    if size <= NAMES_ALL_MAX:
        for many in range(size + 1):
            yield from map(list, combinations(items, many))
        return
    yield from (items[:end] for end in range(size + 1))
    for at in range(size):
        yield [items[at]]
        yield items[:at] + items[at + 1 :]
    for _ in range(DRAWN):
        yield [item for item in items if chance.getrandbits(1)]


class SimFs:
    """The store's file calls, simulated. `after` is called behind every act."""

    def __init__(self, after: Callable[[], None]) -> None:
        self.known, self.data = Known(), list[bytes]()
        self.after, self.acts = after, 0
        self.dies_at: int | None = None
        self._is_dead = False
        self._live: dict[Path, int] = {}

    def write_new(self, path: Path, data: bytes) -> None:
        """Make a file that was not there, whole and flushed."""
        self._act()
        file = len(self.data)
        with path.open("xb"):
            self.data.append(data)
        self._live[path] = file
        self.known.loose.append(file)
        self.known.pending.append(Name(path.parent, None, path, file))
        self.after()
        self._act()
        path.write_bytes(data)
        self.after()
        self.flush(file)

    def flush(self, file: int) -> None:
        """Make the bytes of a file durable."""
        self._act()
        self.known.loose.remove(file)
        self.after()

    def rename(self, source: Path, target: Path) -> None:
        """Give a file its name, durably."""
        self._act()
        source.rename(target)
        file = self._live[target] = self._live.pop(source)
        self.known.pending.append(Name(target.parent, source, target, file))
        self.after()
        self.flush_directory(target.parent)

    def make_directory(self, path: Path) -> None:
        """Make a directory if it is missing, durably."""
        if not path.is_dir():
            self._act()
            path.mkdir()
            self.known.made.append(path)
            self.after()
            self.flush_directory(path.parent)

    def flush_directory(self, path: Path) -> None:
        """Make the names in a directory durable."""
        self._act()
        known = self.known
        known.files = known._files(  # noqa: SLF001 of one family
            [name for name in known.pending if name.folder == path],
            {*known.folders, *known.made},
        )
        known.pending = [name for name in known.pending if name.folder != path]
        known.folders.update(folder for folder in known.made if folder.parent == path)
        known.made = [folder for folder in known.made if folder.parent != path]
        self.after()

    def read(self, path: Path) -> bytes:
        """All bytes of a file."""
        return path.read_bytes()

    def remove(self, path: Path) -> None:
        """Remove a file if it is there."""
        self._act()
        path.unlink(missing_ok=True)
        file = self._live.pop(path, None)
        if file is not None:
            self.known.pending.append(Name(path.parent, path, None, file))
            if file in self.known.loose and file not in {
                n.file for n in self.known.pending if n.path
            }:
                self.known.loose.remove(file)
        self.after()

    def _act(self) -> None:
        """One more act, unless the process died before it."""
        self.acts += 1
        if self._is_dead or self.acts == self.dies_at:
            self._is_dead = True
            raise Died

    def revive(self) -> None:
        """Another process goes on with what a kill left; nothing of that is lost or flushed."""
        self._is_dead, self.dies_at = False, None

    def cut_power(self, disk: Disk, root: Path) -> None:
        """Go on with a disk that a power cut left."""
        self.revive()
        for path in [*root.glob("??/*")]:
            path.unlink()
        folders = {*self.known.folders, *(path.parent for path in disk.files)}
        for folder in [*root.glob("??"), root]:
            if folder not in folders:
                with contextlib.suppress(OSError):
                    folder.rmdir()
        for path, file in disk.files.items():
            path.write_bytes(self.bytes(file, disk.harm.get(file, WHOLE)))
        self._live = dict(disk.files)
        self.known = Known(files=dict(disk.files), folders=folders)

    def bytes(self, file: int, harm: int) -> bytes:
        """What a file holds after a power cut."""
        data = self.data[file]
        match harm:
            case 1:
                return b""
            case 2:
                return data[: len(data) // 2]
            case 3:
                return bytes(len(data))
            case 4:
                return random.Random(file).randbytes(len(data))  # noqa: S311 a seed, not a secret
            case _:
                return data
