"""Cancelled while something is recorded: the next life goes the same way as this one."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import holdfast
from holdfast import failpoint
from tests.engine.kit import Crash, Stage, World

LATE_S = 0.5
"""When the timeout comes in the second life: whatever is asked anew there is done before."""

Strike = Callable[[], None]
Asked = Callable[[Any], Any]


@asynccontextmanager
async def by_timeout() -> AsyncIterator[Strike]:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as waiting:
        yield lambda: waiting.reschedule(loop.time() - 1)


@asynccontextmanager
async def by_cancel() -> AsyncIterator[Strike]:
    """As a library does it that cancels the task of its caller, and takes that back."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    handle: list[asyncio.Handle] = []
    try:
        yield lambda: handle.append(loop.call_soon(task.cancel))
    except asyncio.CancelledError:
        raise TimeoutError from None
    finally:
        for each in handle:
            each.cancel()
        while task.cancelling():
            task.uncancel()


WAYS = {"timeout": by_timeout, "cancel": by_cancel}


def strike_at(point: str, strike: Callable[[], object]) -> None:
    def once() -> None:
        failpoint.disarm()
        strike()

    failpoint.arm(point, once)


class Asker:
    """An agent that asks something under a timeout, tells what came of it, and dies once."""

    def __init__(self, world: World, way: str, point: str | None, what: Asked) -> None:
        self.seen: list[object] = []
        self.strike: Strike = lambda: None
        self.is_dying = True

        @holdfast.effect
        async def tell(said: object) -> str:
            return world.ask(f"tell {said}")

        @holdfast.agent
        async def agent(run: holdfast.Run) -> str:
            async for _ in run.turns():
                try:
                    async with WAYS[way]() as self.strike:
                        if not self.is_dying:
                            late = asyncio.get_running_loop().call_later(LATE_S, self.strike)
                        elif point is not None:
                            strike_at(point, self.strike)
                        said = await what(run)
                        if not self.is_dying:
                            late.cancel()
                except TimeoutError:
                    said = "cut"
                self.seen.append(said)
                told = await tell(said)
                if self.is_dying:
                    raise Crash
                return told
            raise AssertionError

        self.agent = agent


def asked_of(kind: str, world: World) -> Asked:
    @holdfast.step
    async def step() -> str:
        return world.ask("step")

    @holdfast.effect
    async def effect() -> str:
        return world.ask("effect")

    @holdfast.agent
    async def child(run: holdfast.Run) -> str:
        return world.ask("child")

    async def words() -> AsyncIterator[str]:
        for n in range(3):
            await asyncio.sleep(0)
            yield world.ask(f"word {n}")

    async def stream(run: holdfast.Run) -> list[str]:
        return [word async for word in run.stream(words, every=2)]

    kinds: dict[str, Asked] = {
        "step": lambda _: step(),
        "effect": lambda _: effect(),
        "child": lambda run: run.child(child),
        "stream": stream,
    }
    return kinds[kind]


