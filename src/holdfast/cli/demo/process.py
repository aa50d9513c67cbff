"""A process that lives one life of the agent, and what is heard of it outside."""

import contextlib
import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

SAID_CHARS_MAX = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """What a life is started with."""

    store: Path
    world: Path
    tickets: int
    pace: float


@dataclass(frozen=True, slots=True)
class Event:
    """One thing the process told: `what` it does now, and `about` what."""

    what: str
    about: Any


class Process:
    """Started on entering; killed and waited for on leaving, whatever happens."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._heard: queue.SimpleQueue[Event | None] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        try:
            with _uninterrupted():
                self._start()
        except KeyboardInterrupt:  # Raised once it has started, not before.
            self._stop()
            raise
        return self

    def _start(self) -> None:
        scene = self._scene
        told = map(str, (scene.store, scene.world, scene.tickets, scene.pace))
        self._process = subprocess.Popen(  # noqa: S603 our own module, in our own interpreter
            [sys.executable, "-P", "-m", "holdfast.cli.demo.child", *told],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,))
        self._listener.start()

    def _listen(self, stdout: IO[str]) -> None:
        for line in stdout:
            self._heard.put(Event(*json.loads(line)))
        self._heard.put(None)

    def next(self, timeout_s: float) -> Event | None:
        """What is heard next, None once the process has ended; `TimeoutError` in silence."""
        try:
            return self._heard.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            raise TimeoutError from None

    def kill(self) -> None:
        """End it with SIGKILL: nothing in it gets to run once more."""
        self._process.kill()

    def end(self) -> tuple[int, str]:
        """Wait for its end: exit status, and the last of what it complained of."""
        assert self._process.stderr is not None
        said = self._process.stderr.read()
        return self._process.wait(), said.strip()[-SAID_CHARS_MAX:]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back for a moment: a process that is being started must not be left alone."""
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)
