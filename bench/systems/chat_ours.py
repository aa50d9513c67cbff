"""Holdfast running the conversation: alone, beside bare SQLite, many at once, task after task."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from time import perf_counter_ns

import holdfast
from bench import conversation
from bench.job import Job, Message, Model, Seen, timed
from bench.systems.beside import BLOCK, DEFAULT, FRESH, GROWN, Floors

JOB = Job.from_argument()
MODEL = Model.of(JOB)
STORE = str(Path(JOB.directory) / "store")


@holdfast.step
def chat(messages: list[Message]) -> Message:
    """Ask the model."""
    return MODEL.reply(messages)


@holdfast.step
async def chat_async(messages: list[Message]) -> Message:
    """Ask the model from a task."""
    return MODEL.reply(messages)


def _begin(run: holdfast.Run, task: Message) -> None:
    run.state.setdefault("messages", [task])
    run.state.setdefault("variables", conversation.variables())


@holdfast.agent
def talk(run: holdfast.Run, task: Message, turns: int) -> int:
    """The conversation, as a user would write it."""
    _begin(run, task)
    messages, variables = run.state["messages"], run.state["variables"]
    for turn in run.turns():
        messages.append(conversation.user(MODEL, messages))
        messages.append(chat(messages))
        variables.update(conversation.changed(turn))
        if turn + 1 == turns:
            break
    return len(messages)


@holdfast.agent
async def talk_async(run: holdfast.Run, task: Message, turns: int) -> int:
    """The same as a coroutine."""
    _begin(run, task)
    messages, variables = run.state["messages"], run.state["variables"]
    async for turn in run.turns():
        messages.append(conversation.user(MODEL, messages))
        messages.append(await chat_async(messages))
        variables.update(conversation.changed(turn))
        if turn + 1 == turns:
            break
    return len(messages)


@holdfast.agent
def answer(run: holdfast.Run, task: Message, turns: int) -> int:
    """A task: one message a turn."""
    messages = run.state.setdefault("messages", [task])
    for turn in run.turns():
        messages.append(chat(messages))
        if turn + 1 == turns:
            break
    return len(messages)


def one(seen: Seen) -> None:
    """One run in this thread."""
    with holdfast.open(STORE) as store, timed(seen):
        store.run(talk, JOB.task(0), JOB.turns, id="run-0")


def beside(seen: Seen, names: Sequence[str] = (GROWN, FRESH, DEFAULT)) -> None:
    """One run; before every block of its turns, a block of bare commits of the same bytes."""
    bodies = list(conversation.added(MODEL, JOB.task(0), BLOCK * 8))
    floors = Floors(Path(JOB.directory) / "floors", chain.from_iterable(repeat(bodies)), names)
    turn_ns: list[int] = []
    marks: list[int] = []

    @holdfast.agent
    def interrupted(run: holdfast.Run, task: Message) -> None:
        _begin(run, task)
        messages, variables = run.state["messages"], run.state["variables"]
        for turn in run.turns():
            if turn % BLOCK == 0:
                floors.block()
                marks.clear()
            marks.append(perf_counter_ns())
            if len(marks) > 1:
                turn_ns.append(marks[-1] - marks[-2])
            messages.append(conversation.user(MODEL, messages))
            messages.append(chat(messages))
            variables.update(conversation.changed(turn))
            if turn + 1 == JOB.turns:
                break

    with holdfast.open(STORE) as store:
        store.run(interrupted, JOB.task(0), id="run-0")
    floors.close()
    seen |= {"ours": turn_ns} | dict(floors.ns)


def threads(seen: Seen) -> None:
    """Every run in a thread of its own."""
    with holdfast.open(STORE) as store:

        def start(number: int) -> None:
            store.run(talk, JOB.task(number), JOB.turns, id=f"run-{number}")

        with timed(seen), ThreadPoolExecutor(JOB.runs) as pool:
            list(pool.map(start, range(JOB.runs)))


def together(seen: Seen) -> None:
    """Every run in a task of its own."""

    async def gather() -> None:
        with holdfast.open(STORE) as store, timed(seen):
            runs = (
                store.arun(talk_async, JOB.task(number), JOB.turns, id=f"run-{number}")
                for number in range(JOB.runs)
            )
            await asyncio.gather(*runs)

    asyncio.run(gather())


def tasks(seen: Seen) -> None:
    """Short tasks, one after the other, in one store."""
    with holdfast.open(STORE) as store, timed(seen):
        for number in range(JOB.runs):
            store.run(answer, JOB.task(number), JOB.turns, id=f"task-{number}")


WAYS: dict[str, Callable[[Seen], None]] = {
    "one": one,
    "beside": beside,
    "beside one": partial(beside, names=(GROWN,)),
    "threads": threads,
    "asyncio": together,
    "tasks": tasks,
}


if __name__ == "__main__":
    seen: Seen = {}
    WAYS[JOB.what](seen)
    JOB.report(seen | {"turn_ns": MODEL.turn_ns()})
