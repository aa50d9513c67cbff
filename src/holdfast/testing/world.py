"""The world outside a run, for tests: a list of what was really done, which no kill takes back."""

import base64
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.engine import context
from holdfast.store.codec import values

AGENT, NOWHERE = "the agent's own code", "code that belongs to no run"


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was done: what, about what, under which key, and which code did it."""

    what: str
    about: tuple[Any, ...]
    once: str | None
    by: str

    def __str__(self) -> str:
        return f"{self.what}({', '.join(map(repr, self.about))})"


class World:
    """What stand-ins for the outside do, written down where a kill cannot reach it.

    A tool under test calls `do` where the real one would change something; the crash kit then
    finds what was done twice, or not at all.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def do(self, what: str, *about: object, once: str | None = None) -> bool:
        """Do something in the world. Under a key that was used before nothing is done: False."""
        if once is not None and any(once == deed.once for deed in self.deeds()):
            return False
        noted = base64.b64encode(values.encode([what, list(about), once, _here()]))
        fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, noted + b"\n")  # One call, so a kill leaves whole lines only.
        finally:
            os.close(fd)
        return True

    def has(self, what: str, *about: object) -> bool:
        """Whether it was done: what a probe asks."""
        return any(what == deed.what and about == deed.about for deed in self.deeds())

    def deeds(self, what: str | None = None) -> list[Deed]:
        """All that was done so far, or all of one kind, in the order in which it was done."""
        if not self._file.exists():
            return []
        noted = [
            cast("list[Any]", values.decode(base64.b64decode(line)))
            for line in self._file.read_bytes().splitlines()
        ]
        deeds = [
            Deed(what=kind, about=tuple(about), once=once, by=by) for kind, about, once, by in noted
        ]
        return [deed for deed in deeds if what in (None, deed.what)]

    @contextlib.contextmanager
    def elsewhere(self, file: Path) -> Iterator[None]:
        """Inside, another list: each run of a crash test has a world of its own."""
        before, self._file = self._file, file
        try:
            yield
        finally:
            self._file = before


def _here() -> str:
    here = context.frame.get()
    if here is None:
        return NOWHERE
    if here.inside is None:
        return AGENT
    return f"{'effect' if here.is_effect else 'step'} {here.function}"
