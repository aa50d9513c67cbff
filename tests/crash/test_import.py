"""An import killed anywhere leaves the whole run, or none of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.store.open import open_store
from holdfast.store.verify import verify

pytestmark = pytest.mark.crash

KILLED_AT = {
    "run.admitting": False,
    "store.committing": False,
    "store.committed": True,
    "run.admitted": True,
}
"""Where the import is killed, and whether the run is there afterwards."""


@holdfast.step
def think(turn: int) -> str:
    return f"thought {turn}"


@holdfast.agent
def thinker(run: holdfast.Run) -> list[str]:
    run.state["thoughts"] = []
    for turn in run.turns():
        run.state["thoughts"].append(think(turn))
        if turn == 5:
            return list(run.state["thoughts"])
    raise AssertionError


@pytest.mark.parametrize(("failpoint", "is_there"), KILLED_AT.items())
def test_a_killed_import_left_the_whole_run_or_nothing(
    tmp_path: Path, failpoint: str, is_there: bool
) -> None:
    with holdfast.open(tmp_path / "from") as store:
        store.run(thinker, id="run")
        expected = store.restore("run")[1]
    exported = call(tmp_path, "export", "run", "file", "--store", "from")
    into = ("import", "file", "--store", "to")

    killed = call(tmp_path, *into, failpoint=f"{failpoint}:1")

    assert (0, -9) == (exported, killed)
    assert is_there == is_whole_with_run(tmp_path / "to")
    assert (2 if is_there else 0) == call(tmp_path, *into)
    with holdfast.open(tmp_path / "to") as store:
        assert expected == store.restore("run")[1]


def is_whole_with_run(path: Path) -> bool:
    opened = open_store(path, SystemClock())
    try:
        assert [] == verify(opened, deep=True).findings
        return opened.reader.find("run") is not None
    finally:
        opened.close()


def call(folder: Path, *args: str, failpoint: str | None = None) -> int:
    env = {**os.environ, "HOLDFAST_FAILPOINT": failpoint} if failpoint else dict(os.environ)
    program = [sys.executable, "-m", "holdfast", *args]
    return subprocess.run(program, cwd=folder, env=env, check=False, timeout=60).returncode
