"""A run killed at every failpoint continues; nothing recorded is asked again, nothing doubled."""

import random
from collections.abc import Callable

import pytest

from holdfast.testing.kill import Failpoint
from tests.crash.agents import KILLED
from tests.crash.trial import Tally
from tests.crash.ward import Ward
from tests.tidy.source import failpoints

pytestmark = pytest.mark.crash

PAIRS = 8
"""How many pairs of deaths are drawn for each agent, besides those that are all tried."""
CHAINS, CHAIN = 4, 6
"""How many runs of each agent die over and over, and how often at most."""
FIRST = {
    "threads": Failpoint(name="effect.recorded", nth=2),
    "refused": Failpoint(name="effect.declined", nth=2),
    "streaming": Failpoint(name="stream.recorded", nth=1),
    "family": Failpoint(name="effect.called", nth=1),
    **dict.fromkeys(
        ("one_step", "idle", "large", "cancelled", "asking"), Failpoint(name="step.called", nth=2)
    ),
}
"""The death after which every failpoint of the second life is tried."""
USUAL = Failpoint(name="effect.called", nth=2)

BY_TIME = {"pending.flushing", "pending.flushed", "queue.waiting", "queue.empty"}
"""Whether a life gets to these depends on how fast it is, so a kill there may find nobody."""

BY_ROOM = BY_TIME | {"store.shrinking", "store.shrunk"}
"""A close gets to these where enough pages are free, which rows flushed by time may change."""

TAIL = {
    *("tail.growing", "tail.grown", "tail.writing", "tail.written"),
    *("directory.flushing", "directory.flushed"),
}
BY_BATCH = dict.fromkeys(("gathered", "threads"), BY_ROOM | TAIL)
"""Whether rows stand in the tail is up to who else commits in the same moment."""

REPAIRS = {
    "repair.emptying",
    "repair.emptied",
    "repair.writing",
    "repair.written",
    "repair.gathered",
    "repair.exchanging",
    "repair.exchanged",
}
ELSEWHERE = {
    *REPAIRS,
    *("run.admitting", "run.admitted", "run.forking", "run.forked"),
    *("fence.opening", "fence.opened", "effect.adopting", "effect.adopted"),
    *("doubt.adopting", "doubt.adopted", "rollback.moving", "rollback.moved"),
    *("undo.failed", "rollback.settling", "rollback.settled", "wish.writing", "wish.written"),
    *("retake.saying", "retake.said", "retake.settling", "retake.settled"),
    *("supervise.starting", "supervise.started", "supervise.ended", "supervise.decided"),
    *("escalation.recording", "escalation.recorded"),
    *("gc.removing", "gc.removed", "gc.deleting", "gc.deleted", "gc.pruning", "gc.pruned"),
    *("pin.writing", "pin.written", "tail.wiping", "tail.wiped"),
    *("collection.noting", "collection.noted", "space.moving", "space.moved"),
    *("rekey.sealing", "rekey.sealed", "rekey.writing", "rekey.written"),
    *("rekey.wrapping", "rekey.wrapped", "rekey.removing", "rekey.removed"),
    *("store.emptying", "store.emptied", "heads.forgetting", "heads.forgotten"),
}
"""What no plain run gets to: import, fork, gc, keys, repair; tests of their own kill there."""

every_agent = pytest.mark.parametrize("agent", KILLED)


@every_agent
def test_a_run_killed_at_any_failpoint_continues(
    ward: Ward, count: Callable[[Tally], None], agent: str
) -> None:
    reached = ward.known(agent).reached

    tally = ward.try_all(agent, [[death] for death in _deaths(reached)])

    count(tally)
    assert [] == tally.findings
    assert set(reached) - BY_BATCH.get(agent, BY_ROOM) <= set(tally.killed_at)


@every_agent
def test_a_run_killed_again_while_it_restarts_continues(
    ward: Ward, count: Callable[[Tally], None], agent: str
) -> None:
    first = FIRST.get(agent, USUAL)
    second = _second(ward, agent, first)

    tally = ward.try_all(agent, [[first, death] for death in second])

    count(tally)
    assert [] == tally.findings
    assert {death.name for death in second} - BY_BATCH.get(agent, BY_ROOM) <= set(tally.killed_at)


@every_agent
def test_a_run_killed_over_and_over_continues(
    ward: Ward, count: Callable[[Tally], None], agent: str
) -> None:
    chance = random.Random(f"over and over {agent}")  # noqa: S311 a seed, not a secret
    first = _deaths(ward.known(agent).reached)
    later = [*first, *_second(ward, agent, FIRST.get(agent, USUAL))]
    plans = [[chance.choice(first), chance.choice(later)] for _ in range(PAIRS)]
    plans += [[chance.choice(first), *chance.choices(later, k=CHAIN - 1)] for _ in range(CHAINS)]

    tally = ward.try_all(agent, plans)

    count(tally)
    assert [] == tally.findings
    assert len(plans) < len(tally.killed_at)


def test_every_failpoint_of_the_source_is_among_those_killed_at(ward: Ward) -> None:
    tried = {
        death.name
        for agent in KILLED
        for death in [
            *_deaths(ward.known(agent).reached),
            *_second(ward, agent, FIRST.get(agent, USUAL)),
        ]
    }

    assert set(failpoints()) - ELSEWHERE - BY_TIME == tried - BY_TIME


def _second(ward: Ward, agent: str, first: Failpoint) -> list[Failpoint]:
    """Every failpoint of the life after `first`."""
    return _deaths(ward.reached(agent, first))


def _deaths(reached: dict[str, int]) -> list[Failpoint]:
    """For each failpoint: the first, the second and the last time it is reached."""
    return [
        Failpoint(name=name, nth=nth)
        for name, times in sorted(reached.items())
        for nth in sorted({1, min(2, times), times})
    ]
