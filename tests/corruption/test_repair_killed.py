"""A repair killed anywhere leaves the store as it was or repaired, and is done by asking again."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import holdfast
from holdfast import failpoint
from tests.corruption.test_offer import newest_object, spoil
from tests.corruption.test_repair import whole
from tests.crash.test_failpoints import REPAIRS
from tests.tidy.source import failpoints

pytestmark = pytest.mark.crash


def damage(path: Path) -> None:
    """A bad row, and a bad file beside the database."""
    spoil(path, 1, 3)
    file = newest_object(path)
    file.write_bytes(file.read_bytes()[:-1])


def repair(path: Path, kill_at: str) -> int:
    env = {**os.environ, "HOLDFAST_FAILPOINT": kill_at}
    program = [sys.executable, "-m", "holdfast", "repair", "--apply", "--store", str(path)]
    return subprocess.run(program, env=env, check=False, timeout=60, capture_output=True).returncode


def test_a_killed_repair_is_done_by_asking_again(path: Path, tmp_path: Path) -> None:
    damage(path)
    reached: Counter[str] = Counter()
    for name in failpoints():
        failpoint.arm(name, lambda name=name: reached.update([name]))  # type: ignore[misc]  # mypy cannot infer it
    reference = Path(shutil.copytree(path, tmp_path / "reference"))
    assert holdfast.plan_repair(reference).apply() is not None
    failpoint.disarm()
    expected = told(reference)

    for name, times in sorted(reached.items()):
        killed = Path(shutil.copytree(path, tmp_path / name))
        assert -9 == repair(killed, f"{name}:{times}")
        holdfast.plan_repair(killed).apply()

        assert [] == whole(killed)
        assert expected == told(killed)
        assert list((killed / "lost").glob("*/store.db"))

    assert REPAIRS <= set(reached)


def told(path: Path) -> dict[str, object]:
    """Status and newest state of every run."""
    with holdfast.open(path) as store:
        return {run.id: (run.status, store.restore(run.id)[1]) for run in store.runs()}
