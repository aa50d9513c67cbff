"""Rollback, undo, fork and permission killed at every failpoint: they go on, nothing is doubled."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.recovering import LIVES, Life, Warm, begin
from tests.crash.test_failpoints import BY_ROOM
from tests.crash.trial import Tally

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    with Warm() as made:
        yield made


@pytest.fixture(scope="module")
def begun(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return begin(warm, tmp_path_factory.mktemp("begun"))


@pytest.mark.parametrize("name", LIVES)
def test_what_was_killed_goes_on_and_nothing_is_doubled(
    warm: Warm, begun: Path, tmp_path: Path, count: Callable[[Tally], None], name: str
) -> None:
    life = Life(warm, begun, tmp_path, name)

    tally = life.everywhere()

    count(tally)
    assert [] == tally.findings
    assert set(life.reached) - BY_ROOM == set(tally.killed_at) - BY_ROOM


@pytest.mark.parametrize("name", ["undone again"])
def test_what_was_killed_again_while_it_went_on_goes_on_too(
    warm: Warm, begun: Path, tmp_path: Path, count: Callable[[Tally], None], name: str
) -> None:
    life = Life(warm, begun, tmp_path, name)

    tally = life.by_chance(random.Random(name))  # noqa: S311 a seed

    count(tally)
    assert [] == tally.findings
    assert len(tally.killed_at) > len(life.reached)
