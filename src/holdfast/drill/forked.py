"""Children of the nursery as a supervisor sees them: started in milliseconds, ended like others."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Self

import msgspec

from holdfast.drill.charge import Charge
from holdfast.drill.nursery import READY, Stock
from holdfast.errors import UsageError

START_S_MAX = 60.0
END_S_MAX = 10.0


class Nurse:
    """Has the nursery at hand: started on entering, ended with all its children on leaving."""

    def __init__(self, stock: Stock, log: Path) -> None:
        self._stock, self._log = stock, log
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._link, theirs = socket.socketpair()
        with self._log.open("ab") as errors, theirs:
            self._process = subprocess.Popen(  # noqa: S603 our own module, in our own interpreter
                [sys.executable, "-P", "-m", "holdfast.drill.nursery", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is ours to pass on.
            )
        try:
            self._link.sendall(msgspec.json.encode(self._stock))
            self._link.settimeout(START_S_MAX)
            self._await_ready()
            self._link.settimeout(None)
        except BaseException:
            self._end()
            raise
        return self

    def _await_ready(self) -> None:
        if self._link.recv(len(READY)) != READY:
            raise UsageError(f"what the drill needs could not be loaded:\n{self.said()}")

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        self._link.close()
        try:
            self._process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def said(self, chars_max: int = 2000) -> str:
        """The last of what the children complained of."""
        return self._log.read_text(encoding="utf-8", errors="replace").strip()[-chars_max:]

    def fork(self, charge: Charge, speaking: int) -> "Forked":
        """A new child; `speaking` is the pipe it speaks into."""
        stdin, feeding = os.pipe()
        hearing, telling = os.pipe()
        try:
            with self._lock:  # The child's id is waited for, so messages never meet.
                fds = [stdin, speaking, telling]
                socket.send_fds(self._link, [msgspec.json.encode(charge)], fds)
                os.close(telling)
                telling = -1
                return Forked(os.fdopen(feeding, "wb"), hearing)
        finally:
            os.close(stdin)
            if telling >= 0:
                os.close(telling)


class Forked:
    """A child of the nursery; the faces of `subprocess.Popen` that a supervisor uses."""

    def __init__(self, feeding: IO[bytes], hearing: int) -> None:
        self.stdin: IO[bytes] | None = feeding
        self._hearing, self._rest = hearing, b""
        self._status: int | None = None
        said = self._line(START_S_MAX)
        if said is None:
            msg = "the nursery does not fork; is the machine out of memory or processes?"
            raise UsageError(msg)
        self.pid = said

    def poll(self) -> int | None:
        """Its exit status, or None while it lives."""
        return self._status if self._status is not None else self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended."""
        status = self._status if self._status is not None else self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("a child of the nursery", timeout or 0.0)
        return status

    def terminate(self) -> None:
        """Tell it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _ended(self, wait_s: float | None) -> int | None:
        found = self._line(wait_s)
        if found is not None:
            self._status = found
            os.close(self._hearing)
        return found

    def _line(self, wait_s: float | None) -> int | None:
        """The next number that the nursery tells; its end counts as that of all children."""
        while b"\n" not in self._rest:
            if not select.select([self._hearing], [], [], wait_s)[0]:
                return None
            data = os.read(self._hearing, 64)
            if not data:
                return -signal.SIGKILL
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return int(line)
