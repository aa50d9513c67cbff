"""Whatever is damaged, a repair ends in a whole store with true states, or is refused by name."""

import os
import random
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

import pytest

import holdfast
from holdfast.store.backends.tail import NAME as TAIL
from tests.corruption.matrix import Matrix, bits, memory, row_harms, sectors
from tests.corruption.scene import Scene
from tests.corruption.test_repair import whole
from tests.corruption.trial import Contents, Patient

TRIALS = int(os.environ.get("HOLDFAST_REPAIRS") or 25)
SEED = os.environ.get("HOLDFAST_SEED", "kelp")


@pytest.fixture
def hospital(scene: Scene) -> Iterator[Matrix]:
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        yield Matrix(scene, Path(folder))


@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("which", "kind"),
    [
        ("closed", "bits"),
        ("closed", "sectors"),
        ("closed", "rows"),
        ("killed", "tail"),
        ("killed", "tail and database"),
    ],
)
def test_a_repair_ends_in_a_whole_store_or_is_refused(
    hospital: Matrix, which: str, kind: str, counted: Callable[[str], None]
) -> None:
    patient, known, _ = hospital.store(which)
    chance = random.Random(f"{SEED} {kind}")  # noqa: S311 a seed, not a secret
    ended: Counter[str] = Counter()
    wrong: list[str] = []

    for how in _harmed(patient, kind, chance):
        try:
            plan = holdfast.plan_repair(patient.path)
            ended["repaired" if plan.apply() else "whole"] += 1
            wrong += [f"{how}: {each}" for each in _untrue(patient.path, known)]
        except holdfast.HoldfastError as error:
            ended[f"refused: {type(error).__name__}"] += 1
        except Exception as error:  # noqa: BLE001 a foreign error is a finding
            wrong.append(f"{how}: {type(error).__name__}: {error}")
        patient.heal()

    counted(str(dict(ended)))
    assert [] == wrong
    assert ended["repaired"]


def _harmed(patient: Patient, kind: str, chance: random.Random) -> Iterator[str]:
    """The store damaged in one way after the other."""
    data = patient.data("store.db")
    if kind == "rows":
        harms = list(row_harms(patient.path / "store.db"))
        for how, statements in chance.sample(harms, min(TRIALS, len(harms))):
            with closing(sqlite3.connect(patient.path / "store.db")) as link, link:
                for sql, values in statements:
                    link.execute(sql, values)
            yield how
    elif kind.startswith("tail"):
        beside = chance.sample(list(bits(data)), TRIALS if kind == "tail and database" else 0)
        tails = chance.sample(list(sectors(patient.data(TAIL))), TRIALS)
        for (how, harmed), flip in zip_longest(tails, beside):
            patient.harm(TAIL, harmed())
            if flip is not None:
                patient.harm("store.db", flip[1]())
            yield f"{how}, and {flip and flip[0]}"
    elif kind == "sectors":
        for how, harmed in chance.sample(list(sectors(data)), TRIALS):
            patient.harm("store.db", harmed())
            yield how
    else:
        for how, harmed in chance.sample(list(bits(data)), TRIALS):
            patient.harm("store.db", harmed())
            yield how


def _untrue(path: Path, known: Contents) -> Iterator[str]:
    yield from whole(path)
    states = [state for _, state in known.points.values()]
    with holdfast.open(path) as store:
        for run in store.runs():
            for point in store.checkpoints(run.id, every_turn=True):
                state = store.restore(point.id)[1]
                was = known.points.get(point.id)
                if state not in states:
                    yield f"{point.id} was never so"
                if was is not None and was[1] != state and point.kind != "recovery point":
                    yield f"{point.id} is another state now"
