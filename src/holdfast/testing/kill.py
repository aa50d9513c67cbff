"""Run a child and SIGKILL it at a failpoint, or at the nth system call of a kind.

    ended = run([sys.executable, "agent.py"], at=Failpoint(name="effect.called", nth=2))
    assert ended.was_killed
    assert run([sys.executable, "agent.py"]).status == 0

System calls are counted by `strace`, for each thread by itself; `can_trace` says whether that
works here. A process that runs already is traced by `attach`, once it waits in
`await_tracer`: so a test can fork its children from one warm process instead of starting each.
"""

import contextlib
import ctypes
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WAIT_S_MAX = 60.0
_LOOK_S = 0.001
_SET_PTRACER = 0x59616D61


@dataclass(frozen=True, kw_only=True, slots=True)
class Failpoint:
    """Killed when a failpoint is reached for the `nth` time."""

    name: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.name}:{self.nth}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Syscall:
    """Killed when a thread enters a system call for the `nth` time, before it does anything.

    With `error`, such as `EIO`, the call fails with that error instead.
    """

    name: str
    nth: int = 1
    error: str | None = None

    def __str__(self) -> str:
        return f"{self.name}:{self.nth}" + (f"={self.error}" if self.error else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a child ended, and what it printed."""

    status: int
    output: str

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL ended it."""
        return self.status == -signal.SIGKILL


def run(
    command: Sequence[str],
    *,
    at: Failpoint | Syscall | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    wait_s_max: float = WAIT_S_MAX,
) -> Ended:
    """Run `command` to its end, or until it is killed at `at`."""
    env = dict(os.environ if env is None else env)
    env.pop("HOLDFAST_FAILPOINT", None)
    if isinstance(at, Failpoint):
        env["HOLDFAST_FAILPOINT"] = str(at)
    prefix = _strace(at) if isinstance(at, Syscall) else []
    ended = subprocess.run(  # noqa: S603 the caller's own command
        [*prefix, *command],
        env=env,
        cwd=cwd,
        timeout=wait_s_max,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Ended(status=ended.returncode, output=ended.stdout)


@functools.cache
def can_trace() -> bool:
    """Whether strace is installed and allowed to trace."""
    if shutil.which("strace") is None:
        return False
    probe = [*_strace(Syscall(name="fsync")), sys.executable, "-c", ""]
    return subprocess.run(probe, check=False, capture_output=True).returncode == 0  # noqa: S603 our own command


@contextlib.contextmanager
def attach(pid: int, at: Syscall) -> Iterator[None]:
    """Have a running process killed, or its call failed, at `at`; it waits in `await_tracer`."""
    tracer = subprocess.Popen([*_strace(at), "-p", str(pid)])  # noqa: S603 our own command
    try:
        yield
    finally:
        tracer.wait(WAIT_S_MAX)


def await_tracer() -> None:
    """In the child: wait until strace is attached to this process."""
    # Where only a parent may trace, say that anybody may; elsewhere this says nothing.
    ctypes.CDLL(None).prctl(_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
    until = time.monotonic() + WAIT_S_MAX
    while "TracerPid:\t0\n" in Path("/proc/self/status").read_text(encoding="ascii"):
        if time.monotonic() > until:
            msg = "no tracer came; may this user trace processes?"
            raise TimeoutError(msg)
        time.sleep(_LOOK_S)


def _strace(at: Syscall) -> list[str]:
    act = f"error={at.error}" if at.error else "signal=KILL"
    inject = f"inject={at.name}:{act}:when={at.nth}"
    quiet = ["strace", "-f", "-qq", "-o", os.devnull]
    return [*quiet, "-e", f"trace={at.name}", "-e", inject]
