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
from holdfast.testing.kill import await_tracer
from tests.crash import agents

LIFE_S_MAX = 60
COUNTED = "counted"
FINISHED, BROKEN, IN_DOUBT, STORE_ERROR = 0, 1, 3, 4


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One life: which agent, where, and how it may end early."""

    agent: str
    place: str
    failpoint: str = ""
    is_traced: bool = False
    count: list[str] = []
    """Failpoints whose reaching is counted, into the file `COUNTED`."""
    file_bytes_max: int = 0
    """No file may grow beyond this; 0 is no limit."""


def main() -> None:
    """Serve orders until the standard input ends."""
    for line in sys.stdin:
        order = msgspec.json.decode(line, type=Order)
        pid = os.fork()
        if pid == 0:
            os._exit(_child(order))
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _child(order: Order) -> int:
    signal.alarm(LIFE_S_MAX)
    try:
        if order.file_bytes_max:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (order.file_bytes_max, -1))
        if order.is_traced:
            await_tracer()
        failpoint.arm_from(order.failpoint)
        counted = _count(order.count, Path(order.place, COUNTED))
        status = live(order.agent, Path(order.place))
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


def live(name: str, place: Path) -> int:
    """One life of a run: started or continued, to its end or its death."""
    agents.outside.place = place
    agents.outside.note("life")
    try:
        with holdfast.open(place / "store") as store:
            if store.runs(status=holdfast.Status.IN_DOUBT):
                _resolve(store)
            answers = agents.carry_out(store, name)
    except holdfast.InDoubt as doubt:
        agents.outside.note("doubt", doubt.effect, doubt.key)
        return IN_DOUBT
    except holdfast.StoreError as error:
        agents.outside.note("error", type(error).__name__, str(error))
        return STORE_ERROR
    agents.outside.note("result", json.dumps(answers))
    return FINISHED


def _resolve(store: holdfast.Store) -> None:
    """An earlier life ended in doubt: decide as the world says."""
    key = re.findall(r"key (\w+)", store.get(agents.RUN).error or "")[0]
    done = next((line for line in agents.outside.world() if line.kind == key), None)
    outcome = {"what": done.what, "token": done.token} if done else None
    store.resolve(agents.RUN, key, happened=done is not None, outcome=outcome)


if __name__ == "__main__":
    main()
