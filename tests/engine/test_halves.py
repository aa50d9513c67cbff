"""A critical section that a cancellation leaves: taken back where the code goes on without it."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

import holdfast
from holdfast.model.journal import Aborted, Undone
from tests.engine.kit import RUN, Crash, Stage, World, moments

LATE_S = 0.5
"""When the cancellation comes in a life that is led through what is recorded of the block."""


class Bank:
    """A world that can be changed back, and a tool that never answers."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.is_slow, self.is_known = True, False
        self.strike: Callable[[], object] = lambda: None

        def back(_outcome: str, amount: int) -> None:
            self.log.append(f"back {amount}")

        def moved(amount: int) -> str | None:
            is_done = self.log.count(f"move {amount}") > self.log.count(f"back {amount}")
            return f"moved {amount}" if is_done else None

        @holdfast.effect(undo=back, probe=moved, key="amount")
        async def move(amount: int) -> str:
            self.log.append(f"move {amount}")
            return f"moved {amount}"

        @holdfast.step
        async def wait() -> str:
            if self.is_slow:
                self.strike()
                await asyncio.sleep(60)
            return "came"

        def told(what: str) -> str | None:
            return f"told {what}" if f"tell {what}" in self.log else None

        @holdfast.effect(probe=told, key="what")
        async def tell(what: str) -> str:
            self.log.append(f"tell {what}")
            return f"told {what}"

        self.move, self.wait, self.tell = move, wait, tell

    def strike_by(self, strike: Callable[[], object]) -> None:
        """How what waits is cut off: when it is asked, or a little later if it will not be."""
        self.strike = strike
        if self.is_known:
            asyncio.get_running_loop().call_later(LATE_S, strike)

    async def block(self, run: holdfast.Run) -> None:
        """What is cut off in the middle."""
        with run.critical("transfer"):
            run.state["moved"].append(await self.move(5))
            await self.wait()
            run.state["moved"].append(await self.move(7))


async def by_timeout(bank: Bank, run: holdfast.Run) -> None:
    async with asyncio.timeout(None) as waiting:
        bank.strike_by(lambda: waiting.reschedule(0))
        await bank.block(run)


