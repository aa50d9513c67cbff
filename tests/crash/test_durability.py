"""What a run that does not wait for the disk may lose in a crash: its newest steps, no more."""

import sys
from pathlib import Path

import pytest

from holdfast.model.journal import Answer, Happened
from holdfast.testing.kill import Ended, Failpoint, run
from tests.crash.hasty import EVERY, STEPS
from tests.crash.outside import Outside
from tests.crash.trial import ROOT, check_whole
from tests.engine.kit import Stage

pytestmark = pytest.mark.crash


def live(place: Path, durability: str, at: Failpoint | None = None) -> Ended:
    command = [sys.executable, "-m", "tests.crash.hasty", str(place), durability]
    return run(command, at=at, cwd=ROOT)


@pytest.mark.parametrize("durability", ["durable", "bounded", "async"])
@pytest.mark.parametrize("nth", [5, 17, 38])
def test_a_killed_run_has_lost_only_its_newest_steps(
    tmp_path: Path, durability: str, nth: int
) -> None:
    killed = live(tmp_path, durability, Failpoint(name="step.recorded", nth=nth))

    assert killed.was_killed
    outside, stage = Outside(tmp_path), Stage(tmp_path / "store")
    handed = [int(line.what) for line in outside.log()]
    journal = stage.journal("run")
    recorded = [stage.value(entry) for entry in journal if isinstance(entry, Answer)]
    paid = [stage.value(entry) for entry in journal if isinstance(entry, Happened)]
    assert list(range(nth - 1)) == handed
    assert list(range(len(recorded))) == recorded
    # An effect waits for all that came before it.
    assert [n for n in handed if n % EVERY == EVERY - 1] == paid
    assert len(recorded) >= (nth - 1 if durability == "durable" else len(paid) * EVERY)

    ended = live(tmp_path, durability)

    assert 0 == ended.status, ended.output
    assert str(sum(range(STEPS))) == ended.output.split()[-1]
    assert STEPS // EVERY == len({line.kind for line in outside.world()})
    check_whole(tmp_path / "store")
