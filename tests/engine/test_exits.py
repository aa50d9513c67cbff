"""A life that ends amid code with a `finally`, or goes on after a Ctrl-C that the code catches."""
# ruff: noqa: ARG001, ARG002 an agent takes its run first, needed or not

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import holdfast
from holdfast import failpoint
from tests.engine.kit import RUN, Crash, Stage, World


def test_what_belongs_to_the_end_is_not_done_when_ctrl_c_takes_the_code_down(
    stage: Stage, world: World
) -> None:
    """The run is not over: what stands in a `finally` is for the life that comes to it."""

    @holdfast.step
    def think() -> str:
        if "think" not in world.asked:
            world.ask("think")
            raise KeyboardInterrupt
        return world.ask("think")

    @holdfast.step
    def more() -> str:
        return world.ask("more")

    @holdfast.effect
    def release() -> str:
        return world.ask("release")

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        for _ in run.turns():
            try:
                return [think(), more()]
            finally:
                release()
        raise AssertionError

    try:
        stage.live(agent)
    except KeyboardInterrupt:  # It is around the next life, and nothing to that one.
        assert ["think#2", "more#1"] == stage.live(agent)

    assert ["think", "think", "more", "release"] == world.asked


def test_a_life_that_was_cancelled_is_gone_on_with_whatever_it_did_on_the_way_out(
    stage: Stage, world: World
) -> None:
    life: list[asyncio.Task[Any]] = []

    @holdfast.step
    async def think() -> str:
        if "think" not in world.asked:
            world.ask("think")
            life[0].cancel()
            await asyncio.sleep(60)
        return world.ask("think")

    @holdfast.step
    async def more() -> str:
        return world.ask("more")

    @holdfast.step
    async def log() -> str:
        return world.ask("log")

    @holdfast.effect
    async def release() -> str:
        return world.ask("release")

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        async for _ in run.turns():
            try:
                return [await think(), await more()]
            except asyncio.CancelledError:
                await log()
                raise
            finally:
                await release()
        raise AssertionError

    async def cancelled() -> None:
        with stage.open() as store:
            life.append(asyncio.create_task(store.arun(agent, id=RUN)))
            await life[0]

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())

    assert ["think#2", "more#1"] == stage.live(agent)
    assert ["think", "log", "release", "think", "more"] == world.asked


class Leaver:
    """A run that is cancelled at a place of its code, and asks something on the way out."""

    def __init__(self, world: World, stage: Stage) -> None:
        self.world, self.stage = world, stage
        self.life: list[asyncio.Task[Any]] = []
        self.is_first = True

        @holdfast.step
        async def ask(what: str) -> str:
            return world.ask(what)

        @holdfast.effect
        async def pay(what: str) -> str:
            return world.ask(what)

        self.ask, self.pay = ask, pay

    async def wait(self) -> None:
        """No recorded call: nothing tells of it but what comes after."""
        if self.is_first:
            self.is_first = False
            self.life[0].cancel()
            await asyncio.sleep(60)

    def _cancel_once(self) -> None:
        failpoint.disarm()
        self.life[0].cancel()

    async def at_a_wait(self, run: holdfast.Run) -> None:
        await self.ask("before")
        await self.wait()

    async def before_an_effect(self, run: holdfast.Run) -> None:
        if self.is_first:
            self.is_first = False
            failpoint.arm("effect.intending", self._cancel_once)
        await self.pay("bill")

    async def in_a_section(self, run: holdfast.Run) -> None:
        with run.critical("move"):
            await self.pay("move")
            await self.wait()

    async def beside(self, run: holdfast.Run) -> None:
        async def one(n: int) -> None:
            try:
                await (self.wait() if n else asyncio.sleep(0))
                await self.pay(f"bill {n}")
            finally:
                await self.ask(f"log {n}")

        await asyncio.gather(one(0), one(1))

    async def in_wait_for(self, run: holdfast.Run) -> None:
        """Before Python 3.12 that is a task of its own, for which the agent's own waits."""

        async def one() -> None:
            try:
                await self.ask("before")
                await self.wait()
            finally:
                await self.ask("log")

        await asyncio.wait_for(one(), 60)

    def is_cut(self, agent: holdfast.Agent[..., Any]) -> bool:
        async def live() -> None:
            with self.stage.open() as store:
                self.life.append(asyncio.create_task(store.arun(agent, id=RUN)))
                await self.life[0]

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(live())
        return not self.is_first


