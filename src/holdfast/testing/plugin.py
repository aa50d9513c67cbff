"""The pytest plugin: a store for each test, and the crash kit. Loaded by pytest itself.

The kit is imported when a test asks for it, so that a test run that does not is no slower.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import holdfast

if TYPE_CHECKING:
    from holdfast.testing import kit, survive
    from holdfast.testing import world as outside
    from holdfast.testing.lives import Person
else:
    from holdfast.ondemand import OnDemand

    kit = OnDemand("holdfast.testing.kit")
    survive = OnDemand("holdfast.testing.survive")
    outside = OnDemand("holdfast.testing.world")

KILLS, KILLS_MAX = "holdfast_kills", "500"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say which settings there are."""
    told = "how many points `crash_everywhere` kills an agent at, at most"
    parser.addini(KILLS, told, default=KILLS_MAX)


@pytest.fixture
def store(tmp_path: Path) -> "Iterator[holdfast.Store]":
    """A new store, closed afterwards; a change made around the methods of a state is an error."""
    with holdfast.open(tmp_path / "store", check=True) as store:
        yield store


@pytest.fixture
def crash_world(tmp_path: Path) -> "outside.World":
    """What stand-ins do outside: `crash_world.do("mail", to)`; no kill takes it back."""
    return outside.World(tmp_path / "world")


@pytest.fixture
def crash_person() -> "Person | None":
    """Who answers what the agent asks under the crash kit: nobody, until a test says who.

    A fixture of this name gives a function from `holdfast.Waiting` to the answer; to a request
    for approval, to True or False.
    """
    return None


@pytest.fixture
def crash_stage(
    tmp_path: Path, crash_world: "outside.World", crash_person: "Person | None"
) -> "survive.Stage":
    """Where the crash kit keeps the runs of a test."""
    return survive.Stage(tmp_path / "crashes", crash_world, crash_person)


@pytest.fixture
def crash_at(crash_stage: "survive.Stage") -> "kit.CrashAt":
    """`crash_at("effect.called:2")(agent, ...)`: killed there, continued, compared."""
    return kit.CrashAt(crash_stage)


@pytest.fixture
def crash_everywhere(
    crash_stage: "survive.Stage", pytestconfig: pytest.Config
) -> "kit.CrashEverywhere":
    """`crash_everywhere(agent, ...)`: killed before and after every step, effect and save."""
    return kit.CrashEverywhere(crash_stage, int(pytestconfig.getini(KILLS)))


@pytest.fixture
def assert_replays_exactly(crash_stage: "survive.Stage") -> "kit.ReplaysExactly":
    """`assert_replays_exactly(agent, ...)`: each turn is computed, lost, and replayed."""
    return kit.ReplaysExactly(crash_stage)
