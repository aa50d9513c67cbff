"""Code that asks something else than was recorded: told where and what, and nothing is lost."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import Crash, Stage, World

Body = Callable[[holdfast.Run], Any]


@holdfast.step
def chat(text: str, model: str = "m") -> str:
    return asked(f"chat {text}")


@holdfast.step
def search(text: str) -> str:
    return asked(f"search {text}")


@holdfast.effect(probe=lambda _: None)
def pay(order: str) -> str:
    return asked(f"pay {order}")


asked: Callable[[str], str] = str


@pytest.fixture(autouse=True)
def _world(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "asked", world.ask)


def in_turn(body: Body) -> Body:
    def turns(run: holdfast.Run) -> Any:  # noqa: ANN401
        for turn in run.turns():
            if turn == 1:
                return body(run)
        raise AssertionError

    return turns


def agent_of(body: Body) -> holdfast.Agent[[], Any]:
    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        return body(run)

    return agent


def dying(*calls: Callable[[], Any]) -> Body:
    def body(run: holdfast.Run) -> None:
        for call in calls:
            call()
        raise Crash

    return body


def asking(*calls: Callable[[], Any]) -> Body:
    return lambda _: [call() for call in calls]


OLD: tuple[Callable[[], str], ...] = (lambda: chat("hi"), lambda: search("kelp"), lambda: pay("o1"))


@pytest.mark.parametrize("where", ["before the first turn", "turn 1"])
@pytest.mark.parametrize(
    ("new", "recorded", "now", "at"),
    [
        ((lambda: search("hi"),), "chat(text='hi'", "search(text='hi')", "call 1"),
        ((lambda: chat("ho"),), "chat(text='hi'", "chat(text='ho'", "argument text"),
        ((lambda: chat("hi", "n"),), "model='m'", "model='n'", "argument model"),
        ((OLD[0], lambda: chat("hi")), "search(text='kelp')", "chat(text='hi'", "call 2"),
        ((OLD[0], lambda: pay("o2")), "search(text='kelp')", "pay(order='o2')", "call 2"),
        ((*OLD[:2], lambda: pay("o2")), "pay(order='o1')", "pay(order='o2')", "argument order"),
        ((lambda: pay("o9"), *OLD), "chat(text='hi'", "pay(order='o9')", "call 1"),
        (OLD[:2], "pay(order='o1')", "nothing more", "call 3"),
        (OLD[:1], "search(text='kelp')", "nothing more", "call 2"),
        ((), "chat(text='hi'", "nothing more", "call 1"),
    ],
    ids=range(10),
)
def test_the_first_difference_is_shown_and_nothing_is_overwritten(  # noqa: PLR0917 a table
    stage: Stage,
    world: World,
    where: str,
    new: tuple[Callable[[], str], ...],
    recorded: str,
    now: str,
    at: str,
) -> None:
    place: Callable[[Body], Body] = in_turn if where == "turn 1" else lambda body: body
    stage.die(agent_of(place(dying(*OLD))))
    before, said = stage.journal(), list(world.asked)

    error = stage.fault(agent_of(place(asking(*new))))

    assert isinstance(error, holdfast.Diverged)
    assert (recorded in error.recorded, now in error.asked) == (True, True)
    assert where in str(error)
    assert at in str(error)
    assert "redo-turn" in str(error)
    assert "run.now()" in str(error)
    assert said == world.asked
    assert before == stage.journal()[: len(before)]
    # That its loop was left may be noted too; it is void in the next life.
    after = [kind for kind in stage.kinds()[len(before) :] if kind != "LoopLeft"]
    assert ["Resumed", "Decided", "Failed"] == after
    assert holdfast.Status.DIVERGED is stage.info().status
    # With the old code the run goes on as if nothing had been.
    assert ["chat hi#1", "search kelp#1", "pay o1#1"] == stage.live(agent_of(place(asking(*OLD))))
    assert said == world.asked


def test_a_difference_that_short_forms_do_not_show_is_said_to_be_one(stage: Stage) -> None:
    long = "kelp " * 100
    stage.die(agent_of(dying(lambda: chat(f"{long}1"))))

    error = stage.fault(agent_of(asking(lambda: chat(f"{long}2"))))

    assert isinstance(error, holdfast.Diverged)
    assert error.recorded == error.asked
    assert "argument text (its content differs where the short forms" in str(error)


def test_more_calls_after_those_recorded_are_simply_new(stage: Stage, world: World) -> None:
    stage.die(agent_of(dying(*OLD)))

    result = stage.live(agent_of(asking(*OLD, lambda: chat("more"))))

    assert "chat more#1" == result[-1]
    assert 4 == len(world.asked)


def test_a_turn_that_ends_with_answers_left_is_told_before_anything_is_written(
    stage: Stage, world: World
) -> None:
    stage.die(agent_of(in_turn(dying(*OLD))))
    before = stage.journal()

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        for turn in run.turns():
            run.state["changed"] = turn
            if turn == 1:
                chat("hi")
            if turn == 2:
                return search("new")
        raise AssertionError

    agent.name = agent.__qualname__ = "agent_of.<locals>.agent"
    error = stage.fault(agent)

    assert isinstance(error, holdfast.Diverged)
    assert "turn 1, call 2" in str(error)
    assert "nothing more" in str(error)
    assert before == stage.journal()[: len(before)]
    assert 3 == len(world.asked)


def test_a_divergence_that_the_agent_swallows_still_stops_the_run(
    stage: Stage, world: World
) -> None:
    stage.die(agent_of(dying(*OLD)))

    def swallow(run: holdfast.Run) -> str:
        with contextlib.suppress(Exception):
            search("other")
        for call in OLD:
            with contextlib.suppress(Exception):
                call()
        return "as if nothing were"

    error = stage.fault(agent_of(swallow))

    assert isinstance(error, holdfast.Diverged)
    assert "search(text='other')" in error.asked
    assert 3 == len(world.asked)


@pytest.mark.parametrize("reading", ["now", "uuid", "random"])
def test_a_reading_that_moved_is_a_difference(stage: Stage, reading: str) -> None:
    def read(run: holdfast.Run) -> None:
        getattr(run, reading)()

    def old(run: holdfast.Run) -> None:
        read(run)
        chat("hi")
        raise Crash

    def new(run: holdfast.Run) -> None:
        chat("hi")

    stage.die(agent_of(old))
    error = stage.fault(agent_of(new))

    assert isinstance(error, holdfast.Diverged)
    assert f"run.{reading}()" in error.recorded


def test_a_new_argument_of_a_function_is_named(stage: Stage) -> None:
    def declare(is_new: bool) -> holdfast.Agent[[], Any]:
        if is_new:

            @holdfast.step
            def ask(text: str, mood: str = "calm") -> str:
                return text
        else:

            @holdfast.step
            def ask(text: str) -> str:
                return text

        return agent_of(asking(lambda: ask("hi")) if is_new else dying(lambda: ask("hi")))

    stage.die(declare(is_new=False))
    error = stage.fault(declare(is_new=True))

    assert isinstance(error, holdfast.Diverged)
    assert "argument mood" in str(error)


async def gathered(*texts: str) -> list[str]:
    async def one(text: str) -> str:
        return await asyncio.to_thread(search, text)

    return list(await asyncio.gather(*map(one, texts)))


def concurrent_agent(is_dying: bool, *texts: str, then: str = "") -> holdfast.Agent[[], Any]:
    @holdfast.agent
    async def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        found = await gathered(*texts)
        if is_dying:
            raise Crash
        if then:
            found.append(pay(then))
        return found

    return agent


@pytest.mark.parametrize(
    ("new", "recorded"),
    [(("a", "b"), "text='c'"), (("a", "b", "x"), "text='c'"), (("c", "b"), "text='a'")],
)
def test_concurrent_code_is_told_at_its_end(
    stage: Stage, world: World, new: tuple[str, ...], recorded: str
) -> None:
    stage.die(concurrent_agent(True, "a", "b", "c"))
    before = stage.journal()

    error = stage.fault(concurrent_agent(False, *new))

    assert isinstance(error, holdfast.Diverged)
    assert recorded in error.recorded
    assert before == stage.journal()[: len(before)]
    assert ["search a#1", "search b#1", "search c#1"] == stage.live(
        concurrent_agent(False, "a", "b", "c")
    )


def test_an_effect_is_not_done_while_recorded_answers_beside_it_are_not_asked_for(
    stage: Stage, world: World
) -> None:
    stage.clock = ManualClock()
    stage.die(concurrent_agent(True, "a", "b"))

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        worker = threading.Thread(target=run.wrap(search), args=("a",))
        worker.start()
        worker.join()
        return pay("o1")

    agent.name = "concurrent_agent.<locals>.agent"
    error = stage.fault(agent)

    assert isinstance(error, holdfast.Diverged)
    assert "text='b'" in error.recorded
    assert "pay(order='o1')" in error.asked
    assert "pay o1" not in world.asked


def test_an_effect_waits_for_siblings_that_ask_a_moment_later(stage: Stage, world: World) -> None:
    def agent(is_dying: bool) -> holdfast.Agent[[], Any]:
        @holdfast.agent
        def agent(run: holdfast.Run) -> list[str]:
            found: list[str] = []
            held = threading.Event()

            def late() -> None:
                held.wait(30)
                found.append(search("late"))

            worker = threading.Thread(target=run.wrap(late))
            worker.start()
            if is_dying:
                held.set()
                worker.join()
                raise Crash
            threading.Timer(0.05, held.set).start()
            found.append(pay("o1"))
            worker.join()
            return found

        return agent

    stage.die(agent(is_dying=True))

    assert ["search late#1", "pay o1#1"] == stage.live(agent(is_dying=False))
    assert ["search late", "pay o1"] == world.asked
