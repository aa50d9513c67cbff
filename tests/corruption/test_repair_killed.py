"""A repair killed anywhere leaves the store as it was or repaired, and is done by asking again."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast import failpoint
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.tail import NAME as TAIL
from tests.corruption.scene import Scene
from tests.corruption.test_offer import newest_object, spoil
from tests.corruption.test_repair import whole
from tests.corruption.test_repair_tail import flip, journal, tail_rows
from tests.crash.test_failpoints import REPAIRS
from tests.tidy.source import failpoints

pytestmark = pytest.mark.crash


def damage(path: Path) -> list[JournalRow]:
    """A bad row, and a bad file beside the database. Says which rows of the tail are sound."""
    spoil(path, 1, 3)
    file = newest_object(path)
    file.write_bytes(file.read_bytes()[:-1])
    return []


def damage_tail(path: Path) -> list[JournalRow]:
    """A bad row, and a bad record of a run whose newest rows stand in the tail."""
    spoil(path, 1, 3)
    *sound, bad, _ = tail_rows(path)
    flip(path, bad)
    return sound


def repair(path: Path, kill_at: str) -> int:
    """A repair in a child of this process, which is killed there; its exit status."""
    if (child := os.fork()) == 0:
        failpoint.arm_from(kill_at)
        holdfast.plan_repair(path).apply()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    ("which", "harm"), [("closed", damage), ("killed", damage_tail)], ids=["closed", "killed"]
)
def test_a_killed_repair_is_done_by_asking_again(
    scene: Scene, tmp_path: Path, which: str, harm: Callable[[Path], list[JournalRow]]
) -> None:
    path = Path(shutil.copytree(getattr(scene, which), tmp_path / "store"))
    sound = harm(path)
    tail = (path / TAIL).read_bytes() if (path / TAIL).exists() else None
    reached: Counter[str] = Counter()
    for name in failpoints():
        failpoint.arm(name, lambda name=name: reached.update([name]))  # type: ignore[misc]  # mypy cannot infer it
    reference = Path(shutil.copytree(path, tmp_path / "reference"))
    assert holdfast.plan_repair(reference).apply() is not None
    failpoint.disarm()
    expected = told(reference)

    for name, nth in sorted({(name, nth) for name, n in reached.items() for nth in (1, n)}):
        killed = Path(shutil.copytree(path, tmp_path / f"{name}-{nth}"))
        assert -9 == repair(killed, f"{name}:{nth}")
        assert sound == journal(killed, sound)
        holdfast.plan_repair(killed).apply()

        assert [] == whole(killed)
        assert expected == told(killed)
        assert sound == journal(killed, sound)
        assert list((killed / "lost").glob("*/store.db"))
        assert not (killed / TAIL).exists()
        assert tail in [None, *(each.read_bytes() for each in killed.glob(f"lost/*/{TAIL}"))]

    assert REPAIRS <= set(reached)


def told(path: Path) -> dict[str, object]:
    """Status and states of every run."""
    with holdfast.open(path) as store:
        points = {run.id: store.checkpoints(run.id, every_turn=True) for run in store.runs()}
        return {
            run: (store.get(run).status, [store.restore(each.id)[1] for each in mine])
            for run, mine in points.items()
        }