PLACES = [
    *(Leaver.at_a_wait, Leaver.before_an_effect, Leaver.in_a_section, Leaver.beside),
    Leaver.in_wait_for,
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("is_outside", [False, True])
def test_wherever_a_life_is_cancelled_the_next_one_goes_on_from_there(
    stage: Stage, world: World, place: Callable[..., Any], *, is_outside: bool
) -> None:
    leaver = Leaver(world, stage)

    async def work(run: holdfast.Run) -> str:
        try:
            await place(leaver, run)
            return await leaver.ask("more")
        except asyncio.CancelledError:
            await asyncio.gather(leaver.ask("note 0"), leaver.ask("note 1"))
            raise
        finally:
            await leaver.pay("release")

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        if is_outside:
            return await work(run)
        async for _ in run.turns():
            return await work(run)
        raise AssertionError

    assert leaver.is_cut(agent)
    assert "more#1" == stage.live(agent)
    assert len(set(world.asked)) == len(world.asked)
    assert {"note 0", "note 1", "release"} < set(world.asked)


def test_what_was_asked_on_the_way_out_stays_left_out_after_later_turns(
    stage: Stage, world: World
) -> None:
    leaver = Leaver(world, stage)
    is_dying = [True]

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        try:
            await leaver.wait()
        except asyncio.CancelledError:
            await leaver.ask("note")
            raise
        async for turn in run.turns():
            if turn == 70:
                break
            await leaver.ask(f"turn {turn}")
            if turn == 69 and is_dying.pop():
                raise Crash
        return "done"

    assert leaver.is_cut(agent)
    stage.die(agent)
    is_dying.append(False)
    assert "done" == stage.live(agent)


def test_a_second_ctrl_c_on_the_way_out_changes_nothing(stage: Stage, world: World) -> None:
    leaver = Leaver(world, stage)

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        try:
            await leaver.wait()
            return await leaver.ask("more")
        finally:
            await leaver.pay("release")
            if leaver.life and not leaver.life[0].cancelling() > 1:
                leaver.life[0].cancel()
                await asyncio.sleep(60)

    assert leaver.is_cut(agent)
    leaver.life.clear()
    assert "more#1" == stage.live(agent)
    assert ["release", "more"] == world.asked


def interrupted_at(kind: str, world: World) -> Callable[[holdfast.Run], Any]:
    """Something asked by a synchronous agent; Ctrl-C comes the first time."""

    def answer() -> str:
        if world.asked.count(kind) == 0:
            world.ask(kind)
            raise KeyboardInterrupt
        return world.ask(kind)

    @holdfast.step
    def step() -> str:
        return answer()

    @holdfast.agent
    def child(run: holdfast.Run) -> str:
        return answer()

    def words() -> Iterator[str]:
        yield "one"
        yield answer()

    kinds: dict[str, Callable[[holdfast.Run], Any]] = {
        "step": lambda _: step(),
        "child": lambda run: run.child(child),
        "stream": lambda run: list(run.stream(words)),
    }
    return kinds[kind]


@pytest.mark.parametrize("kind", ["step", "child", "stream"])
def test_whoever_catches_ctrl_c_and_goes_on_goes_the_same_way_in_the_next_life(
    stage: Stage, world: World, kind: str
) -> None:
    what = interrupted_at(kind, world)
    is_dying = [True, False]

    @holdfast.step
    def log() -> str:
        return world.ask("log")

    @holdfast.effect
    def tell(said: str) -> str:
        return world.ask(f"tell {said}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        for _ in run.turns():
            try:
                said = str(what(run))
            except KeyboardInterrupt:
                said = "interrupted"
                with contextlib.suppress(KeyboardInterrupt):
                    log()  # Inside the block nothing is asked.
            told = tell(said)
            if is_dying.pop(0):
                raise Crash
            return told
        raise AssertionError

    stage.die(agent)
    assert "tell interrupted#1" == stage.live(agent)
    assert [kind, "tell interrupted"] == world.asked


@pytest.mark.parametrize("kind", ["step", "child", "stream"])
def test_what_ctrl_c_cut_off_is_asked_again_where_the_life_ended_with_it(
    stage: Stage, world: World, kind: str
) -> None:
    what = interrupted_at(kind, world)

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        for _ in run.turns():
            return str(what(run))
        raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        stage.live(agent)

    assert f"{kind}#2" in stage.live(agent)
    assert [kind, kind] == world.asked
