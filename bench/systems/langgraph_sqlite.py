"""LangGraph with its SQLite saver and durability="sync": one node that loops."""

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

from bench.job import Job, Message, Model, Seen, timed


def fold(state: list[Message], writes: Sequence[list[Message]]) -> list[Message]:
    """Append what was written, as a delta channel asks for it."""
    return [*state, *(message for write in writes for message in write)]


class Whole(TypedDict):
    """The documented list with an append reducer."""

    messages: Annotated[list[Message], operator.add]


class Delta(TypedDict):
    """The same list in LangGraph's beta channel, which stores increments."""

    messages: Annotated[list[Message], DeltaChannel(fold)]


def build(job: Job, model: Model, state: type) -> Any:  # noqa: ANN401 - LangGraph's own type
    """The graph: ask the model, append its answer, again until `turns` answers are there."""

    def chat(state: dict[str, list[Message]]) -> dict[str, list[Message]]:
        return {"messages": [model.reply(state["messages"])]}

    def route(state: dict[str, list[Message]]) -> str:
        return END if len(state["messages"]) > job.turns else "chat"

    graph: Any = StateGraph(state)
    graph.add_node("chat", chat, input_schema=state)
    graph.add_edge(START, "chat")
    graph.add_conditional_edges("chat", route, ["chat", END])
    return graph


def settings(job: Job, run: int) -> dict[str, Any]:
    """What LangGraph needs to know about a run."""
    return {"configurable": {"thread_id": f"run-{run}"}, "recursion_limit": job.turns + 10}


def threads(job: Job, model: Model, state: type, seen: Seen) -> None:
    """Every run in a thread of its own; a single one in this thread."""
    with SqliteSaver.from_conn_string(str(Path(job.directory) / "langgraph.db")) as saver:
        app = build(job, model, state).compile(checkpointer=saver)

        def one(run: int) -> None:
            first = {"messages": [job.task(run)]}
            app.invoke(first, settings(job, run), durability="sync")

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
        app = build(job, model, Whole).compile(checkpointer=saver)

        async def one(run: int) -> None:
            first = {"messages": [job.task(run)]}
            await app.ainvoke(first, settings(job, run), durability="sync")

        with timed(seen):
            await asyncio.gather(*(one(run) for run in range(job.runs)))


def main() -> None:
    """Run the loop as the job says."""
    job = Job.from_argument()
    model = Model.of(job)
    seen: Seen = {}
    match job.what:
        case "asyncio":
            asyncio.run(tasks(job, model, seen))
        case "delta":
            threads(job, model, Delta, seen)
        case _:
            threads(job, model, Whole, seen)
    job.report(seen | {"turn_ns": model.turn_ns()})


if __name__ == "__main__":
    main()
