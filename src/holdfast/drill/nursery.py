"""A warm process that forks a child for each life of a run: `python -m holdfast.drill.nursery`.

It has imported everything, opens no store and starts no thread. An order is one message with three
descriptors: the child's standard input, the pipe it speaks into, and the pipe that tells its parent
what became of it (its process id, then its exit status). When the socket closes it ends its
children and itself.
"""

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast.drill.bent import BentClock
from holdfast.drill.charge import Charge
from holdfast.drill.faults import FAULTS, Fault
from holdfast.drill.inside import Inside
from holdfast.drill.ledger import Ledger
from holdfast.engine.child import Lines, live
from holdfast.engine.pulse import Pulse

MESSAGE_BYTES_MAX = 1 << 20
DESCRIPTORS = 3
READY = b"ready\n"


class Stock(msgspec.Struct, frozen=True, kw_only=True):
    """What the nursery imports before it forks: the first message."""

    path: list[str]
    modules: list[str]
    stubs: dict[str, str]
    faults: list[str]


class Nursery:
    """Forks children and tells what becomes of them."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._children: dict[int, int] = {}
        self._woken, waking = os.pipe()
        os.set_blocking(waking, False)
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        self._waking = waking
        self._fakes: dict[str, Callable[..., Any]] = {}
        self._faults: dict[str, type[Fault]] = dict(FAULTS)

    def serve(self) -> None:
        """Fork until the other end is gone."""
        stock = msgspec.json.decode(self._link.recv(MESSAGE_BYTES_MAX), type=Stock)
        sys.path[:] = stock.path
        for name in stock.modules:
            importlib.import_module(name)
        self._fakes = {name: named(place) for name, place in stock.stubs.items()}
        for place in stock.faults:
            kind: type[Fault] = named(place)
            self._faults[place] = kind
        self._link.sendall(READY)
        gc.freeze()
        try:
            while self._turn():
                pass
        finally:
            for pid in self._children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _turn(self) -> bool:
        ready = select.select([self._link.fileno(), self._woken], [], [])[0]
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 4096)
        self._reap()
        if self._link.fileno() not in ready:
            return True
        message, fds, _, _ = socket.recv_fds(self._link, MESSAGE_BYTES_MAX, DESCRIPTORS)
        if not message:
            return False
        self._fork(msgspec.json.decode(message, type=Charge), fds)
        return True

    def _fork(self, charge: Charge, fds: Sequence[int]) -> None:
        stdin, speaking, telling = fds
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = self._live(charge, stdin, speaking)
            finally:
                os._exit(status)
        self._children[pid] = telling
        os.close(stdin)
        os.close(speaking)
        _say(telling, pid)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                telling = self._children.pop(pid)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)  # What the run started and left behind.
                _say(telling, os.waitstatus_to_exitcode(status))
                os.close(telling)

    def _live(self, charge: Charge, stdin: int, speaking: int) -> int:
        """In the child: a life of the run, struck as the charge says."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._link.close()
        for fd in (self._woken, self._waking, *self._children.values()):
            os.close(fd)
        os.chdir(charge.folder)
        clock, ledger = BentClock(), Ledger(Path(charge.ledger))
        fault = None if charge.fault is None else self._faults[charge.fault]()
        Inside(charge, ledger, fault, self._fakes, clock).begin()
        return live(Pulse(speaking), Lines(stdin), clock)


def named(place: str) -> Any:  # noqa: ANN401 whatever the operator named
    """What `module:name` names, imported because the operator named it."""
    module, _, name = place.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _say(fd: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(fd, b"%d\n" % number)


def main() -> None:
    """Serve on the descriptor that was handed over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Nursery(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