async def by_task(bank: Bank, run: holdfast.Run) -> None:
    """As `asyncio.wait_for` does it before Python 3.12."""
    task = asyncio.create_task(bank.block(run))
    bank.strike_by(task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        raise TimeoutError from None


async def by_group(bank: Bank, run: holdfast.Run) -> None:
    """Another task of the group fails."""
    struck = asyncio.Event()
    bank.strike_by(struck.set)

    async def fail() -> None:
        await struck.wait()
        raise TimeoutError

    with contextlib.suppress(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(bank.block(run))
            group.create_task(fail())
    raise TimeoutError


async def by_cancel(bank: Bank, run: holdfast.Run) -> None:
    """Cancelled and caught, and nobody says that it was meant so."""
    task = asyncio.current_task()
    assert task is not None
    bank.strike_by(task.cancel)
    try:
        await bank.block(run)
    except asyncio.CancelledError:
        raise TimeoutError from None


Way = Callable[[Bank, holdfast.Run], Any]
WAYS = [by_timeout, by_task, by_group, by_cancel]


def mover(bank: Bank, way: Way) -> holdfast.Agent[..., Any]:
    @holdfast.agent
    async def mover(run: holdfast.Run) -> Any:  # noqa: ANN401 plain containers
        run.state["moved"] = ["none"]
        async for turn in run.turns():
            if turn == 1:
                break
            try:
                await way(bank, run)
            except TimeoutError:
                run.state["moved"].append("cut")
                run.state["moved"].append(await bank.tell("cut"))
        return holdfast.plain(run.state["moved"])

    return mover


@pytest.mark.parametrize("way", WAYS)
def test_code_that_goes_on_after_a_cancellation_finds_the_section_taken_back(
    stage: Stage, way: Way
) -> None:
    bank = Bank()

    assert ["none", "cut", "told cut"] == stage.live(mover(bank, way))
    assert ["move 5", "back 5", "tell cut"] == bank.log
    assert ["undone"] == [each.how for each in stage.journal() if isinstance(each, Undone)]


@pytest.mark.parametrize("way", [by_timeout, by_group])
def test_killed_at_any_moment_it_is_taken_back_once_and_the_code_goes_on(
    stage: Stage, way: Way
) -> None:
    bank = Bank()
    agent = mover(bank, way)
    copies = list(moments(stage, agent, outside=lambda: list(bank.log)))
    begun = [name for name, _, _ in copies].index("critical.aborting")

    for name, copy, before in copies[begun:]:
        if name.partition(".")[0] not in {"critical", "undo", "effect"}:
            continue
        bank.log[:] = before
        bank.is_known = any(isinstance(entry, Aborted) for entry in copy.journal())
        assert ["none", "cut", "told cut"] == copy.live(agent), name
        assert ["move 5", "back 5", "tell cut"] == bank.log, name
        assert 1 == sum(isinstance(entry, Aborted) for entry in copy.journal()), name


def test_where_the_life_ends_with_the_cancellation_the_restart_goes_on_inside(stage: Stage) -> None:
    bank = Bank()

    @holdfast.agent
    async def agent(run: holdfast.Run) -> Any:  # noqa: ANN401 plain containers
        run.state["moved"] = ["none"]
        async for _ in run.turns():
            await bank.block(run)
            break
        return holdfast.plain(run.state["moved"])

    async def cut() -> None:
        with stage.open() as store:
            life = asyncio.create_task(store.arun(agent, id=RUN))
            bank.strike = life.cancel
            await life

    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(cut())
    bank.is_slow = False

    assert ["none", "moved 5", "moved 7"] == stage.live(agent)
    assert ["move 5", "move 7"] == bank.log


def test_a_timeout_that_nobody_catches_fails_the_run_and_the_section_is_taken_back(
    stage: Stage,
) -> None:
    bank = Bank()

    @holdfast.agent
    async def agent(run: holdfast.Run) -> None:
        run.state["moved"] = []
        await by_timeout(bank, run)

    assert isinstance(stage.fault(agent).__cause__, TimeoutError)
    assert ["move 5", "back 5"] == bank.log


def test_what_became_of_the_effects_is_told_once_the_timeout_has_been_caught(stage: Stage) -> None:
    bank = Bank()

    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        section = run.critical("transfer")
        try:
            async with asyncio.timeout(None) as waiting:
                bank.strike = lambda: waiting.reschedule(0)
                with section:
                    await bank.move(5)
                    await bank.wait()
        except TimeoutError:
            return [each.how for each in section.effects]
        return []

    assert ["undone"] == stage.live(agent)


def test_a_section_that_was_cut_off_and_now_is_not_stops_the_run_before_anything_new(
    stage: Stage,
) -> None:
    bank = Bank()

    @holdfast.agent
    async def agent(run: holdfast.Run) -> None:
        run.state["moved"] = []
        async for _ in run.turns():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None) as waiting:
                    with run.critical("transfer"):
                        await bank.move(5)
                        if bank.is_slow:
                            waiting.reschedule(0)
                            await asyncio.sleep(60)
            await bank.tell("cut")
            if bank.is_slow:
                raise Crash

    stage.die(agent)
    bank.is_slow = False
    error = stage.fault(agent)

    assert isinstance(error, holdfast.Diverged)
    assert "transfer, cut off by a timeout" in str(error)
    assert ["move 5", "back 5", "tell cut"] == bank.log


def test_ctrl_c_that_a_synchronous_agent_goes_past_takes_the_section_back(
    stage: Stage, world: World
) -> None:
    @holdfast.effect(undo=lambda _outcome: world.ask("back"))
    def move() -> str:
        return world.ask("move")

    def press() -> NoReturn:
        raise KeyboardInterrupt

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401 plain containers
        run.state["moved"] = ["none"]
        try:
            with run.critical("transfer"):
                run.state["moved"].append(move())
                press()
        except KeyboardInterrupt:
            return holdfast.plain(run.state["moved"])

    assert ["none"] == stage.live(agent)
    assert ["move", "back"] == world.asked


def test_a_block_that_was_cut_off_at_no_recorded_call_waits_for_the_timeout_again(
    stage: Stage,
) -> None:
    bank = Bank()

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        async for _ in run.turns():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None) as waiting:
                    bank.strike_by(lambda: waiting.reschedule(0))
                    with run.critical("transfer"):
                        await bank.move(5)
                        if not bank.is_known:
                            bank.strike()
                            await asyncio.sleep(60)
                        await bank.move(7)
            told = await bank.tell("cut")
            if not bank.is_known:
                raise Crash
            return told
        raise AssertionError

    stage.die(agent)
    bank.is_known = True

    assert "told cut" == stage.live(agent)
    assert ["move 5", "back 5", "tell cut"] == bank.log


@pytest.mark.parametrize("is_asked", [False, True])
def test_a_timeout_that_ended_the_run_ends_its_restart_too_until_the_turn_is_run_anew(
    stage: Stage, *, is_asked: bool
) -> None:
    bank = Bank()

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        async for _ in run.turns():
            try:
                async with asyncio.timeout(None) as waiting:
                    bank.strike_by(lambda: waiting.reschedule(0))
                    with run.critical("transfer"):
                        await bank.move(5)
                        if bank.is_slow:
                            bank.strike()
                            await asyncio.sleep(60)
                        return await bank.move(7)
            finally:
                if is_asked:
                    await bank.tell("over")
        raise AssertionError

    told = ["tell over"] if is_asked else []
    assert isinstance(stage.fault(agent).__cause__, TimeoutError)
    bank.is_slow, bank.is_known = False, True
    with pytest.raises(holdfast.RunFailed, match="TimeoutError"):
        stage.restart(agent)
    assert ["move 5", "back 5", *told] == bank.log

    assert "moved 7" == stage.restart(agent, redo_turn=True)
    assert ["move 5", "back 5", *told, "move 5", "move 7"] == bank.log
