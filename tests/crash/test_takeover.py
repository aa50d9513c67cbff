"""One writer: a living holder keeps its run, a dead one's is taken, a late one is fenced."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from tests.crash import verdict
from tests.crash.nursery import FINISHED, STOPPED, STORE, Order
from tests.crash.outside import Outside
from tests.crash.trial import Nursery, check_whole

pytestmark = pytest.mark.crash

FENCED, HELD = STOPPED[holdfast.Fenced], STOPPED[holdfast.RunHeld]


@pytest.fixture
def nurseries() -> Iterator[list[Nursery]]:
    made = [Nursery(), Nursery()]
    yield made
    for nursery in made:
        nursery.close()


def test_a_stalled_process_that_wakes_up_late_writes_nothing(
    tmp_path: Path, nurseries: list[Nursery]
) -> None:
    order = Order(agent="gated", place=str(tmp_path), stall_s=1.0)
    stalled, other = nurseries
    pid = _begin_and_wait(stalled, order, "wait gate-0")
    os.kill(pid, signal.SIGSTOP)
    late = Outside(tmp_path).log()[-1].token
    _open_gates(tmp_path)

    _begin_and_wait(other, order, "wait gate-1")
    assert FINISHED == other.end()
    done = verdict.result(Outside(tmp_path).log())
    os.kill(pid, signal.SIGCONT)

    assert FENCED == stalled.end()
    assert late not in {answer["token"] for answer in done}
    assert late not in {line.token for line in Outside(tmp_path).log() if line.kind == "got"}
    assert FINISHED == other.live(order)
    assert done == verdict.result(Outside(tmp_path).log())
    check_whole(tmp_path / STORE)


def test_a_stalled_process_that_wakes_up_does_not_open_the_run_to_a_third(
    tmp_path: Path, nurseries: list[Nursery]
) -> None:
    order = Order(agent="gated", place=str(tmp_path), stall_s=1.0)
    stalled, other = nurseries
    pid = _begin_and_wait(stalled, order, "wait gate-0")
    os.kill(pid, signal.SIGSTOP)
    (tmp_path / "gate-0").touch()
    holder = _begin_and_wait(other, order, "wait gate-1")

    os.kill(pid, signal.SIGCONT)
    assert FENCED == stalled.end()
    assert HELD == stalled.live(order)

    held = Outside(tmp_path).log()[-1].what
    _open_gates(tmp_path)
    assert f"process {holder} " in held
    assert FINISHED == other.end()
    check_whole(tmp_path / STORE)


def test_a_second_process_is_told_who_holds_the_run_and_since_when(
    tmp_path: Path, nurseries: list[Nursery]
) -> None:
    order = Order(agent="gated", place=str(tmp_path))
    holder, other = nurseries
    pid = _begin_and_wait(holder, order, "wait gate-0")
    with holdfast.open(tmp_path / STORE) as store:
        since = store.get("run").holder.since

    assert HELD == other.live(order)
    told = Outside(tmp_path).log()[-1].what
    _open_gates(tmp_path)

    assert f"process {pid} " in told
    assert time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(since)) in told
    assert FINISHED == holder.end()


def test_the_run_of_a_killed_process_is_taken_at_once(
    tmp_path: Path, nurseries: list[Nursery]
) -> None:
    order = Order(agent="gated", place=str(tmp_path), stall_s=3600.0)
    killed, other = nurseries
    os.kill(_begin_and_wait(killed, order, "wait gate-0"), signal.SIGKILL)
    _open_gates(tmp_path)

    assert -signal.SIGKILL == killed.end()
    assert FINISHED == other.live(order)


def _begin_and_wait(nursery: Nursery, order: Order, what: str) -> int:
    """Let a life begin; returns its process id once it has asked `what`.

    It begins anew while the run is refused because its holder was alive just now.
    """
    pid = nursery.begin(order)
    while not _has(Path(order.place), "asked", what):
        if not _is_alive(pid):
            assert HELD == nursery.end()
            pid = nursery.begin(order)
        time.sleep(0.01)
    return pid


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _has(place: Path, kind: str, what: str) -> bool:
    return any((line.kind, line.what) == (kind, what) for line in Outside(place).log())


def _open_gates(place: Path) -> None:
    for gate in ("gate-0", "gate-1"):
        (place / gate).touch()
