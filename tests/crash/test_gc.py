"""Garbage collected while others write and die: nothing that a row names is ever lost."""

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast.policy.retention import Retention
from holdfast.store.verify import verify
from holdfast.testing.kill import Failpoint, run

pytestmark = pytest.mark.crash

WRITERS = 8
ROUNDS = int(os.environ.get("HOLDFAST_GC_ROUNDS", "6"))
TEXTS = 300
"""Few enough that writers share them, and that what was garbage is soon named again."""
RULES = Retention(last=2, runs_last=3)

KILLED_AT = (
    *("gc.removing", "gc.removed", "file.removing", "file.removed"),
    *("gc.deleting", "gc.deleted", "gc.pruning", "gc.pruned"),
    *("pin.writing", "pin.written", "collection.noting", "collection.noted"),
    *("store.shrinking", "store.shrunk", "space.moving", "space.moved"),
)
COLLECT = """
import sys, holdfast
rules = holdfast.Retention(last=2, runs_last=2)
with holdfast.open(sys.argv[1], retention=rules) as store:
    store.pin("run-0")
    store.gc(rules)
"""


def text(number: int) -> str:
    return f"{number:04d}" * 20_000


@holdfast.step
def think(number: int) -> str:
    return f"thought {number} " * 30


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def writer(run: holdfast.Run, seed: int, turns: int) -> str:
    chance = random.Random(seed)  # noqa: S311 a seed, not a secret
    run.state["thoughts"] = []
    for turn in run.turns():
        run.state["thoughts"] = [*run.state["thoughts"][-1:], think(turn)]
        run.state["text"] = text(chance.randrange(TEXTS))
        if turn + 1 == turns:
            return "written"
    raise AssertionError


@pytest.mark.parametrize("failpoint", KILLED_AT)
def test_a_killed_collection_leaves_a_whole_store_and_is_finished_by_the_next(
    tmp_path: Path, failpoint: str
) -> None:
    with holdfast.open(tmp_path / "store") as store:
        for number in range(4):
            store.run(writer, number, 60, id=f"run-{number}")
        before = {run.id: store.restore(run.id)[1] for run in store.runs()}
        store._opened.chunks.keep(text(99).encode())  # noqa: SLF001 left by a writer that died

    command = [sys.executable, "-c", COLLECT, str(tmp_path / "store")]
    killed = run(command, at=Failpoint(name=failpoint))
    assert killed.was_killed, killed.output
    with holdfast.open(tmp_path / "store") as store:
        assert_whole(store)
        assert {
            each.id: store.restore(each.id)[1] for each in store.runs()
        }.items() <= before.items()

    assert 0 == run(command).status
    with holdfast.open(tmp_path / "store") as store:
        assert ["run-3", "run-2", "run-0"] == [each.id for each in store.runs()]
        assert_whole(store)


@pytest.mark.timeout(120 + 30 * ROUNDS)
def test_nothing_a_row_names_is_lost_while_writers_write_and_die(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    chance = random.Random("writers and a collector")  # noqa: S311 a seed, not a secret
    killed = removed = pruned = values = 0
    for number in range(ROUNDS):
        end = time.monotonic() + 1.5
        # They write on after the last collection, so that some are killed in the midst of it.
        writers = [start(tmp_path, number, n, end + 0.5) for n in range(WRITERS)]
        with holdfast.open(tmp_path / "store") as store:
            while time.monotonic() < end:
                done = store.gc(RULES)
                removed += len(done.runs)
                pruned, values = pruned + done.rows, values + done.values
                if chance.random() < 0.5 and writers:
                    os.kill(writers[chance.randrange(len(writers))], signal.SIGKILL)
        for pid in writers:
            os.kill(pid, signal.SIGKILL) if chance.random() < 0.3 else None
            _, status = os.waitpid(pid, 0)
            killed += os.WIFSIGNALED(status)
        with holdfast.open(tmp_path / "store") as store:
            assert_whole(store)
    counted(
        f"{ROUNDS} rounds of {WRITERS} writers, {killed} killed; removed {removed} runs, "
        f"{values} values, pruned {pruned} rows; lost 0"
    )
    assert killed
    assert removed


def start(place: Path, number: int, n: int, end: float) -> int:
    """A child that writes; forked, since eight interpreters would take too long to start."""
    pid = os.fork()
    if pid == 0:
        try:
            write(place, number, n, end)
        finally:
            os._exit(0)
    return pid


def write(place: Path, number: int, n: int, end: float) -> None:
    with holdfast.open(place / "store") as store:
        for turn in range(20):
            if time.monotonic() > end:
                return
            id_ = f"run-{number}-{n}-{turn}"
            # Rows of the long ones are packed, so that they can be pruned.
            store.run(writer, number * 100 + n * 10 + turn, 12 if turn % 2 else 60, id=id_)


def assert_whole(store: holdfast.Store) -> None:
    assert [] == verify(store._opened, deep=True).findings  # noqa: SLF001 no public way in yet
