"""What a supervised process tells its supervisor: which limits run, and what ended it.

One JSON object a line, over a pipe that closes when the process is gone. Nothing in it is durable:
the journal says what happened, the pipe only says it sooner.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator

import msgspec

from holdfast.model.failure import Failure


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: the agent is about to run, was paused, a limit begins or ends, or a failure.

    Only a failure that nobody recorded is told. `moved`: a child of the run has recorded something.
    """

    begun: bool = False
    paused: bool = False
    limit: int | None = None
    within_s: float | None = None
    failure: Failure | None = None
    moved: bool = False


class Pulse:
    """The supervised end of the pipe; without a supervisor it says nothing."""

    def __init__(self, fd: int | None = None) -> None:
        self._fd = fd
        self._count = itertools.count(1)

    @contextlib.contextmanager
    def during(self, within_s: float) -> Iterator[None]:
        """Something is done inside that may take so long, and is no hang until then."""
        if self._fd is None:
            yield
            return
        number = next(self._count)
        self.tell(Told(limit=number, within_s=within_s))
        try:
            yield
        finally:
            self.tell(Told(limit=number))

    def tell(self, told: Told) -> None:
        """Write a line; a supervisor that is gone does not stop the run."""
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.write(self._fd, msgspec.json.encode(told) + b"\n")


class Heard:
    """The supervisor's end: which limits run now, counted on its own clock."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""
        self._until: dict[int, float] = {}
        self.has_begun = self.was_paused = False
        self.failure: Failure | None = None
        self.moved = float("-inf")

    def read(self, now: float) -> bool:
        """Take in what is there; False once the other end is closed."""
        data = os.read(self._fd, 65536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(msgspec.DecodeError):
                self._take(msgspec.json.decode(line, type=Told), now)
        return bool(data)

    def _take(self, told: Told, now: float) -> None:
        self.has_begun = self.has_begun or told.begun
        self.was_paused = self.was_paused or told.paused
        self.failure = told.failure or self.failure
        self.moved = now if told.moved else self.moved
        if told.limit is not None:
            if told.within_s is None:
                self._until.pop(told.limit, None)
            else:
                self._until[told.limit] = now + told.within_s

    @property
    def until(self) -> float | None:
        """Until when something may take; None when no limit runs."""
        return max(self._until.values(), default=None)

    def fileno(self) -> int:
        """The pipe, to wait for."""
        return self._fd

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self._fd)
