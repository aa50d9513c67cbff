"""Holdfast: the loop of its own front page, alone, in threads, in tasks, in many processes."""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter_ns

import holdfast
from bench.job import Job, Message, Model, Seen, timed

JOB = Job.from_argument()
MODEL = Model.of(JOB)
RUNS_AT_ONCE = 500


@holdfast.step
def chat(messages: list[Message]) -> Message:
    """Ask the model."""
    return MODEL.reply(messages)


@holdfast.step
async def chat_async(messages: list[Message]) -> Message:
    """Ask the model from a task."""
    return MODEL.reply(messages)


@holdfast.agent
def chatter(run: holdfast.Run, task: Message, turns: int) -> int:
    """Ask, append the answer, again until `turns` answers are there."""
    run.state.setdefault("messages", [task])
    for _turn in run.turns():
        reply = chat(run.state["messages"])
        run.state["messages"].append(reply)
        if len(run.state["messages"]) > turns:
            break
    return len(run.state["messages"])


@holdfast.agent
async def chatter_async(run: holdfast.Run, task: Message, turns: int) -> int:
    """The same as a coroutine."""
    run.state.setdefault("messages", [task])
    async for _turn in run.turns():
        reply = await chat_async(run.state["messages"])
        run.state["messages"].append(reply)
        if len(run.state["messages"]) > turns:
            break
    return len(run.state["messages"])


@holdfast.agent
async def trivial(_run: holdfast.Run, number: int) -> int:
    """Make a run that has an id, arguments and a result."""
    return number


def one(seen: Seen) -> None:
    """One run in this thread."""
    with holdfast.open(JOB.directory) as store, timed(seen):
        store.run(chatter, JOB.task(0), JOB.turns, id="run-0")


def threads(seen: Seen) -> None:
    """Every run in a thread of its own."""
    with holdfast.open(JOB.directory) as store:

        def start(number: int) -> None:
            store.run(chatter, JOB.task(number), JOB.turns, id=f"run-{number}")

        with timed(seen), ThreadPoolExecutor(JOB.runs) as pool:
            list(pool.map(start, range(JOB.runs)))


def tasks(seen: Seen) -> None:
    """Every run in a task of its own."""

    async def gather() -> None:
        with holdfast.open(JOB.directory) as store, timed(seen):
            runs = (
                store.arun(chatter_async, JOB.task(number), JOB.turns, id=f"run-{number}")
                for number in range(JOB.runs)
            )
            await asyncio.gather(*runs)

    asyncio.run(gather())


def share(seen: Seen) -> None:
    """One run of a store that other processes use too, begun when the parent says so."""
    with holdfast.open(JOB.directory) as store:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        with timed(seen):
            store.run(chatter, JOB.task(0), JOB.turns, id=f"run-{JOB.first_run}")


def fill(seen: Seen) -> None:
    """Put `runs` finished runs into a store."""

    async def gather() -> None:
        with holdfast.open(JOB.directory) as store, timed(seen):
            for first in range(0, JOB.runs, RUNS_AT_ONCE):
                numbers = range(first, min(first + RUNS_AT_ONCE, JOB.runs))
                runs = (store.arun(trivial, number, id=f"run-{number}") for number in numbers)
                await asyncio.gather(*runs)

    asyncio.run(gather())


def look(seen: Seen) -> None:
    """Open a store and list its newest runs, each for the first time in this process."""
    begin = perf_counter_ns()
    store = holdfast.open(JOB.directory)
    opened = perf_counter_ns()
    listed = list(store.runs(limit=50))
    ended = perf_counter_ns()
    store.close()
    seen |= {"open_ns": opened - begin, "list_ns": ended - opened, "listed": len(listed)}


WAYS: dict[str, Callable[[Seen], None]] = {
    "one": one,
    "threads": threads,
    "asyncio": tasks,
    "share": share,
    "fill": fill,
    "look": look,
}


if __name__ == "__main__":
    seen: Seen = {}
    WAYS[JOB.what](seen)
    JOB.report(seen | {"turn_ns": MODEL.turn_ns()})
