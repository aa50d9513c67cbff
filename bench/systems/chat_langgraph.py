"""LangGraph with its SQLite saver running the conversation: one node that loops."""

import asyncio
import operator
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from bench import conversation
from bench.job import Job, Message, Model, Seen, timed

SYNC = {"durability": "sync"}
"""What makes a step durable before the next; without it LangGraph writes behind the steps."""


def fold(state: list[Message], writes: Sequence[list[Message]]) -> list[Message]:
    """Append what was written, as a delta channel asks for it."""
    return [*state, *(message for write in writes for message in write)]


class Whole(TypedDict):
    """A list with an append reducer and a dict with a merging one: the documented way."""

    messages: Annotated[list[Message], operator.add]
    variables: Annotated[dict[str, int], operator.or_]


class Delta(TypedDict):
    """The same with the list in LangGraph's beta channel, which stores increments."""

    messages: Annotated[list[Message], DeltaChannel(fold)]
    variables: Annotated[dict[str, int], operator.or_]


def build(job: Job, model: Model, state: type) -> Any:  # noqa: ANN401 - LangGraph's own type
    """The graph: a turn is one node, which returns what it adds."""

    def turn(state: dict[str, Any]) -> conversation.Added:
        asked = conversation.user(model, state["messages"])
        reply = model.reply([*state["messages"], asked])
        number = len(state["messages"]) // 2
        return {"messages": [asked, reply], "variables": conversation.changed(number)}

    def route(state: dict[str, Any]) -> str:
        return END if len(state["messages"]) > 2 * job.turns else "turn"

    graph: Any = StateGraph(state)
    graph.add_node("turn", turn, input_schema=state)
    graph.add_edge(START, "turn")
    graph.add_conditional_edges("turn", route, ["turn", END])
    return graph


def settings(job: Job, run: int) -> dict[str, Any]:
    """What LangGraph needs to know about a run."""
    return {"configurable": {"thread_id": f"run-{run}"}, "recursion_limit": job.turns + 10}


def first(job: Job, run: int) -> dict[str, Any]:
    """The state that a run begins with."""
    return {"messages": [job.task(run)], "variables": conversation.variables()}


def threads(job: Job, model: Model, state: type, how: dict[str, str], seen: Seen) -> None:
    """Every run in a thread of its own; a single one in this thread."""
    with SqliteSaver.from_conn_string(str(Path(job.directory) / "langgraph.db")) as saver:
        saver.setup()
        app = build(job, model, state).compile(checkpointer=saver)

        def one(run: int) -> None:
            app.invoke(first(job, run), settings(job, run), **how)

        with timed(seen):
            if job.runs == 1:
                one(0)
            else:
                with ThreadPoolExecutor(job.runs) as pool:
                    list(pool.map(one, range(job.runs)))


async def tasks(job: Job, model: Model, seen: Seen) -> None:
    """Every run in a task of its own, on the saver documented for asyncio."""
    path = str(Path(job.directory) / "langgraph.db")
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        await saver.setup()
        app = build(job, model, Whole).compile(checkpointer=saver)

        async def one(run: int) -> None:
            await app.ainvoke(first(job, run), settings(job, run), durability="sync")

        with timed(seen):
            await asyncio.gather(*(one(run) for run in range(job.runs)))


def main() -> None:
    """Run the conversation as the job says."""
    job = Job.from_argument()
    model = Model.of(job)
    seen: Seen = {}
    match job.what:
        case "asyncio":
            asyncio.run(tasks(job, model, seen))
        case "delta":
            threads(job, model, Delta, SYNC, seen)
        case "default":
            threads(job, model, Whole, {}, seen)
        case _:
            threads(job, model, Whole, SYNC, seen)
    job.report(seen | {"turn_ns": model.turn_ns()})


if __name__ == "__main__":
    main()
