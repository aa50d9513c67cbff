"""A damaged store gives what was written or a named error: never a wrong state, never silence.

`make test` draws a part of the matrix by a seed; HOLDFAST_MATRIX=1 tries all of it.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.store.backends import slots, sweep
from holdfast.store.backends.tail import NAME as TAIL
from tests.corruption.matrix import FILES, Matrix, memory
from tests.corruption.scene import Scene
from tests.corruption.trial import Patient, contents, judge
from tests.unit.store.builders import seed_of

SHARES = {
    "bits of the database": 0.003,
    "cuts of the database": 0.005,
    "sectors of the database": 0.02,
    "bits of the log": 0.005,
    "cuts of the log": 0.005,
    "sectors of the log": 0.05,
    "bits of the tail": 0.005,
    "cuts of the tail": 0.01,
    "sectors of the tail": 0.02,
    "slots of the tail": 1.0,
    "generation of the tail": 0.3,
    "bits of the head note": 0.02,
    "cuts of the head note": 0.1,
    "bits of the beats": 0.05,
    "bits of the lock": 0.3,
    "objects": 0.06,
    "rows": 0.25,
}
"""Which share of each part `make test` draws."""
SEED = os.environ.get("HOLDFAST_SEED", "kelp")


@pytest.fixture
def matrix(scene: Scene) -> Iterator[Matrix]:
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        yield Matrix(scene, Path(folder))


@pytest.mark.parametrize("part", SHARES)
@pytest.mark.timeout(0)
def test_no_damage_gives_a_wrong_state_or_goes_unnoticed(
    matrix: Matrix, part: str, counted: Callable[[str], None]
) -> None:
    share = float(os.environ.get("HOLDFAST_MATRIX") or SHARES[part])

    tally = matrix.run(part, share, SEED)

    counted(str(tally))
    assert [] == tally.wrong
    assert tally.trials


def test_every_part_of_the_matrix_is_drawn_from(matrix: Matrix) -> None:
    assert set(SHARES) == set(matrix.parts())
    assert FILES.keys() <= SHARES.keys()


def test_of_the_killed_store_rows_stand_in_the_log_alone_and_others_in_the_tail(
    scene: Scene, tmp_path: Path
) -> None:
    tail = (scene.killed / TAIL).read_bytes()
    bare = Path(shutil.copy(scene.killed / "store.db", tmp_path))
    before = ids(bare)
    shutil.copy(scene.killed / "store.db-wal", tmp_path)
    with closing(sqlite3.connect(bare)) as link:
        generation = sweep.generation(link)

    seed = seed_of(scene.killed)
    newest = {row.id for row in slots.read(tail, seed, generation).rows}

    assert before < ids(bare)
    assert 5 == len(newest - ids(bare))
    assert slots.read(tail, seed, generation - 1).rows  # What an older one has left behind them.


def ids(database: Path) -> set[int]:
    with closing(sqlite3.connect(database)) as link:
        return {id_ for (id_,) in link.execute("SELECT id FROM j")}


def test_a_healthy_store_is_judged_healthy(scene: Scene, tmp_path: Path) -> None:
    for healthy in (scene.closed, scene.killed):
        patient = Patient(healthy, tmp_path / healthy.name)
        expected = contents(patient.path)
        patient.heal()

        verdict = judge(patient.path, expected)

        assert ([], [], len(expected.points)) == (verdict.loud, verdict.wrong, verdict.restored)


def test_a_wrong_state_would_be_noticed(scene: Scene, tmp_path: Path) -> None:
    patient = Patient(scene.closed, tmp_path)
    expected = contents(patient.path)
    next(iter(expected.points.values()))[1]["planted"] = True

    assert ["another state"] == [each[-13:] for each in judge(patient.path, expected).wrong]
