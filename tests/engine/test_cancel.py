"""`store.cancel`: at once where nobody holds the run, else at its next call."""

import threading
from typing import Any

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.store import wishes
from holdfast.store.open import open_store
from holdfast.store.verify import verify
from tests.engine.kit import RUN, Crash, Stage, World


def worker(world: World) -> holdfast.Agent[[], list[str]]:
    @holdfast.step
    def ask(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        run.state["found"] = []
        for turn in run.turns():
            run.state["found"].append(ask(f"turn {turn}"))
            if turn == 3:
                return list(run.state["found"])
        raise AssertionError

    return agent


def findings(stage: Stage) -> list[Any]:
    opened = open_store(stage.path, SystemClock())
    try:
        assert set() == wishes.asked(opened)
        return list(verify(opened, deep=True).findings)
    finally:
        opened.close()


def test_a_run_that_nobody_holds_is_cancelled_at_once_and_for_good(
    stage: Stage, world: World
) -> None:
    agent = worker(world)
    world.dies_at = "turn 2"
    stage.die(agent)
    world.dies_at = None

    with stage.open() as store:
        for _ in range(2):
            info = store.cancel(RUN, reason="no longer needed")
            assert holdfast.Status.CANCELLED is info.status
        for act in (lambda: store.run(agent, id=RUN), lambda: store.restart(RUN, agent=agent)):
            with pytest.raises(holdfast.Cancelled, match="no longer needed"):
                act()
        assert 3 == len(world.asked)
        assert [RUN] == [each.id for each in store.runs(status="cancelled")]
    assert [] == findings(stage)

    with stage.open() as store:
        assert 4 == len(store.restart(RUN, agent=agent, revive=True))
    assert [] == findings(stage)


def test_a_run_at_work_stops_at_its_next_call(stage: Stage, world: World) -> None:
    began, may_go_on = threading.Event(), threading.Event()

    @holdfast.effect
    def work(turn: int) -> str:
        if turn == 1:
            began.set()
            may_go_on.wait(30)
        return world.ask(f"work {turn}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        for turn in run.turns():
            work(turn)
            if turn == 9:
                return turn
        raise AssertionError

    def cancel() -> None:
        began.wait(30)
        with stage.open() as other:
            info = other.cancel(RUN)
            assert info.is_held
            assert holdfast.Status.RUNNING is info.status
        while not store._lives._housekeeper.sessions()[0].stopped:  # noqa: SLF001 there is no other way to see it
            threading.Event().wait(0.01)
        may_go_on.set()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with stage.open() as store:
        with pytest.raises(holdfast.Cancelled):
            store.run(agent, id=RUN)
        canceller.join()
        assert holdfast.Status.CANCELLED is store.get(RUN).status

    assert ["work 0", "work 1"] == world.asked
    assert ["Intended", "Happened"] * 2 == [
        kind for kind in stage.kinds() if kind in ("Intended", "Happened")
    ], "what was under way is recorded"
    assert [] == findings(stage)


def test_a_wish_outlives_the_process_it_was_meant_for(stage: Stage, world: World) -> None:
    agent = worker(world)
    world.dies_at = "turn 1"
    stage.die(agent)
    world.dies_at = None
    opened = open_store(stage.path, SystemClock())
    run = opened.reader.find(RUN)
    assert run is not None
    wishes.ask(opened, run.row.no)
    opened.close()

    assert isinstance(stage.fault(agent), holdfast.Cancelled)
    assert 2 == len(world.asked)
    assert [] == findings(stage)


def test_what_is_over_cannot_be_cancelled(stage: Stage, world: World) -> None:
    stage.live(worker(world))
    with stage.open() as store:
        with pytest.raises(holdfast.UsageError, match="has finished"):
            store.cancel(RUN)
        with pytest.raises(holdfast.UnknownRun):
            store.cancel("nobody")


def test_a_wish_that_came_too_late_is_not_kept_for_the_time_after_a_rollback(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def ask(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        for turn in run.turns():
            ask(f"turn {turn}")
            if turn == 2:
                break
        if len(world.asked) == 3:
            with stage.open() as other:
                other.cancel(RUN)
        return turn

    assert 2 == stage.live(agent)
    with stage.open() as store:
        store.plan_rollback(RUN, to=0).apply()
        assert 2 == store.run(agent, id=RUN)
    assert [] == findings(stage)


def test_a_cancelled_run_can_be_forked_and_rolled_back(stage: Stage, world: World) -> None:
    agent = worker(world)
    world.dies_at = "turn 2"
    stage.die(agent)
    world.dies_at = None
    with stage.open() as store:
        store.cancel(RUN)
        assert 4 == len(store.run(agent, id=store.fork(RUN).id))
        store.plan_rollback(RUN, to=0).apply()
        assert 4 == len(store.run(agent, id=RUN))
    assert [] == findings(stage)


def test_an_agent_that_catches_it_is_cancelled_all_the_same(stage: Stage, world: World) -> None:
    @holdfast.step
    def ask(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def stubborn(run: holdfast.Run) -> str:  # noqa: ARG001 as every agent
        try:
            ask("one")
            ask("two")
        except holdfast.HoldfastError:
            world.ask("caught")
        return "done"

    world.dies_at = "one"
    with pytest.raises(Crash):
        stage.live(stubborn)
    world.dies_at = None
    opened = open_store(stage.path, SystemClock())
    wishes.ask(opened, 1)
    opened.close()

    assert isinstance(stage.fault(stubborn), holdfast.Cancelled)
    assert holdfast.Status.CANCELLED is stage.info().status
