"""P8: the nth call that changes a file fails (EIO, ENOSPC, EDQUOT, EINTR, short): `soak.io_errors`.

A small library loaded before the C library makes it fail, so SQLite's own calls fail too. The life
ends with one clear error or takes no notice; then the run goes on and is judged from outside.
"""

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from holdfast.store.backends import tail
from holdfast.testing.kill import Failpoint, Syscall
from tests.crash import verdict
from tests.crash.nursery import FINISHED, STORE, Order, _child
from tests.crash.outside import Outside
from tests.crash.trial import Death, survive
from tests.crash.verdict import Reference
from tests.soak.kills import counted
from tests.soak.part import ROOT, Outcome, Part, Trial, main, memory

AGENTS = ("probed", "idempotent", "neither", "large", "mixed", "turnless", "asking", "aborting")
FAULTS = {
    "EIO": errno.EIO,
    "ENOSPC": errno.ENOSPC,
    "EDQUOT": errno.EDQUOT,
    "EINTR": errno.EINTR,
    "short": -1,
}
SOURCE = Path(__file__).with_name("shim.c")
LOADED = "HOLDFAST_SHIM"
CREATED = Failpoint(name="run.created")


class Forked:
    """Lives as children of this process, in which calls can be made to fail."""

    def __init__(self, shim: ctypes.CDLL) -> None:
        self._shim = shim

    def live(self, order: Order, at: Death | None = None) -> int:
        """One life; with an error in `at`, its nth call fails with that."""
        pid = os.fork()
        if pid == 0:
            os._exit(self._live(order, at))
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _live(self, order: Order, at: Death | None) -> int:
        tail.FEW_ROWS = 0  # So short a life writes as a long one does.
        if isinstance(at, Failpoint):
            return _child(Order(agent=order.agent, place=order.place, failpoint=str(at)))
        store = os.fsencode(Path(order.place, STORE))
        nth, fault = (at.nth, FAULTS[at.error or ""]) if at is not None else (-1, 0)
        self._shim.hf_arm(store, ctypes.c_long(nth), fault)
        status = _child(order)
        Path(order.place, "calls").write_text(str(self._shim.hf_count()), encoding="ascii")
        return status


class Agent:
    """One agent: what it does undisturbed, and how many calls that takes, as (new, created)."""

    def __init__(self, name: str, forked: Forked, folder: Path) -> None:
        self.name, self._forked, self._folder = name, forked, folder
        self.expected, self.calls = self._undisturbed()

    def _undisturbed(self) -> tuple[Reference, tuple[int, int]]:
        calls, place = [], self._folder
        for deaths in ([], [CREATED]):
            place = self._place(f"{self.name}-{len(deaths)}")
            order = Order(agent=self.name, place=str(place))
            for death in deaths:
                self._forked.live(order, death)
            assert FINISHED == self._forked.live(order)
            calls.append(int((place / "calls").read_text(encoding="ascii")))
            if not deaths:
                expected = verdict.reference(Outside(place))
        return expected, (calls[0], calls[1])

    def _place(self, name: str) -> Path:
        place = self._folder / name
        place.mkdir()
        return place

    def fail(self, fault: str, nth: int, *, is_created: bool) -> Outcome:
        """Fail one call; then go on and be judged."""
        place = self._place(f"{self.name}-{fault}-{nth}-{is_created}")
        order = Order(agent=self.name, place=str(place))
        error = Syscall(name="call", nth=nth, error=fault)
        deaths = [CREATED, error] if is_created else [error]
        tally = survive(self._forked, order, deaths, self.expected)  # type: ignore[arg-type]  # it only lives
        outcome = counted(tally)
        outcome.counts["kills"] = 0
        outcome.counts["errors injected"] += 1
        outcome.counts[fault] += 1
        outcome.counts["told by the library"] += tally.faults
        shutil.rmtree(place)
        return outcome


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:  # noqa: ARG001 every call is tried; nothing is drawn
    """Every call of every agent, on a new store and on one where the run has begun."""
    shim = ctypes.CDLL(os.environ[LOADED])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with tempfile.TemporaryDirectory(dir=memory()) as name:
        forked, folder = Forked(shim), Path(name)
        agents = [Agent(each, forked, folder) for each in AGENTS]
        plans = [
            (agent, fault, nth, is_created)
            for agent in agents
            for is_created in (True, False)
            for nth in range(1, agent.calls[is_created] + 1)
            for fault in FAULTS
        ]
        # Interleaved, so that a few are a sample of all.
        plans = [plans[at] for start in range(97) for at in range(start, len(plans), 97)]

        def trial(number: int) -> Outcome | None:
            if number >= len(plans):
                return None
            agent, fault, nth, is_created = plans[number]
            return agent.fail(fault, nth, is_created=is_created)

        yield trial


def run_loaded(arguments: list[str], name: str = "io_errors") -> int:
    """Run a module of this suite with the shim loaded before the C library."""
    with tempfile.TemporaryDirectory() as folder:
        shim = Path(folder, "shim.so")
        build = ["cc", "-shared", "-fPIC", "-O1", "-o", str(shim), str(SOURCE), "-ldl"]
        subprocess.run(build, check=True)
        env = {**os.environ, LOADED: str(shim), "LD_PRELOAD": str(shim)}
        command = [sys.executable, "-m", f"tests.soak.{name}", *arguments]
        return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


def missing() -> str:
    """Why this machine cannot try it."""
    if sys.platform != "linux":
        return "calls are made to fail on Linux only"
    return "" if shutil.which("cc") else "there is no C compiler (cc)"


PART = Part(
    id="P8",
    name="io_errors",
    what="The nth call that changes a file fails, SQLite's calls too; then the run goes on.",
    counted="errors injected",
    goal=10_000,
    trials=trials,
    missing=missing,
)

if __name__ == "__main__":
    if LOADED in os.environ or missing():
        raise SystemExit(main(PART))
    raise SystemExit(run_loaded(sys.argv[1:]))
