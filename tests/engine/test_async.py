"""Async agents: the same names with `await`, and cancellation that loses nothing."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import holdfast
from holdfast import failpoint
from tests.engine.kit import RUN, Crash, Stage, World, moments


def trader(world: World, turns: int = 4) -> holdfast.Agent[[], Any]:
    @holdfast.step
    async def chat(messages: list[Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"said": world.ask(f"chat {len(messages)}")}

    @holdfast.effect(probe=lambda _: None)
    async def place(turn: int) -> str:
        await asyncio.sleep(0)
        return world.ask(f"place {turn}")

    @holdfast.agent
    async def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        messages = run.state.setdefault("messages", [])
        started = run.now()
        async for turn in run.turns():
            messages.append(await chat(messages))
            messages[-1]["order"] = await place(turn)
            if turn == turns - 1:
                break
        assert started == run.state.setdefault("started", started)
        return [await chat(messages), holdfast.plain(messages)]

    return agent


def cancel_at(point: str, task: asyncio.Task[Any]) -> None:
    def cancel() -> None:
        task.cancel()

    failpoint.arm(point, cancel)


async def let_go(store: holdfast.Store) -> None:
    """Wait until a thread that is on its way out has let the run go."""
    async with asyncio.timeout(30):
        while [False] != [info.is_held for info in store.runs()]:  # noqa: ASYNC110 another thread does it
            await asyncio.sleep(0.001)


async def test_an_async_agent_runs_and_gives_its_recorded_result(
    stage: Stage, world: World
) -> None:
    agent = trader(world)

    with stage.open() as store:
        first = await store.arun(agent, id=RUN)
        again = await store.arun(agent, id=RUN)

    assert first == again
    assert {"said": "chat 4#1"} == first[0]
    assert [] == world.repeated


@pytest.mark.parametrize(
    "what", [f"{call} {turn}" for turn in range(4) for call in ("chat", "place")] + ["chat 4"]
)
def test_killed_in_any_call_an_async_agent_continues(stage: Stage, world: World, what: str) -> None:
    agent = trader(world)
    world.dies_at = what
    stage.die(agent)
    world.dies_at = None

    _, messages = stage.live(agent)

    assert 4 == len(messages)
    assert [what] == world.repeated
    assert 10 == len(world.asked)


def test_killed_at_any_crash_point_an_async_agent_continues(stage: Stage, world: World) -> None:
    agent = trader(world, turns=2)
    names = []
    for name, at, asked in moments(stage, agent, outside=lambda: list(world.asked)):
        names.append(name)
        world.asked = asked
        _, messages = at.live(agent)
        assert 2 == len(messages)
        assert len(world.repeated) <= 1

    assert 25 < len(names)


def test_store_run_carries_an_async_agent_where_no_loop_runs(stage: Stage, world: World) -> None:
    assert 4 == len(stage.live(trader(world))[1])


async def test_store_run_under_a_running_loop_says_to_use_arun(stage: Stage, world: World) -> None:
    with stage.open() as store:
        with pytest.raises(holdfast.WrongLoop, match=r"await store\.arun"):
            store.run(trader(world), id=RUN)

        assert [] == store.runs()
    assert [] == world.asked


async def test_arun_carries_a_synchronous_agent_in_a_thread(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(n: int) -> str:
        return world.ask(f"chat {n}")

    @holdfast.agent
    def agent(run: holdfast.Run, n: int) -> list[Any]:
        return [chat(n), threading.current_thread() is threading.main_thread()]

    with stage.open() as store:
        both = await asyncio.gather(store.arun(agent, 1, id="1"), store.arun(agent, 2, id="2"))

    assert [["chat 1#1", False], ["chat 2#1", False]] == list(both)


async def test_many_runs_share_one_loop(stage: Stage, world: World) -> None:
    agents = [trader(world) for _ in range(10)]

    with stage.open() as store:
        results = await asyncio.gather(
            *(store.arun(agent, id=str(number)) for number, agent in enumerate(agents))
        )

    assert [4] * 10 == [len(messages) for _, messages in results]
    assert 90 == len(world.asked)


async def test_arestart_tries_a_failed_async_run_again(stage: Stage, world: World) -> None:
    is_fixed = False

    @holdfast.step
    async def chat() -> str:
        return world.ask("chat")

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        said = await chat()
        if not is_fixed:
            raise ValueError
        return said

    with stage.open() as store:
        with pytest.raises(holdfast.RunFailed):
            await store.arun(agent, id=RUN)
        is_fixed = True

        assert "chat#1" == await store.arestart(RUN, agent=agent)


async def test_a_cancelled_run_can_be_continued_at_once(stage: Stage, world: World) -> None:
    began = asyncio.Event()
    is_slow = True

    @holdfast.step
    async def chat(n: int) -> str:
        world.ask(f"chat {n}")
        if n == 1 and is_slow:
            began.set()
            await asyncio.sleep(60)
        return f"{n}"

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        run.state["said"] = []
        async for turn in run.turns():
            run.state["said"].append(await chat(turn))
            if turn == 2:
                return list(run.state["said"])
        raise AssertionError

    with stage.open() as store:
        task = asyncio.create_task(store.arun(agent, id=RUN))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.get(RUN).is_interrupted
        is_slow = False

        assert ["0", "1", "2"] == await store.arun(agent, id=RUN)

    assert ["chat 0", "chat 1", "chat 1", "chat 2"] == world.asked


@pytest.mark.parametrize("point", ["step.recording", "effect.recording"])
async def test_an_answer_whose_commit_is_cancelled_is_recorded_all_the_same(
    stage: Stage, world: World, point: str
) -> None:
    agent = trader(world, turns=1)

    with stage.open() as store:
        task = asyncio.create_task(store.arun(agent, id=RUN))
        cancel_at(point, task)
        with pytest.raises(asyncio.CancelledError):
            await task
        failpoint.disarm()
        await store.arun(agent, id=RUN)

    assert ["chat 0", "place 0", "chat 1"] == world.asked


async def test_an_effect_cancelled_before_it_began_is_not_in_doubt(
    stage: Stage, world: World
) -> None:
    @holdfast.effect
    async def pay() -> str:
        return world.ask("pay")

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        return await pay()

    with stage.open() as store:
        task = asyncio.create_task(store.arun(agent, id=RUN))
        cancel_at("effect.intending", task)
        with pytest.raises(asyncio.CancelledError):
            await task
        failpoint.disarm()
        assert [] == world.asked

        assert "pay#1" == await store.arun(agent, id=RUN)


@pytest.mark.parametrize("point", ["run.creating", "run.created", "run.taking", "run.taken"])
async def test_a_run_cancelled_while_it_begins_is_let_go(
    stage: Stage, world: World, point: str
) -> None:
    agent = trader(world, turns=1)
    if point.startswith("run.tak"):
        world.dies_at = "chat 0"
        await asyncio.to_thread(stage.die, agent)
        world.dies_at = None
    reached, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        reached.set()
        go_on.wait(30)

    with stage.open() as store:
        failpoint.arm(point, wait)
        task = asyncio.create_task(store.arun(agent, id=RUN))
        await asyncio.to_thread(reached.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        failpoint.disarm()
        go_on.set()
        await let_go(store)

        assert 1 == len((await store.arun(agent, id=RUN))[1])


async def test_cancellation_reaches_a_synchronous_agent_at_its_next_call(
    stage: Stage, world: World
) -> None:
    began, go_on = threading.Event(), threading.Event()

    @holdfast.step
    def chat(n: int) -> str:
        began.set()
        go_on.wait(30)
        return world.ask(f"chat {n}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return [chat(n) for n in range(3)]

    with stage.open() as store:
        task = asyncio.create_task(store.arun(agent, id=RUN))
        await asyncio.to_thread(began.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await let_go(store)
        assert ["chat 0"] == world.asked

        assert ["chat 0#1", "chat 1#1", "chat 2#1"] == await store.arun(agent, id=RUN)


async def _timeout(asked: Awaitable[str]) -> str:
    async with asyncio.timeout(0.02):
        return await asked


async def _wait_for(asked: Awaitable[str]) -> str:
    return await asyncio.wait_for(asked, 1.0)  # Before Python 3.12, in a task of its own.


@pytest.mark.parametrize("within", [_timeout, _wait_for])
def test_a_call_that_a_timeout_cut_off_is_not_asked_again_on_replay(
    stage: Stage, world: World, within: Callable[[Awaitable[str]], Awaitable[str]]
) -> None:
    is_dying = True

    @holdfast.step
    async def chat(what: str) -> str:
        world.ask(what)
        if what == "slow" and is_dying:
            await asyncio.sleep(60)
        return what

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        try:
            said = await within(chat("slow"))
        except TimeoutError:
            said = await chat("quick")
        if is_dying:
            raise Crash
        return said

    stage.die(agent)
    is_dying = False

    assert "quick" == stage.live(agent)
    assert ["slow", "quick"] == world.asked


@pytest.mark.parametrize("goes_on", ["the task", "the agent"])
def test_a_timeout_in_a_task_beside_the_agent_s_own_is_part_of_the_run(
    stage: Stage, world: World, goes_on: str
) -> None:
    is_dying = True

    @holdfast.step
    async def search(what: str) -> str:
        world.ask(what)
        if what == "slow" and is_dying:
            await asyncio.sleep(60)
        return what

    async def one(what: str) -> str:
        try:
            return await _timeout(search(what))
        except TimeoutError:
            return await search("instead") if goes_on == "the task" else "none"

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        found = [*await asyncio.gather(one("slow"), one("quick"))]
        await search(f"more on {' and '.join(found)}")
        if is_dying:
            raise Crash
        return found

    stage.die(agent)
    is_dying = False

    assert ["instead" if goes_on == "the task" else "none", "quick"] == stage.live(agent)
    assert [] == world.repeated


def test_a_step_that_an_error_cut_off_is_asked_again_once_that_does_not_come(
    stage: Stage, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.call.LINGER_S", 0.1)
    is_fixed = False

    @holdfast.step
    async def search(what: str) -> str:
        world.ask(what)
        if what == "bad" and not is_fixed:
            raise ConnectionError(what)
        if what == "slow" and not is_fixed:
            await asyncio.sleep(60)
        return what

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        try:
            async with asyncio.TaskGroup() as group:
                made = [group.create_task(search(what)) for what in ("slow", "bad")]
        finally:
            await search("log")
        return [task.result() for task in made]

    assert isinstance(stage.fault(agent), holdfast.RunFailed)
    is_fixed = True

    assert ["slow", "bad"] == stage.restart(agent)
    assert ["bad", "slow"] == world.repeated


def test_a_task_that_ended_with_the_life_is_asked_again(stage: Stage, world: World) -> None:
    life: list[asyncio.Task[Any]] = []

    @holdfast.step
    async def search(what: str) -> str:
        world.ask(what)
        if life and what == "slow":
            life.pop().cancel()
            await asyncio.sleep(60)
        return what

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        return [*await asyncio.gather(search("slow"), search("quick"))]

    async def cancelled() -> None:
        with stage.open() as store:
            life.append(asyncio.create_task(store.arun(agent, id=RUN)))
            await life[0]

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())

    assert ["slow", "quick"] == stage.live(agent)


def test_a_timeout_around_several_calls_is_waited_for_as_long_as_all_of_them_took(
    stage: Stage, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.call.LINGER_S", 0.3)
    is_dying = True

    @holdfast.step
    async def chat(what: str, wait_s: float = 0.0) -> str:
        world.ask(what)
        await asyncio.sleep(wait_s)
        return what

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        try:
            async with asyncio.timeout(0.6):
                await chat("long", 0.5)
                said = await chat("slow", 60)
        except TimeoutError:
            said = await chat("quick")
        if is_dying:
            raise Crash
        return said

    stage.die(agent)
    is_dying = False

    assert "quick" == stage.live(agent)
    assert world.asked[-1] == "quick"
    assert [] == world.repeated


def test_code_that_no_longer_has_the_timeout_is_told_so(
    stage: Stage, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.call.LINGER_S", 0.0)
    timeout: float | None = 0.02

    @holdfast.step
    async def chat(what: str) -> str:
        world.ask(what)
        if what == "slow":
            await asyncio.sleep(60)
        return what

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        try:
            async with asyncio.timeout(timeout):
                await chat("slow")
        except TimeoutError:
            await chat("quick")
        raise Crash

    stage.die(agent)
    timeout = None
    error = stage.fault(agent)

    assert isinstance(error, holdfast.Diverged)
    assert "cut off" in str(error)
    assert ["slow", "quick"] == world.asked


async def test_an_async_step_in_synchronous_hands_is_refused(stage: Stage) -> None:
    async def chat() -> str:
        return "never"

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        def ask() -> Any:  # noqa: ANN401
            return chat()

        return run.call(ask)

    with stage.open() as store, pytest.raises(holdfast.HoldfastError, match="nobody awaits"):
        await store.arun(agent, id=RUN)
