"""Outside a run: a step runs, an effect only where no run could lose it."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.engine.kit import RUN, Crash, Stage, World


def in_thread(fn: Callable[[], Any]) -> Any:  # noqa: ANN401 what `fn` gives
    """Call `fn` in a bare thread, which belongs to no run."""
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(fn())
        except Exception as error:  # noqa: BLE001 given back
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def test_without_any_run_steps_and_effects_simply_run(world: World) -> None:
    @holdfast.step
    def chat(text: str) -> str:
        return world.ask(text)

    @holdfast.effect
    def pay(order: str, *, idempotency_key: str = "") -> str:
        return world.ask(order) + (" with a key" if idempotency_key else "")

    assert ["hi#1", "hi#2"] == [chat("hi"), chat("hi")]
    assert "o1#1 with a key" == pay("o1")
    assert "o1#2 with a key" == in_thread(lambda: pay("o1"))


async def test_without_any_run_async_ones_run_too(world: World) -> None:
    @holdfast.step
    async def chat(text: str) -> str:
        return world.ask(text)

    @holdfast.effect
    async def pay(order: str) -> str:
        return world.ask(order)

    assert ["hi#1", "o1#1"] == [await chat("hi"), await pay("o1")]


def test_after_a_run_an_effect_outside_runs_again(stage: Stage, world: World) -> None:
    @holdfast.effect
    def pay(order: str) -> str:
        return world.ask(order)

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        if world.dies_at:
            raise Crash

    stage.live(agent, id="finished")
    world.dies_at = "now"
    stage.die(agent, id="interrupted")

    assert "o1#1" == pay("o1")


@pytest.mark.parametrize("way", ["Thread", "ThreadPoolExecutor", "run_in_executor"])
def test_an_effect_in_a_thread_that_lost_the_run_is_refused_with_the_remedies(
    stage: Stage, world: World, way: str
) -> None:
    @holdfast.effect
    def pay(order: str) -> str:
        return world.ask(order)

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[Any]:
        def call() -> Any:  # noqa: ANN401
            try:
                return pay("o1")
            except holdfast.NotInRun as error:
                return str(error)

        if way == "Thread":
            return [in_thread(call), in_thread(run.wrap(call))]
        if way == "ThreadPoolExecutor":
            with ThreadPoolExecutor() as pool:
                return [pool.submit(call).result(), pool.submit(run.wrap(call)).result()]
        loop = asyncio.get_running_loop()
        lost = await loop.run_in_executor(None, call)
        return [lost, await loop.run_in_executor(None, run.wrap(call))]

    lost, carried = stage.live(agent)

    assert "run.wrap(fn)" in lost
    assert ".bare(" in lost
    assert "pay" in lost
    assert "o1#1" == carried
    assert ["o1"] == world.asked
    assert 1 == stage.kinds().count("Happened")


@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("run.checkpoint", lambda run: run.checkpoint("kept")),
        ("run.now", lambda run: run.now()),
        ("run.uuid", lambda run: run.uuid()),
        ("run.random", lambda run: run.random()),
        ("run.ask", lambda run: run.ask("Well?")),
        ("run.critical", lambda run: run.critical().__enter__()),
        ("budget usd", lambda run: run.budget("usd", 10).spend(1)),
        ("len", lambda run: run.call(len, "four")),
    ],
)
def test_a_method_of_the_run_in_a_bare_thread_is_refused_and_says_how_to_start_one(
    stage: Stage, named: str, call: Callable[[holdfast.Run], Any]
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        raise in_thread(lambda: call(run))

    error = stage.fault(agent)

    assert isinstance(error, holdfast.NotInRun)
    assert str(error).startswith(f"{named} was called from a thread")
    assert f"run {RUN}; start the thread with `run.wrap(fn)`" in str(error)
    assert ".bare" not in str(error)


def test_a_method_of_another_run_is_refused(stage: Stage) -> None:
    theirs: list[holdfast.Run] = []

    @holdfast.agent
    def first(run: holdfast.Run) -> None:
        theirs.append(run)

    @holdfast.agent
    def second(run: holdfast.Run) -> None:
        theirs[0].checkpoint()

    stage.live(first, id="first")
    error = stage.fault(second, id="second")

    assert isinstance(error, holdfast.NotInRun)
    assert "first" == error.run


def test_a_thread_that_carries_the_run_may_save_it(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return str(in_thread(run.wrap(lambda: run.checkpoint("kept"))))

    assert RUN in stage.live(agent)
    assert 1 == stage.kinds().count("Saved")


def test_bare_does_it_on_purpose_without_a_record(stage: Stage, world: World) -> None:
    @holdfast.effect
    def pay(order: str) -> str:
        return world.ask(order)

    @holdfast.step
    def chat(text: str) -> str:
        return world.ask(text)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        return [in_thread(lambda: pay.bare("o1")), pay.bare("o1"), chat.bare("hi")]

    assert ["o1#1", "o1#2", "hi#1"] == stage.live(agent)
    assert ["Started", "Finished"] == stage.kinds()


def test_a_step_in_a_thread_that_lost_the_run_runs_and_is_warned_about(
    stage: Stage, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    @holdfast.step
    def chat(text: str) -> str:
        return world.ask(text)

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        return in_thread(lambda: chat("hi"))

    with caplog.at_level(logging.WARNING, logger="holdfast"):
        assert "hi#1" == stage.live(agent)

    assert any("run.wrap" in record.getMessage() for record in caplog.records)
    assert "Answer" not in stage.kinds()


def test_a_wrapped_function_can_be_called_often_and_at_once(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(n: int) -> str:
        barrier.wait(30)
        return world.ask(f"chat {n}")

    barrier = threading.Barrier(4)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(run.wrap(chat), range(4)))

    assert [f"chat {n}#1" for n in range(4)] == stage.live(agent)


def test_wrap_carries_an_async_function_into_another_loop(stage: Stage, world: World) -> None:
    @holdfast.effect
    async def pay(order: str) -> str:
        return world.ask(order)

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        async def work() -> str:
            return await pay("o1")

        carried = run.wrap(work)
        return str(in_thread(lambda: asyncio.run(carried())))

    assert "o1#1" == stage.live(agent)
    assert 1 == stage.kinds().count("Happened")


def test_wrap_works_from_a_thread_that_has_lost_the_run_already(stage: Stage, world: World) -> None:
    @holdfast.effect
    def pay(order: str) -> str:
        return world.ask(order)

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return str(in_thread(lambda: run.wrap(pay)("o1")))

    assert "o1#1" == stage.live(agent)
    assert 1 == stage.kinds().count("Happened")


def test_a_run_belongs_to_its_own_code(stage: Stage, world: World) -> None:
    runs: list[holdfast.Run] = []

    def ask(text: str) -> str:
        return world.ask(text)

    @holdfast.agent
    def keeper(run: holdfast.Run) -> None:
        runs.append(run)

    @holdfast.agent
    def thief(run: holdfast.Run) -> None:
        runs[0].call(ask, "hi")

    stage.live(keeper, id="kept")
    error = stage.fault(thief, id="thief")

    assert isinstance(error, holdfast.HoldfastError)
    assert [] == world.asked
    with pytest.raises(holdfast.HoldfastError):
        runs[0].now()
    with pytest.raises(holdfast.HoldfastError):
        runs[0].turns()


def test_two_runs_at_once_keep_their_calls_apart(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(n: int) -> str:
        barrier.wait(30)
        return f"{holdfast.current().run_id} {n}"

    barrier = threading.Barrier(2)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return [chat(n) for n in range(3)]

    with stage.open() as store, ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda id_: store.run(agent, id=id_), "ab"))

    assert [[f"{id_} {n}" for n in range(3)] for id_ in "ab"] == found


def test_what_belongs_to_a_run_that_has_ended_says_so(tmp_path: Path) -> None:
    kept: list[holdfast.Run] = []

    @holdfast.agent
    def ends(run: holdfast.Run) -> None:
        kept.append(run)

    with holdfast.open(tmp_path / "s") as store:
        store.run(ends, id="ended")
        run = kept[0]
        late: list[Callable[[], object]] = [
            run.now,
            run.uuid,
            run.checkpoint,
            lambda: run.call(len, "x"),
            lambda: run.ask("still there?"),
            lambda: run.budget("usd", 5).left,
        ]
        for each in late:
            with pytest.raises(holdfast.NotInRun, match="when run ended had ended; call it from"):
                each()
