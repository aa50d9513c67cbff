"""Snapshots: what a fork or a rollback to one goes on with, and how they are told of."""

import threading
from typing import Any

import pytest

import holdfast
from holdfast.capture.diff import Change
from holdfast.report.timeline import timeline
from tests.engine.kit import RUN, Crash, Stage

HELD = ("mem", "memory", "odd key")

ids: dict[str, str] = {}
crashes: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    ids.clear()
    crashes[:] = [2]


@holdfast.agent
def keeper(run: holdfast.Run) -> dict[str, Any]:
    run.state.update(dict.fromkeys(HELD, 0))
    for turn in run.turns():
        if turn in crashes:
            raise Crash
        for name in HELD:
            run.state[name] += 1
        if turn == 1:

            def save() -> None:
                ids["beside"] = run.checkpoint(only=["mem"])

            beside = threading.Thread(target=run.wrap(save))
            beside.start()
            beside.join()
            ids["snapshot"] = run.checkpoint(only=["mem"])
            ids["checkpoint"] = run.checkpoint("whole")
        for name in HELD:
            run.state[name] += 10
        if turn == 2:
            return {name: run.state[name] for name in HELD}
    raise AssertionError


def changed(name: str, before: int, after: int) -> Change:
    return Change(kind="changed", path=name, before=before, after=after)


def test_a_rollback_to_a_snapshot_goes_on_with_the_whole_state_as_its_plan_says(
    stage: Stage,
) -> None:
    stage.die(keeper)

    with stage.open() as store:
        assert {"mem": 12} == store.restore(ids["snapshot"])[1]
        plan = store.plan_rollback(RUN, to=ids["snapshot"])
        assert [changed(path, 22, 12) for path in ("mem", "memory", '["odd key"]')] == plan.changes
        # A thread that asks for a snapshot holds nothing else still, so nothing else is told of.
        other = store.plan_rollback(RUN, to=ids["beside"])
        assert [changed("mem", 22, 12)] == other.changes
        plan.apply()
        crashes.clear()
        assert dict.fromkeys(HELD, 33) == store.run(keeper, id=RUN)


def test_a_fork_of_a_snapshot_goes_on_with_the_whole_state(stage: Stage) -> None:
    stage.die(keeper)
    crashes.clear()

    with stage.open() as store:
        store.fork(RUN, at=ids["snapshot"], new_id="fork")
        assert dict.fromkeys(HELD, 33) == store.run(keeper, id="fork")


@pytest.mark.parametrize(
    ("section", "path"), [("mem", "mem"), ("memory", "memory"), ("odd key", '["odd key"]')]
)
def test_a_plan_for_one_section_shows_the_changes_of_that_section_alone(
    stage: Stage, section: str, path: str
) -> None:
    stage.die(keeper)

    with stage.open() as store:
        plan = store.plan_rollback(RUN, to=0, only=[section])

    assert [changed(path, 22, 11)] == plan.changes


@pytest.mark.parametrize("source", ["snapshot", "beside", "checkpoint"])
def test_a_section_goes_back_to_a_snapshot_of_it_and_the_others_stay(
    stage: Stage, source: str
) -> None:
    stage.die(keeper)
    crashes.clear()

    with stage.open() as store:
        plan = store.plan_rollback(RUN, to=ids[source], only=["mem"])
        assert [changed("mem", 22, 12)] == plan.changes
        plan.apply()
        assert {"mem": 23, "memory": 33, "odd key": 33} == store.run(keeper, id=RUN)


def test_a_section_that_a_snapshot_does_not_hold_is_not_taken_from_it(stage: Stage) -> None:
    stage.die(keeper)

    with (
        stage.open() as store,
        pytest.raises(holdfast.UsageError, match="no section 'memory' there; there is: 'mem'"),
    ):
        store.plan_rollback(RUN, to=ids["snapshot"], only=["memory"])


def test_a_snapshot_that_was_asked_for_is_told_as_one(stage: Stage) -> None:
    stage.die(keeper)

    with stage.open() as store:
        run = store.opened.reader.find(RUN)
        assert run is not None
        told = timeline(store.opened.reader, run)

    saves = [(e.kind, e.name) for e in told.events if e.kind in ("checkpoint", "snapshot")]
    assert [("snapshot", "mem"), ("snapshot", "mem"), ("checkpoint", "whole")] == saves
    assert 1 == told.checkpoints
