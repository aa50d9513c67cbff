"""Which runs a report over a window of time is made of."""

from pathlib import Path

import pytest

import holdfast
from holdfast.report.facts import Window, facts_of
from holdfast.store.open import open_store
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import Crash, Stage

BEGAN = 1_750_000_000.0
DAY = 86_400.0


@holdfast.step
def look(n: int) -> int:
    return n


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Runs that end on days 1 and 3, and one that began before them and still works on day 5."""
    clock = ManualClock(BEGAN)
    stage = Stage(tmp_path / "store", clock)

    @holdfast.agent
    def short(run: holdfast.Run) -> int:
        return run.call(look, 0)

    @holdfast.agent
    def long(run: holdfast.Run) -> None:
        for turn in run.turns():
            look(turn)
            raise Crash

    stage.die(long, id="long")
    for day in (1, 3):
        clock.set(BEGAN + day * DAY)
        stage.live(short, id=f"day-{day}")
    clock.set(BEGAN + 5 * DAY)
    stage.die(long, id="long")
    return stage


@pytest.mark.parametrize(
    ("since", "until", "ids"),
    [
        (None, None, {"day-1", "day-3", "long"}),
        (0.0, 2.0, {"day-1"}),
        (2.0, 4.0, {"day-3"}),
        (4.0, None, {"long"}),
        (None, 1.0, set()),
        (1.0, 3.0, {"day-1"}),
        (3.0, 5.0, {"day-3"}),
        (None, 5.0, {"day-1", "day-3"}),
    ],
)
def test_a_run_belongs_to_when_it_ended_or_was_last_heard_of(
    stage: Stage, since: float | None, until: float | None, ids: set[str]
) -> None:
    window = Window(
        since=None if since is None else BEGAN + since * DAY,
        until=None if until is None else BEGAN + until * DAY,
    )
    opened = open_store(stage.path, ManualClock(BEGAN + 9 * DAY))
    try:
        found = {run.id for run in facts_of(opened, window=window)}
    finally:
        opened.close()

    assert ids == found
