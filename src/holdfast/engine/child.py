"""A life of a run in a process of its own: `python -m holdfast.engine.child`, for a supervisor.

The errand comes on stdin as a line of JSON, the word to begin as a second: until then everything
is imported and nothing is begun, which makes a spare. When stdin closes, the supervisor is gone:
the run is let go as by SIGTERM, so that another process can take it. Agents come from the modules
that the errand names, which are those of the supervisor's own program.
"""

import contextlib
import importlib
import importlib.util
import os
import signal
import sys
import threading
from typing import Any

import msgspec

from holdfast.clock import Clock, SystemClock
from holdfast.engine import agents, context
from holdfast.engine.agents import Agent
from holdfast.engine.errand import Errand, Go
from holdfast.engine.handle import open as open_store
from holdfast.engine.logs import log
from holdfast.engine.pulse import Pulse, Told
from holdfast.engine.sigterm import on_sigterm
from holdfast.errors import HoldfastError, Paused, RunStopped
from holdfast.model.ids import MAIN, SCRIPT
from holdfast.policy.classify import classify

EXIT_FAILED = 1
EXIT_TERMINATED = 143
GRACE_S = 5.0
"""How long the run may take to let go once the supervisor is gone."""


def main() -> int:
    """Carry the errand out; the exit status says whether the run finished."""
    return live(Pulse(_own(int(sys.argv[1]))), Lines(0))


def live(pulse: Pulse, stdin: "Lines", clock: Clock | None = None) -> int:
    """The same for a process that has these pipes, and maybe a clock of its own."""
    on_sigterm(lambda: None)
    found: Agent[..., Any] | None = None
    try:
        errand = msgspec.json.decode(stdin.read(), type=Errand)
        found = _agent(errand)
        go = msgspec.json.decode(stdin.read(), type=Go)  # A spare waits here until it is needed.
        threading.Thread(target=_await_end, args=(stdin,), daemon=True).start()
        with open_store(
            errand.store,
            key=errand.key,
            environment=errand.environment,
            checkpoint=errand.pace.checkpoint,
            snapshot=errand.pace.snapshot,
            durability=errand.pace.durability,
            clock=clock,
        ) as store:
            pulse.tell(Told(begun=True))
            store.obey(found, errand, go, pulse)
    except (KeyboardInterrupt, EOFError):
        return EXIT_TERMINATED
    except BaseException as error:  # noqa: BLE001 told to the supervisor, which decides
        rules = () if found is None else found.rules
        if isinstance(error, Paused):
            pulse.tell(Told(paused=True))
        if not isinstance(error, RunStopped):  # Those are in the journal.
            failure = classify(error, rules=rules, now=SystemClock().now())
            pulse.tell(Told(failure=failure))
        if not isinstance(error, HoldfastError):
            log.exception("a run could not be carried out")
        return EXIT_FAILED
    return 0


class Lines:
    """Lines of a pipe, without a buffer that a thread could hold while the process ends."""

    def __init__(self, fd: int) -> None:
        self._fd, self._rest = fd, b""

    def read(self) -> bytes:
        """The next line; `EOFError` when the other end is closed."""
        while b"\n" not in self._rest:
            data = os.read(self._fd, 65536)
            if not data:
                raise EOFError
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line


def _agent(errand: Errand) -> Agent[..., Any]:
    """The agent, declared by importing what the supervisor's program is made of."""
    sys.path[:] = errand.path
    is_script = errand.module == MAIN
    reading = context.program.set(errand.main if is_script else f"module {errand.module}")
    try:
        if not is_script:
            importlib.import_module(errand.module)
        elif errand.main is not None:
            _read_script(errand.main)
    finally:
        context.program.reset(reading)
    return agents.find(errand.agent, errand.module)


def _read_script(path: str) -> None:
    """Read a script, not as `__main__`: what it does when it is started is not done again."""
    spec = importlib.util.spec_from_file_location(SCRIPT, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[SCRIPT] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def _own(fd: int) -> int:
    """The pipe, which ends with this process and not with one that it starts."""
    os.set_inheritable(fd, False)  # noqa: FBT003 as os takes it
    return fd


def _await_end(stdin: Lines) -> None:
    """Wait until the supervisor is gone; then let go of the run, or else just end."""
    with contextlib.suppress(OSError, EOFError):
        stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)
    SystemClock().sleep(GRACE_S)
    os._exit(EXIT_TERMINATED)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
