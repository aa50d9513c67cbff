"""The outside ledger: what a run really asked and did, written where no store can lose it."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.clock import SystemClock

CALLED = ("asked", "doing")
"""The lines that say that a function of the user's was called."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened in a life of a run.

    `what` is asked (a step was called), doing and did (an effect), repeated (an idempotent one was
    asked for again), undone, struck (the fault came), or lived (the end, with its counts).
    `run` is the run, or child of it, that called; `call` is the call by its place there, `about` by
    its arguments alone; `epoch` is that of the life; `key` is the idempotency key of an effect,
    `value` its encoded outcome. Times are the machine's, whatever the run's clock was told.
    """

    what: str
    life: int = 0
    name: str = ""
    run: str = ""
    call: str = ""
    about: str = ""
    epoch: int = 0
    key: str = ""
    is_idempotent: bool = False
    at: float = 0.0
    value: bytes = b""
    counts: dict[str, float] = {}


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class Ledger:
    """A file that lines are added to, each by one write; a kill loses none that was added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._clock = SystemClock()
        self.around: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
        """Around every write: what a fault does to files is not done to this one."""

    def add(self, line: Line, *, is_durable: bool = False) -> None:
        """Add a line, stamped with the time; a durable one is on the disk when this returns."""
        stamped = msgspec.structs.replace(line, at=self._clock.now())
        with self.around():
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, _encode(stamped) + b"\n")
                if is_durable:
                    os.fsync(fd)
            finally:
                os.close(fd)

    def read(self) -> list[Line]:
        """Every line, in order."""
        if not self._path.exists():
            return []
        return [_decode(line) for line in self._path.read_bytes().splitlines()]
