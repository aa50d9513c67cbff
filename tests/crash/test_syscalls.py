"""A run killed, or failed, at any system call that changes the disk continues."""

import os
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from holdfast.testing.kill import Failpoint, Syscall, can_trace
from tests.crash.agents import WRITING
from tests.crash.nursery import Order
from tests.crash.trial import Nursery, Tally
from tests.crash.ward import Ward

pytestmark = [
    pytest.mark.crash,
    pytest.mark.strace,
    pytest.mark.skipif(not can_trace(), reason="strace is missing, or may not trace here"),
]

EACH_MAX = int(os.environ.get("HOLDFAST_CALLS") or 12)
"""Of each kind of call so many are tried, a sample with a seed; in `make soak` 100, so all."""
FAULTS_MAX = max(8, EACH_MAX // 4)
FRESH_MAX = 4
"""The same for a new store, whose calls are mostly one loop that makes its log long."""
CREATED = Failpoint(name="run.created")

every_agent = pytest.mark.parametrize("agent", WRITING)


@every_agent
def test_a_run_killed_at_any_call_that_changes_the_disk_continues(
    ward: Ward, count: Callable[[Tally], None], agent: str
) -> None:
    calls = _calls(ward, agent, CREATED)

    tally = ward.try_all(agent, [[CREATED, death] for death in _deaths(calls, EACH_MAX)])

    count(tally)
    assert [] == tally.findings
    assert set(calls) <= set(tally.killed_at)


@every_agent
def test_a_run_killed_while_its_store_is_new_continues(
    ward: Ward, count: Callable[[Tally], None], agent: str
) -> None:
    calls = _calls(ward, agent)

    tally = ward.try_all(agent, [[death] for death in _deaths(calls, FRESH_MAX)])

    count(tally)
    assert [] == tally.findings
    assert set(calls) <= set(tally.killed_at)


@pytest.mark.parametrize("retries", [0, 1], ids=["a new process", "the same process"])
@pytest.mark.parametrize("agent", ["probed", "neither", "mixed", "large"])
def test_a_run_whose_disk_failed_once_is_continued_by(
    ward: Ward, count: Callable[[Tally], None], agent: str, retries: int
) -> None:
    calls = {name: n for name, n in _calls(ward, agent, CREATED).items() if name != "write"}
    faults = [replace(death, error="EIO") for death in _deaths(calls, FAULTS_MAX)]

    tally = ward.try_all(agent, [[CREATED, fault] for fault in faults], retries=retries)

    count(tally)
    assert [] == tally.findings
    # What may not be handed to the kernel is written in another way: that is no fault.
    assert len([fault for fault in faults if fault.name != "io_submit"]) / 2 < tally.faults
    # One fault is one error; but each thread has its own nth call, and an async run has several.
    assert tally.faults <= len(faults) or agent == "mixed"


def _calls(ward: Ward, agent: str, *deaths: Failpoint) -> dict[str, int]:
    """How often the life after `deaths` makes each call that changes the disk."""
    order = Order(agent=agent, place=str(ward.place(agent)))

    def live(nursery: Nursery) -> dict[str, int]:
        for death in deaths:
            nursery.live(order, death)
        return nursery.count_calls(order)

    return ward.lend(live)


def _deaths(calls: dict[str, int], each_max: int) -> list[Syscall]:
    chance = random.Random(repr(calls))  # noqa: S311 a seed, not a secret
    return [
        Syscall(name=name, nth=nth)
        for name, times in calls.items()
        for nth in sorted(chance.sample(range(1, times + 1), min(times, each_max)))
    ]
