"""A disk that follows a trace, and the states in which a power cut may leave it.

Strictly by POSIX, bytes are durable when their file is flushed and names when their folder is,
and nothing else is promised in any order. On ext4 names become durable in their order, and a
flush of a file that was made or grew takes every name before it along.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePosixPath
from typing import TypeVar

from tests.soak.trace import Act

T = TypeVar("T")

PREFIXES, SINGLES, DRAWN = 24, 10, 8
"""So many of each kind of subset are tried; where there are fewer, all."""
SECTOR = 512

State = dict[str, bytes]
"""What a power cut left: path → bytes."""


@dataclass(frozen=True, eq=False)
class Change:
    """Bytes that are not flushed; without `data`, the length is `at`."""

    file: int
    at: int
    data: bytes | None


@dataclass(frozen=True, eq=False)
class Naming:
    """A name that is not flushed: something goes, something comes."""

    folder: str
    gone: str = ""
    path: str = ""
    file: int = -1
    """-1: a folder."""


@dataclass
class Disk:
    """What is durable, what is pending, and what a process sees."""

    is_strict: bool
    bytes_: list[bytes] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    namings: list[Naming] = field(default_factory=list)

    def do(self, act: Act) -> None:
        """Follow one act of the trace."""
        match act.kind:
            case "make":
                self._make(act.path)
            case "folder":
                self.namings.append(Naming(_folder(act.path), path=act.path))
                self.seen[act.path] = -1
            case "write":
                file = self.seen[act.path]
                at = act.at if act.at >= 0 else self.sizes[file]
                self.changes.append(Change(file, at, act.data))
                self.sizes[file] = max(self.sizes[file], at + len(act.data))
            case "cut":
                file = self.seen[act.path]
                self.changes.append(Change(file, act.at, None))
                self.sizes[file] = act.at
            case "flush":
                self._flush(act)
            case "move":
                file = self.seen.pop(act.path)
                self.seen[act.to] = file
                self.namings.append(Naming(_folder(act.to), act.path, act.to, file))
            case "link":
                self.seen[act.to] = self.seen[act.path]
                self.namings.append(Naming(_folder(act.to), "", act.to, self.seen[act.to]))
            case "remove":
                self.namings.append(Naming(_folder(act.path), act.path))
                self.seen.pop(act.path, None)

    def _make(self, path: str) -> None:
        if path not in self.seen:
            self.seen[path] = len(self.bytes_)
            self.bytes_.append(b"")
            self.sizes.append(0)
            self.namings.append(Naming(_folder(path), path=path, file=self.seen[path]))

    def _flush(self, act: Act) -> None:
        file = self.seen.get(act.path, -1) if act.path else -1
        if file < 0:  # a folder
            self._settle(lambda naming: naming.folder == act.path or not self.is_strict)
            return
        if not self.is_strict and (
            any(naming.file == file for naming in self.namings)
            or self.sizes[file] != len(self.bytes_[file])
        ):
            self._settle(lambda _naming: True)
        mine = [change for change in self.changes if change.file == file]
        if act.data:  # A write that is flushed by itself, and nothing beside it.
            mine = [change for change in mine if (change.at, change.data) == (act.at, act.data)]
        self.bytes_[file] = _applied(self.bytes_[file], mine)
        self.changes = [change for change in self.changes if change not in mine]

    def _settle(self, is_due: Callable[[Naming], bool]) -> None:
        due = [naming for naming in self.namings if is_due(naming)]
        self.names = _named(self.names, due)
        self.namings = [naming for naming in self.namings if not is_due(naming)]

    def states(self, chance: random.Random, *, is_drawn: bool) -> Iterator[State]:
        """The states that a power cut may leave now; with `is_drawn`, others by chance."""
        changes, namings = self.changes, self.namings
        if is_drawn:
            for _ in range(DRAWN * 2):
                names = _some(namings, chance) if self.is_strict else _start(namings, chance)
                yield self._state(_some(changes, chance), names)
            return
        for names in self._orders(chance):
            yield self._state(changes, names)
        for part in chain(_subsets(changes, chance), self._torn(chance)):
            yield self._state(part, namings)
            if namings:
                yield self._state(part, [])

    def _orders(self, chance: random.Random) -> Iterator[list[Naming]]:
        starts = [self.namings[:end] for end in range(len(self.namings) + 1)]
        yield from starts
        if self.is_strict and len(self.namings) > 1:
            yield from (self.namings[at:] for at in range(1, len(self.namings)))
            yield from (_some(self.namings, chance) for _ in range(DRAWN))

    def _torn(self, chance: random.Random) -> Iterator[list[Change]]:
        """Everything, but the last bytes half there, or zeros, or garbage."""
        if not self.changes or not self.changes[-1].data:
            return
        *before, last = self.changes
        assert last.data
        size = len(last.data)
        half = size // 2 // SECTOR * SECTOR or size // 2
        for data in (last.data[:half], bytes(size), chance.randbytes(size)):
            yield [*before, Change(last.file, last.at, data)]
        yield [Change(last.file, last.at, last.data[:half])]

    def _state(self, changes: list[Change], namings: list[Naming]) -> State:
        names = _named(self.names, namings)
        state: State = {}
        for path, file in names.items():
            if file >= 0 and _is_reached(path, names):
                mine = [change for change in changes if change.file == file]
                state[path] = _applied(self.bytes_[file], mine)
        return state


def _folder(path: str) -> str:
    folder = str(PurePosixPath(path).parent)
    return "" if folder == "." else folder


def _is_reached(path: str, names: dict[str, int]) -> bool:
    folder = _folder(path)
    return not folder or (folder in names and _is_reached(folder, names))


def _named(names: dict[str, int], namings: list[Naming]) -> dict[str, int]:
    if not namings:
        return names
    found = dict(names)
    for naming in namings:
        if naming.gone:
            found.pop(naming.gone, None)
        if naming.path:
            found[naming.path] = naming.file
    return found


def _applied(data: bytes, changes: list[Change]) -> bytes:
    if not changes:
        return data
    found = bytearray(data)
    for change in changes:
        if change.data is None:
            del found[change.at :]
            found.extend(bytes(change.at - len(found)))
        else:
            found.extend(bytes(max(0, change.at - len(found))))
            found[change.at : change.at + len(change.data)] = change.data
    return bytes(found)


def _subsets(items: list[T], chance: random.Random) -> Iterator[list[T]]:
    size = len(items)
    yield from (items[:end] for end in _sample(size + 1, PREFIXES, chance))
    if size > 1:
        for at in _sample(size, SINGLES, chance):
            yield [items[at]]
            yield items[:at] + items[at + 1 :]
        yield from (_some(items, chance) for _ in range(DRAWN))


def _sample(size: int, most: int, chance: random.Random) -> list[int]:
    return list(range(size)) if size <= most else sorted(chance.sample(range(size), most))


def _some(items: list[T], chance: random.Random) -> list[T]:
    return [item for item in items if chance.getrandbits(1)]


def _start(items: list[T], chance: random.Random) -> list[T]:
    return items[: chance.randrange(len(items) + 1)]
