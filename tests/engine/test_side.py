"""Streams and children in tasks beside the agent's own that a timeout cut off."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

import holdfast
from tests.engine.kit import Crash, Stage, World

TIMEOUT_S = 1.0
"""Of a life that replays: it needs far less until it waits for the timeout."""


class Late:
    """A timeout that comes, in the first life, once what it is to cut off hangs."""

    def __init__(self) -> None:
        self.is_dying, self.comes_again = True, True
        self._limit: asyncio.Timeout | None = None

    def limit(self, what: str) -> asyncio.Timeout:
        if what != "slow":
            return asyncio.timeout(None)
        self._limit = asyncio.timeout(TIMEOUT_S if self.comes_again and not self.is_dying else None)
        return self._limit

    async def hang(self) -> None:
        if self.is_dying:
            assert self._limit is not None
            self._limit.reschedule(asyncio.get_running_loop().time())
            await asyncio.sleep(60)


class Source:
    """Streams of four items, of which the slow one hangs after `given`."""

    def __init__(self, world: World, late: Late, given: int) -> None:
        self.world, self.late, self.given = world, late, given

    async def whole(self, what: str) -> AsyncIterator[str]:
        self.world.ask(what)
        for at in range(4):
            if what == "slow" and at == self.given:
                await self.late.hang()
            yield f"{what}{at}"

    async def rest(self, what: str, prefix: list[str]) -> AsyncIterator[str]:
        async for item in self.whole(what):
            if item not in prefix:
                yield item


def reader(source: Source, fn: str) -> holdfast.Agent[[], Any]:
    """An agent that reads two streams beside each other and goes past a timeout of the slow one."""

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        async def read(what: str) -> list[str]:
            found: list[str] = []
            with contextlib.suppress(TimeoutError):
                async with source.late.limit(what):
                    async for item in run.stream(getattr(source, fn), what, every=1):
                        found += [item]
            return found

        found = await asyncio.gather(read("slow"), read("quick"))
        run.call(source.world.ask, "what is next")
        if source.late.is_dying:
            raise Crash
        return found[0]

    return agent


@pytest.mark.parametrize("fn", ["whole", "rest"])
@pytest.mark.parametrize("given", [0, 2])
def test_a_stream_that_a_timeout_cut_off_in_a_task_is_not_asked_again_on_replay(
    stage: Stage, world: World, fn: str, given: int
) -> None:
    late = Late()
    agent = reader(Source(world, late, given), fn)
    stage.die(agent)
    late.is_dying = False

    assert [f"slow{at}" for at in range(given)] == stage.live(agent)
    assert [] == world.repeated


@pytest.mark.parametrize(("fn", "given"), [("whole", 0), ("rest", 0), ("rest", 2)])
def test_a_stream_that_nothing_cuts_off_again_goes_on_behind_what_it_gave(
    stage: Stage, world: World, fn: str, given: int
) -> None:
    late = Late()
    agent = reader(Source(world, late, given), fn)
    stage.die(agent)
    late.is_dying = late.comes_again = False

    assert [f"slow{at}" for at in range(4)] == stage.live(agent)


def test_a_stream_that_would_give_its_items_twice_without_the_timeout_stops_as_diverged(
    stage: Stage, world: World
) -> None:
    late = Late()
    agent = reader(Source(world, late, 2), "whole")
    stage.die(agent)
    late.is_dying = late.comes_again = False

    with pytest.raises(holdfast.Diverged, match="cut off by a timeout"):
        stage.live(agent)
    assert [] == world.repeated


def parent(world: World, late: Late, goes_on: str) -> holdfast.Agent[[], Any]:
    """An agent with two children beside each other that goes past a timeout of the slow one."""

    @holdfast.step
    async def search(what: str) -> str:
        world.ask(what)
        if what == "slow":
            await late.hang()
        return what

    @holdfast.agent
    async def helper(run: holdfast.Run, what: str) -> str:
        return await search(what)

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        async def one(what: str) -> str:
            try:
                async with late.limit(what):
                    return await run.child(helper, what)
            except TimeoutError:
                return await search("instead") if goes_on == "the task" else "none"

        found = [*await asyncio.gather(one("slow"), one("quick"))]
        await search("what is next")
        if late.is_dying:
            raise Crash
        return found

    return agent


@pytest.mark.parametrize("goes_on", ["the task", "the agent"])
def test_a_child_that_a_timeout_cut_off_in_a_task_is_not_gone_on_with_on_replay(
    stage: Stage, world: World, goes_on: str
) -> None:
    late = Late()
    agent = parent(world, late, goes_on)
    stage.die(agent)
    late.is_dying = False

    assert ["instead" if goes_on == "the task" else "none", "quick"] == stage.live(agent)
    assert [] == world.repeated


def test_a_child_that_nothing_cuts_off_again_is_carried_to_its_end(
    stage: Stage, world: World
) -> None:
    late = Late()
    agent = parent(world, late, "the agent")
    stage.die(agent)
    late.is_dying = late.comes_again = False

    assert ["slow", "quick"] == stage.live(agent)
