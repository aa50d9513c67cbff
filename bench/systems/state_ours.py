"""Holdfast with a large state: turns that change little of it, and what each way to save costs."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from time import perf_counter_ns

import holdfast
from bench import conversation
from bench.job import Job, Message, Model, Seen

JOB = Job.from_argument()
MODEL = Model.of(JOB)
STORE = str(Path(JOB.directory) / "store")
ITEMS = 10_000
"""Of 1 KB each: a state of 10 MB."""
CHANGED = 100
"""Items that a turn changes: 1 % of the state."""

answered: list[int] = []
"""When the model answered."""
recorded: list[int] = []
"""How long the agent then waited until the answer was recorded and in its hands."""

Begin = Callable[[holdfast.Run], None]
Change = Callable[[holdfast.Run, int], None]


@holdfast.step
def chat(messages: Sequence[Message]) -> Message:
    """Ask the model; note when it has answered."""
    reply = MODEL.reply(messages)
    answered.append(perf_counter_ns())
    return reply


def ask(messages: Sequence[Message]) -> Message:
    """Ask the model; note how long its answer took to get here."""
    reply = chat(messages)
    recorded.append(perf_counter_ns() - answered[-1])
    return reply


def begin_chat(run: holdfast.Run) -> None:
    """The conversation and its variables."""
    run.state.setdefault("messages", [JOB.task(0)])
    run.state.setdefault("variables", conversation.variables())


def change_chat(run: holdfast.Run, turn: int) -> None:
    """A turn of the conversation."""
    messages = run.state["messages"]
    messages.append(conversation.user(MODEL, messages))
    messages.append(ask(messages))
    run.state["variables"].update(conversation.changed(turn))


def begin_large(run: holdfast.Run) -> None:
    """A list of 10,000 items of 1 KB, and the variables."""
    texts = MODEL.texts
    items = [{"number": n, "text": texts[n % len(texts)]} for n in range(ITEMS)]
    run.state.setdefault("items", items)
    run.state.setdefault("variables", conversation.variables())


def change_large(run: holdfast.Run, turn: int) -> None:
    """One answered question, and another text for 1 % of the items, here and there."""
    ask([{"author": "user", "text": str(turn)}])
    items, texts = run.state["items"], MODEL.texts
    for n in range(CHANGED):
        place = (turn * CHANGED + n) * 37
        items[place % ITEMS]["text"] = texts[(place + turn + 1) % len(texts)]
    run.state["variables"].update(conversation.changed(turn))


STATES: dict[str, tuple[Begin, Change]] = {
    "conversation": (begin_chat, change_chat),
    "10 MB, 1 % changes": (begin_large, change_large),
}


def large(seen: Seen) -> None:
    """How long each turn takes on a state of 10 MB of which 1 % changes."""
    marks: list[int] = []

    @holdfast.agent
    def worker(run: holdfast.Run) -> None:
        begin_large(run)
        for turn in run.turns():
            marks.append(perf_counter_ns())
            if turn == JOB.turns:
                break
            change_large(run, turn)

    with holdfast.open(STORE) as store:
        store.run(worker, id="run")
    seen["ours"] = [after - before for before, after in pairwise(marks)]


def blocked(seen: Seen) -> None:
    """How long the agent stands still for each way to save, by mode, granularity and state."""
    with holdfast.open(STORE) as store:
        for state in STATES:
            ends = _turn_ends(store, state, cadence=None)
            seen[f"recovery point, every turn, {state}"] = ends
            marked = _turn_ends(store, state, cadence=holdfast.every(turns=1))
            seen[f"checkpoint, every turn, {state}"] = marked
            seen[f"checkpoint, after a step, {state}"] = _calls(store, state, only=None)
            seen[f"snapshot, after a step, {state}"] = _calls(store, state, only=["variables"])


def _turn_ends(
    store: holdfast.Store, state: str, *, cadence: "holdfast.Cadence | None"
) -> list[int]:
    """From the end of a turn's code to the next turn's, and from an answer to its return."""
    begin, change = STATES[state]
    taken: list[int] = []

    @holdfast.agent(checkpoint=cadence)
    def worker(run: holdfast.Run) -> None:
        begin(run)
        ended = 0
        for turn in run.turns():
            if ended:
                taken.append(perf_counter_ns() - ended + recorded[-1])
            if turn == JOB.turns:
                break
            change(run, turn)
            ended = perf_counter_ns()

    store.run(worker, id=f"{state}, ends, {cadence}")
    return taken


def _calls(store: holdfast.Store, state: str, *, only: list[str] | None) -> list[int]:
    """The duration of `run.checkpoint`, which returns when what it saved is durable."""
    begin, change = STATES[state]
    taken: list[int] = []

    @holdfast.agent
    def worker(run: holdfast.Run) -> None:
        begin(run)
        for turn in run.turns():
            change(run, turn)
            began = perf_counter_ns()
            run.checkpoint(only=only)
            taken.append(perf_counter_ns() - began)
            if turn + 1 == JOB.turns:
                break

    store.run(worker, id=f"{state}, calls, {only}")
    return taken


WAYS: dict[str, Callable[[Seen], None]] = {"large": large, "blocked": blocked}


if __name__ == "__main__":
    seen: Seen = {}
    WAYS[JOB.what](seen)
    JOB.report(seen)
