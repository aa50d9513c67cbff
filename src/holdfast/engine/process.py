"""A child process that carries out a run: started, kept as a spare, watched, stopped, killed."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import IO, Protocol, TypeAlias

import msgspec

from holdfast.clock import Clock
from holdfast.engine.errand import Errand, Go
from holdfast.engine.logs import log
from holdfast.engine.pulse import Heard
from holdfast.model.failure import Ended
from holdfast.store.open import Opened

SPARE_AFTER_S = 0.5
"""How long a child has lived before a spare is worth its start."""
LOOK_S = 0.2
"""How often the journal is looked at for signs of progress."""
OVERDUE_S = 0.5
"""How far a call may pass its own limit before its process counts as hung."""
START_S_MAX = 60.0
"""How long imports and opening the store may take before the agent runs."""
BEATLESS_S = 10.0
"""How long a living process may go without a heartbeat: it is stopped, or stuck for good."""
STOP_S_MAX = 10.0


class Process(Protocol):
    """A process as its parent sees it; `subprocess.Popen` is one."""

    pid: int
    stdin: IO[bytes] | None

    def poll(self) -> int | None:
        """Its exit status, negative for a signal, or None while it lives."""

    def wait(self, timeout: float | None = None) -> int:
        """The same once it has ended; `subprocess.TimeoutExpired` if that takes too long."""

    def terminate(self) -> None:
        """Tell it to end."""

    def kill(self) -> None:
        """End it at once."""


Start: TypeAlias = Callable[[int], Process]
"""Starts a process that reads an errand from its standard input and speaks into the given pipe."""


def start_process(speaking: int) -> Process:
    """A new interpreter, which imports everything itself."""
    return subprocess.Popen(  # noqa: S603 our own module, in our own interpreter
        [sys.executable, "-P", "-m", "holdfast.engine.child", str(speaking)],
        stdin=subprocess.PIPE,
        pass_fds=(speaking,),
        start_new_session=True,  # Ctrl-C is the supervisor's to pass on.
    )


class Child:
    """The process, its errand handed over, and the pipe it speaks through."""

    def __init__(self, errand: Errand, start: Start = start_process) -> None:
        reading, writing = os.pipe()
        try:
            self.process = start(writing)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self.heard = Heard(reading)
        self._is_over = False
        self._say(errand)

    def begin(self, go: Go) -> None:
        """Say that it may begin."""
        self._say(go)

    def _say(self, what: Errand | Go) -> None:
        assert self.process.stdin is not None
        # One that is gone already is seen to be in a moment.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(msgspec.json.encode(what) + b"\n")
            self.process.stdin.flush()

    def ended(self) -> Ended | None:
        """How it ended, if it has."""
        status = self.process.poll()
        if status is None:
            return None
        return Ended(signal=-status) if status < 0 else Ended(status=status)

    def await_end(self, wait_s_max: float) -> None:
        """Wait until it has ended, but no longer."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(wait_s_max)

    def kill(self) -> Ended:
        """End it at once."""
        self.process.kill()
        status = self.process.wait()
        return Ended(signal=-status if status < 0 else signal.SIGKILL, is_hung=True)

    def stop(self) -> None:
        """Have it let go of the run, and see it gone."""
        if self._is_over:
            return
        self._is_over = True
        if self.process.poll() is None:
            self.process.terminate()
            self.await_end(STOP_S_MAX)
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.heard.close()


class Spare:
    """The child that comes next: started when it is needed, or before and made to wait."""

    def __init__(self, errand: Errand, start: Start = start_process) -> None:
        self._errand, self._start = errand, start
        self._waiting: Child | None = None

    def prepare(self) -> None:
        """Have one wait, with everything imported."""
        if self._waiting is None:
            self._waiting = Child(self._errand, self._start)

    def take(self) -> Child:
        """The one that waits, else a new one."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and waiting.ended() is None:
            return waiting
        if waiting is not None:
            waiting.stop()
        return Child(self._errand, self._start)

    def stop(self) -> None:
        """End the one that waits; it has begun nothing."""
        if self._waiting is not None:
            self._waiting.process.kill()
            self._waiting.stop()


class Watch:
    """Looks after a child until it ends by itself, or is hung and killed."""

    def __init__(
        self, opened: Opened, clock: Clock, child: Child, run: str, stall_s: float | None
    ) -> None:
        self._opened, self._clock, self._child = opened, clock, child
        self._run, self._stall_s = run, stall_s
        self._row: int | None = None
        self._beat = 0
        self._has_begun = False
        self._seen = self._beaten = clock.monotonic()

    def wait(self, attend: Callable[[bool], None]) -> Ended:
        """How it ended; `attend` is done all the while, and told whether it has settled."""
        heard, began = self._child.heard, self._clock.monotonic()
        is_open = True
        while True:
            age_s = self._clock.monotonic() - began
            attend(heard.has_begun and age_s > SPARE_AFTER_S)
            if not is_open:
                self._child.await_end(LOOK_S)
            elif _is_ready(heard, LOOK_S):
                is_open = heard.read(self._clock.monotonic())
            ended = self._child.ended()
            if ended is not None:
                self._drain(is_open=is_open)
                return ended
            if self._is_hung():
                log.warning("run %s shows no progress; its process is killed", self._run)
                return self._child.kill()

    def _drain(self, *, is_open: bool) -> None:
        """What it said last."""
        heard = self._child.heard
        while is_open and _is_ready(heard, 0):
            is_open = heard.read(self._clock.monotonic())

    def _is_hung(self) -> bool:
        now = self._clock.monotonic()
        heard = self._child.heard
        if not heard.has_begun:
            return now - self._seen > max(START_S_MAX, self._stall_s or 0.0)
        if not self._has_begun:
            self._has_begun, self._seen, self._beaten = True, now, now
        if self._has_moved():
            self._seen = now
        self._seen = max(self._seen, heard.moved)  # A child of the run counts as the run.
        if now - self._beaten > BEATLESS_S:
            return True
        if heard.until is not None:
            self._seen = max(self._seen, min(now, heard.until))  # The limit's time is its own.
            return now > heard.until + OVERDUE_S
        return self._stall_s is not None and now - self._seen > self._stall_s

    def _has_moved(self) -> bool:
        """Whether the journal has grown since the last look; notes the heartbeat too."""
        now = self._clock.monotonic()
        run = self._opened.reader.find(self._run)
        if run is None:
            self._beaten = now
            return False
        beat = self._opened.leases.beat_of(run.row.no)
        if beat != self._beat:
            self._beat, self._beaten = beat, now
        row = self._opened.reader.end(run.row.head)
        has_moved, self._row = row != self._row, row
        return has_moved


def _is_ready(heard: Heard, wait_s_max: float) -> bool:
    """Whether a child says something, or ends, within that time.

    By `poll`: `select` knows the first 1,024 files of a process only, and a service has more.
    """
    polled = select.poll()
    polled.register(heard, select.POLLIN)
    return bool(polled.poll(wait_s_max * 1000))
