"""The world outside the store: what was asked, what was handed out, what was done.

One line is one `os.write` to a file opened for appending, so a kill leaves whole lines only.
"""

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOG, WORLD = "log", "world"


@dataclass(frozen=True, slots=True)
class Line:
    """`kind` is life, asked, got, result or an error in the log; in the world it is a key."""

    kind: str
    what: str
    """The function and its arguments, or what else the line is about."""
    token: str
    """Tells one answer from every other, also of the same question."""


class Outside:
    """The files of one place."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def note(self, kind: str, what: str = "", token: str = "") -> None:
        """Write a line to the log."""
        self._append(LOG, kind, what, token)

    def asked(self, what: str) -> str:
        """A step or effect was really called; returns the token of its answer."""
        token = secrets.token_hex(6)
        self.note("asked", what, token)
        return token

    def done(self, key: str, what: str, token: str) -> None:
        """An effect changes the world, now."""
        self._append(WORLD, key, what, token)

    def log(self) -> list[Line]:
        """The log so far."""
        return list(self._lines(LOG))

    def world(self) -> list[Line]:
        """What was done in the world so far; `kind` is the idempotency key."""
        return list(self._lines(WORLD))

    def find(self, key: str) -> str | None:
        """The token of what was done under this key, if it was."""
        return next((line.token for line in self.world() if line.kind == key), None)

    def _append(self, file: str, *fields: str) -> None:
        line = "\t".join(fields) + "\n"
        fd = os.open(self.place / file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        os.write(fd, line.encode())
        os.close(fd)

    def _lines(self, file: str) -> Iterator[Line]:
        path = self.place / file
        if path.exists():
            whole, _, _ = path.read_text(encoding="utf-8").rpartition(
                "\n"
            )  # One may be on its way.
            for line in whole.splitlines():
                yield Line(*line.split("\t"))
