"""P9: a disk that fails or stalls for a while: `python -m tests.soak.stalls`.

From the nth call on: flushes fail (EIO) once or for good, a flush takes seconds, the disk is
read-only, the directory may not be written, the disk is full and is freed while the process lives
on and tries again. The life ends with one clear error or takes no notice; then the disk is mended,
the run goes on, and is judged from outside: nothing acknowledged is lost, the store is whole.
"""

import contextlib
import ctypes
import errno
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.testing.kill import Failpoint, Syscall
from tests.crash.nursery import STORE, Order, _child
from tests.crash.trial import Death, survive
from tests.soak.io_errors import CREATED, LOADED, Agent, Forked, missing, run_loaded
from tests.soak.kills import counted
from tests.soak.part import Outcome, Part, Trial, main, memory

AGENTS = ("probed", "large", "mixed")
FLUSHES, BYTES, NAMES = 1, 2, 4
"""Kinds of calls, as the shim knows them."""
STALL = -2
STALL_S = 3
FOR_GOOD = 1 << 40
MOMENTS = 4
"""So many moments of a life are tried for each trouble, from its first call of that kind on."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """What is wrong with the disk, from one call on."""

    fault: int
    kinds: int
    times: int = FOR_GOOD
    retries: int = 0
    """How often the process tries again by itself."""


TROUBLES = {
    "a flush fails": Trouble(fault=errno.EIO, kinds=FLUSHES, times=1),
    "every flush fails": Trouble(fault=errno.EIO, kinds=FLUSHES),
    "a flush stalls": Trouble(fault=STALL, kinds=FLUSHES, times=1),
    "read-only": Trouble(fault=errno.EROFS, kinds=BYTES | NAMES),
    "a directory that may not be written": Trouble(fault=errno.EACCES, kinds=NAMES),
    "full": Trouble(fault=errno.ENOSPC, kinds=BYTES | NAMES),
    "full, then freed": Trouble(fault=errno.ENOSPC, kinds=BYTES | NAMES, times=6, retries=8),
}


class Troubled(Forked):
    """Lives whose disk may be in trouble: `Syscall.error` names it."""

    def _live(self, order: Order, at: Death | None) -> int:
        if at is None or isinstance(at, Failpoint):
            return super()._live(order, at)
        trouble = TROUBLES[at.error or ""]
        self._shim.hf_arm_for(
            os.fsencode(Path(order.place, STORE)),
            ctypes.c_long(at.nth),
            trouble.fault,
            trouble.kinds,
            ctypes.c_long(trouble.times),
            STALL_S,
        )
        status = _child(order)
        Path(order.place, "calls").write_text(str(self._shim.hf_count()), encoding="ascii")
        return status


class Patient:
    """An agent whose disk is in trouble."""

    def __init__(self, name: str, troubled: Troubled, folder: Path) -> None:
        self._name, self._troubled, self._folder = name, troubled, folder
        self._expected = Agent(name, troubled, folder).expected
        self._calls: dict[tuple[int, bool], int] = {}

    def suffer(self, name: str, moment: int, *, is_created: bool) -> Outcome:
        """Live with this trouble from one of the moments on; then be judged."""
        calls = self._calls_of(name, is_created=is_created)
        at = Syscall(name="call", nth=1 + moment * (calls - 1) // (MOMENTS - 1), error=name)
        with self._order(TROUBLES[name].retries) as order:
            deaths = [CREATED, at] if is_created else [at]
            tally = survive(self._troubled, order, deaths, self._expected)  # type: ignore[arg-type]  # it only lives
        outcome = counted(tally)
        outcome.counts["kills"] = 0
        outcome.counts["scenarios"] += 1
        outcome.counts[name] += 1
        outcome.counts["told by the library"] += tally.faults
        if TROUBLES[name].fault == STALL and tally.faults:
            outcome.findings.append(f"{self._name}: an error where the disk was only slow")
        return outcome

    def _calls_of(self, name: str, *, is_created: bool) -> int:
        """How many calls of this trouble's kinds an undisturbed life makes."""
        known = TROUBLES[name].kinds, is_created
        if known not in self._calls:
            with self._order() as order:
                if is_created:
                    self._troubled.live(order, CREATED)
                self._troubled.live(order, Syscall(name="call", nth=FOR_GOOD, error=name))
                told = Path(order.place, "calls").read_text(encoding="ascii")
            self._calls[known] = int(told)
        return self._calls[known]

    @contextlib.contextmanager
    def _order(self, retries: int = 0) -> Iterator[Order]:
        with tempfile.TemporaryDirectory(dir=self._folder) as place:
            yield Order(agent=self._name, place=place, retries=retries)


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:  # noqa: ARG001 every scenario is tried; nothing is drawn
    """Every trouble at every moment, on a new store and on one where the run has begun."""
    troubled = Troubled(ctypes.CDLL(os.environ[LOADED]))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        patients = dict[str, Patient]()

        def trial(number: int) -> Outcome | None:
            if number >= len(PLANS):
                return None
            agent, name, moment, is_created = PLANS[number]
            if agent not in patients:
                patients[agent] = Patient(agent, troubled, Path(folder))
            return patients[agent].suffer(name, moment, is_created=is_created)

        yield trial


PLANS = [
    (agent, name, moment, is_created)
    for agent in AGENTS
    for is_created in (True, False)
    for moment in range(MOMENTS)
    for name in TROUBLES
]

PART = Part(
    id="P9",
    name="stalls",
    what="A disk whose flushes fail or stall, that is read-only, or full and then freed.",
    counted="scenarios",
    goal=len(PLANS),
    trials=trials,
    missing=missing,
)

if __name__ == "__main__":
    if LOADED in os.environ or missing():
        raise SystemExit(main(PART))
    raise SystemExit(run_loaded(sys.argv[1:], "stalls"))
