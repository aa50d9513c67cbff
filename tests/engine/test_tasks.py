"""Tasks of an async agent that change lists between their questions, killed anywhere."""
# ruff: noqa: ANN401 agents return what the test looks at

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import pytest

import holdfast
from tests.engine.kit import RUN, Stage, World, moments

TURNS, TASKS, CALLS = 2, 2, 2
EXPECTED = sorted(
    f"chat {turn}.{task}.{call}"
    for turn in range(TURNS)
    for task in range(TASKS)
    for call in range(CALLS)
)


@dataclasses.dataclass
class Bot:
    notes: list[list[Any]] = dataclasses.field(default_factory=lambda: [[] for _ in range(TASKS)])


def writer(world: World, where: str, *, is_shared: bool = False) -> holdfast.Agent[..., Any]:
    """An agent whose tasks ask with a list, and append the answer to it, at the same time."""

    @holdfast.step
    async def chat(notes: list[Any], what: str) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"said": world.ask(f"chat {what}"), "knew": len(notes)}

    @holdfast.agent
    async def agent(run: holdfast.Run) -> Any:
        bot = Bot()
        if where == "attached":
            run.attach("bot", bot)
        else:
            run.state["bot"] = {"notes": bot.notes}

        def notes() -> list[list[Any]]:
            return bot.notes if where == "attached" else run.state["bot"]["notes"]

        async def write(turn: int, task: int) -> None:
            for call in range(CALLS):
                mine = notes()[0 if is_shared else task]
                mine.append(await chat(mine, f"{turn}.{task}.{call}"))

        async for turn in run.turns():
            async with asyncio.TaskGroup() as group:
                for task in range(TASKS):
                    group.create_task(write(turn, task))
            if turn == TURNS - 1:
                return [note["said"] for each in notes() for note in each]
        raise AssertionError

    return agent


def said(answers: list[str]) -> list[str]:
    return sorted(each.partition("#")[0] for each in answers)


@pytest.mark.parametrize("where", ["state", "attached"])
def test_tasks_with_lists_of_their_own_come_to_the_same_end_killed_anywhere(
    stage: Stage, world: World, where: str
) -> None:
    points = list(moments(stage, writer(world, where), outside=lambda: len(world.asked)))

    for name, then, asked in points:
        again = World()
        again.asked = world.asked[:asked]
        answers = then.live(writer(again, where))
        with then.open() as store:
            early = store.restore(f"{RUN}@0")[1]["bot"]["notes"]
            newest = store.restore(RUN)[1]["bot"]["notes"]

        assert EXPECTED == said(answers), name
        assert answers == [note["said"] for each in newest for note in each], name
        assert early == [each[:CALLS] for each in newest], name
        assert len(again.repeated) <= TASKS, name


def test_tasks_that_ask_with_what_others_change_go_on_or_say_that_they_cannot(
    stage: Stage, world: World
) -> None:
    agent = writer(world, "state", is_shared=True)

    for name, then, _ in moments(stage, agent, outside=lambda: None):
        answers = None
        with contextlib.suppress(holdfast.Diverged):
            answers = then.live(agent)
        if answers is None:
            answers = then.restart(agent, redo_turn=True)

        assert EXPECTED == said(answers), name


def test_an_ordinary_list_that_another_task_changes_is_named_with_what_to_do(
    stage: Stage, world: World
) -> None:
    with pytest.raises(holdfast.RunFailed) as failed:
        stage.live(writer(world, "attached", is_shared=True))

    group = failed.value.__cause__
    assert isinstance(group, ExceptionGroup)
    assert isinstance(group.exceptions[0], holdfast.ChangedInCall)
    assert "its argument notes (or a thread or task beside it did: give the call a copy then)" in (
        str(group.exceptions[0])
    )


def forgetful(world: World) -> holdfast.Agent[..., Any]:
    """An agent with a task that nobody awaits, and a generator that is left on the way."""

    @holdfast.step
    async def ask(what: str) -> str:
        return world.ask(what)

    async def answers(turn: int) -> AsyncIterator[str]:
        try:
            yield await ask(f"item {turn}")
        finally:
            await ask(f"end {turn}")

    @holdfast.agent
    async def agent(run: holdfast.Run) -> int:
        async for turn in run.turns():
            beside = asyncio.create_task(ask(f"beside {turn}"))
            async for _ in answers(turn):
                break
            await ask(f"own {turn}")
            if turn == 1:
                return beside.cancelling()
        raise AssertionError

    return agent


def test_tasks_that_nobody_awaits_ask_for_their_answers_before_their_turn_ends(
    stage: Stage, world: World
) -> None:
    points = list(moments(stage, forgetful(world), outside=lambda: len(world.asked)))

    for name, then, _ in points:
        assert 0 == then.live(forgetful(World())), name
