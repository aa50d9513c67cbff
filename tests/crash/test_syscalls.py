"""A run killed at any system call that changes the disk continues, as does one whose flush failed."""

import random
from collections.abc import Callable

import pytest

from holdfast.testing.kill import Failpoint, Syscall, is_strace_here
from tests.crash.agents import AGENTS
from tests.crash.nursery import Order
from tests.crash.trial import Tally
from tests.crash.ward import Ward

pytestmark = [
    pytest.mark.crash,
    pytest.mark.strace,
    pytest.mark.skipif(not is_strace_here(), reason="strace is not installed: see scripts/setup"),
]

FRESH_MAX = 6
"""Of a new store's calls, mostly one loop that makes its log long, so many of each kind are tried."""
CREATED = Failpoint(name="run.created")

every_agent = pytest.mark.parametrize("agent", AGENTS)


@every_agent
def test_a_run_killed_at_any_call_that_changes_the_disk_continues(
    ward: Ward, count: Callable[[Tally], None], agent: str
) -> None:
    calls = _calls(ward, agent, is_fresh=False)
    plans = [
        [CREATED, Syscall(name=name, nth=nth)]
        for name, times in calls.items()
        for nth in range(1, times + 1)
    ]

    tally = ward.try_all(agent, plans)

    count(tally)
    assert [] == tally.findings
    assert {CREATED.name, *calls} == set(tally.killed_at)


@every_agent
def test_a_run_killed_while_its_store_is_new_continues(
    ward: Ward, count: Callable[[Tally], None], agent: str
) -> None:
    chance = random.Random(f"new {agent}")  # noqa: S311 a seed, not a secret
    calls = _calls(ward, agent, is_fresh=True)
    plans = [
        [Syscall(name=name, nth=nth)]
        for name, times in calls.items()
        for nth in chance.sample(range(1, times + 1), min(times, FRESH_MAX))
    ]

    tally = ward.try_all(agent, plans)

    count(tally)
    assert [] == tally.findings
    assert set(calls) == set(tally.killed_at)


def _calls(ward: Ward, agent: str, *, is_fresh: bool) -> dict[str, int]:
    order = Order(agent=agent, place=str(ward.place(agent)))
    if not is_fresh:
        assert -9 == ward.lend(lambda nursery: nursery.live(order, CREATED))
    return ward.lend(lambda nursery: nursery.count_calls(order))
