"""A warm process that forks a child for each life of a run, so that a life costs milliseconds.

It opens no store itself. Orders come as lines of JSON on its standard input; for each it prints
the child's process id, then, when the child has ended, its exit status.
"""

import json
import os
import re
import resource
import signal
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

import msgspec

import holdfast
from holdfast import failpoint
from holdfast.store.backends import tail
from holdfast.testing.kill import await_tracer
from tests.crash import agents

LIFE_S_MAX = 60
STORE = "store"
COUNTED = "counted"
FINISHED, BROKEN = 0, 1
STOPPED: dict[type[Exception], int] = {
    holdfast.InDoubt: 3,
    holdfast.Fenced: 4,
    holdfast.RunHeld: 5,
    holdfast.StoreError: 6,
}
"""The exit status for each error that a life may end with."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One life: which agent, where, and how it may end early.

    `stall_s` is how long a holder of the run may be silent before this life takes it over,
    `retries` how often it runs the agent again after the store could not be written.
    """

    agent: str
    place: str
    failpoint: str = ""
    is_traced: bool = False
    count: list[str] = []
    """Failpoints whose reaching is counted, into the file `COUNTED`."""
    stall_s: float = 8.0
    retries: int = 0
    durability: str | None = None
    file_bytes_max: int = 0
    """No file may grow beyond this; 0 is no limit."""


def main() -> None:
    """Serve orders until the standard input ends."""
    for line in sys.stdin:
        order = msgspec.json.decode(line, type=Order)
        pid = os.fork()
        if pid == 0:
            os._exit(_child(order))
        _say(pid)
        _, status = os.waitpid(pid, 0)
        _say(os.waitstatus_to_exitcode(status))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _child(order: Order) -> int:
    signal.alarm(LIFE_S_MAX)
    try:
        if order.file_bytes_max:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (order.file_bytes_max, -1))
        if order.is_traced:
            tail.FEW_ROWS = 0  # So short a life writes as a long one does.
            await_tracer()
        failpoint.arm_from(order.failpoint)
        counted = _count(order.count, Path(order.place, COUNTED))
        status = live(order)
        if counted:
            Path(order.place, COUNTED).write_text(json.dumps(counted), encoding="utf-8")
    except BaseException:  # noqa: BLE001 a child ends here, whatever it was
        traceback.print_exc()
        return BROKEN
    return status


def _count(names: list[str], file: Path) -> Mapping[str, int]:
    """Count on from what lives before this one counted."""
    counted = dict.fromkeys(names, 0)
    if file.exists():
        counted.update(json.loads(file.read_text(encoding="utf-8")))

    def count(name: str) -> None:
        counted[name] += 1

    for name in names:
        failpoint.arm(name, lambda name=name: count(name))  # type: ignore[misc]  # mypy cannot infer it
    return counted


def live(order: Order) -> int:
    """One life of a run: started or continued, to its end or its death."""
    place = Path(order.place)
    agents.outside.place = place
    agents.outside.note("life")
    try:
        with holdfast.open(
            place / STORE, stall=order.stall_s, durability=order.durability
        ) as store:
            if store.runs(status=holdfast.Status.IN_DOUBT):
                _resolve(store)
            answers = _carry_out(store, order)
    except tuple(STOPPED) as error:
        agents.outside.note(type(error).__name__, str(error))
        return next(status for kind, status in STOPPED.items() if isinstance(error, kind))
    agents.outside.note("result", json.dumps(answers))
    return FINISHED


def _carry_out(store: holdfast.Store, order: Order) -> list[agents.Answer]:
    for _ in range(order.retries):
        try:
            return agents.carry_out(store, order.agent)
        except holdfast.StoreUnwritable as error:
            agents.outside.note("StoreUnwritable", str(error))
            agents.outside.note("life")  # A life of the run, in the same process.
    return agents.carry_out(store, order.agent)


def _resolve(store: holdfast.Store) -> None:
    """An earlier life ended in doubt: decide as the world says."""
    key = re.findall(r"key (\w+)", store.get(agents.RUN).error or "")[0]
    done = next((line for line in agents.outside.world() if line.kind == key), None)
    outcome = {"what": done.what, "token": done.token} if done else None
    store.resolve(agents.RUN, key, happened=done is not None, outcome=outcome)


if __name__ == "__main__":
    main()