@pytest.mark.parametrize("durability", ["durable", "bounded", "async"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("point", "is_cut"),
    [
        ("step.called", False),
        ("step.recording", False),
        ("effect.intending", True),
        ("effect.called", False),
        ("effect.recording", False),
        ("child.beginning", True),
        ("child.recording", False),
        ("stream.recording", True),
        ("stream.ending", False),
    ],
)
def test_whoever_is_cancelled_while_an_answer_is_recorded_gets_it_first(
    stage: Stage, world: World, way: str, point: str, durability: str, *, is_cut: bool
) -> None:
    asker = Asker(world, way, point, asked_of(point.partition(".")[0], world))

    stage.die(asker.agent, durability=durability)
    asker.is_dying = False
    asked = list(world.asked)
    told = stage.live(asker.agent, durability=durability)

    assert asker.seen[0] == asker.seen[1]
    # What is recorded before the cancellation comes is begun, and then it is handed over too.
    assert is_cut or asker.seen[0] != "cut"
    assert f"tell {asker.seen[0]}#1" == told
    assert asked == world.asked


@pytest.mark.parametrize("way", WAYS)
def test_calls_that_wait_for_nothing_but_their_records_do_not_put_a_timeout_off(
    stage: Stage, world: World, way: str
) -> None:
    @holdfast.step
    async def chat(n: int) -> str:
        return world.ask(f"chat {n}")

    async def many(run: holdfast.Run) -> None:
        for n in range(20):
            await chat(n)

    asker = Asker(world, way, "step.recording", many)

    stage.die(asker.agent)
    asker.is_dying = False

    assert "tell cut#1" == stage.live(asker.agent)
    assert "tell cut" == world.asked[-1]
    assert len(set(world.asked)) == len(world.asked) < 20


def test_of_two_timeouts_that_come_while_an_answer_is_recorded_the_outer_one_still_ends_its_block(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    async def chat(n: int) -> str:
        return world.ask(f"chat {n}")

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        said = ""
        try:
            async with by_timeout() as outer:
                async with by_timeout() as inner:
                    strike_at("step.recording", lambda: (inner(), outer()))
                    said = await chat(0)
                await asyncio.sleep(60)
        except TimeoutError:
            return said + await chat(1)
        raise AssertionError

    assert "chat 0#1chat 1#1" == stage.live(agent)


@pytest.mark.parametrize("kind", ["step", "effect", "stream"])
def test_a_timeout_between_two_attempts_is_not_a_third_way_on_replay(
    stage: Stage, world: World, kind: str
) -> None:
    retry = holdfast.Retry(attempts=2, on=Exception)

    def answer() -> str:
        if asker.is_dying:
            asker.strike()  # It comes at the next wait, which is the one before the repetition.
            raise holdfast.NotDone(world.ask("busy"))
        return world.ask("late")

    @holdfast.step(retry=retry)
    async def step() -> str:
        return answer()

    @holdfast.effect(retry=retry)
    async def effect() -> str:
        return answer()

    async def words() -> AsyncIterator[str]:
        yield answer()

    async def what(run: holdfast.Run) -> Any:  # noqa: ANN401 the kind's own
        if kind == "stream":
            return [word async for word in run.stream(words, retry=retry)]
        return await (step() if kind == "step" else effect())

    asker = Asker(world, "timeout", None, what)

    stage.die(asker.agent)
    asker.is_dying = False

    assert "tell cut#1" == stage.live(asker.agent)
    assert ["busy", "tell cut"] == world.asked


def test_a_child_that_a_timeout_cut_off_is_not_gone_on_with_by_code_that_went_on_without_it(
    stage: Stage, world: World
) -> None:
    @holdfast.agent
    async def child(run: holdfast.Run) -> str:
        if asker.is_dying:
            asker.strike()
            await asyncio.sleep(60)
        return world.ask("child")

    asker = Asker(world, "timeout", None, lambda run: run.child(child))

    stage.die(asker.agent)
    asker.is_dying = False

    assert "tell cut#1" == stage.live(asker.agent)
    assert ["tell cut"] == world.asked


def test_an_effect_whose_probe_a_timeout_cut_off_is_in_doubt(stage: Stage, world: World) -> None:
    async def probe() -> None:
        asker.strike()
        await asyncio.sleep(60)

    @holdfast.effect(probe=probe)
    async def pay() -> str:
        world.ask("pay")
        raise Crash

    asker = Asker(world, "timeout", None, lambda _: pay())

    stage.die(asker.agent)
    error = stage.fault(asker.agent)

    assert isinstance(error, holdfast.InDoubt)
    assert ["pay"] == world.asked


def test_a_timeout_through_a_finally_is_not_the_end_where_the_life_ends_later(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    async def log() -> str:
        return world.ask("log")

    async def what(run: holdfast.Run) -> str:
        try:
            return await slow()
        finally:
            await log()

    @holdfast.step
    async def slow() -> str:
        world.ask("slow")
        asker.strike()
        await asyncio.sleep(60)
        return "late"

    asker = Asker(world, "timeout", None, what)
    stage.die(asker.agent)
    asker.is_dying = False

    assert "tell cut#1" == stage.live(asker.agent)
    assert ["slow", "log", "tell cut"] == world.asked
