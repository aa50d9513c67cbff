"""A program that dies in its N-th turn, each time it is started: `python -m ... STORE TURN TEXTS`.

It is a user's whole program and imports nothing of the benchmark, so that the time from its start
to the question it dies in is that of Python, Holdfast and the restart, and of nothing else.
"""

import json
import os
import sys
from functools import cache
from time import perf_counter_ns
from typing import Any

import holdfast

STORE, TURN, TEXTS = sys.argv[1], int(sys.argv[2]), sys.argv[3]
WINDOW = 10


@cache
def texts() -> list[str]:
    """The model's answers, read only if one is needed."""
    with open(TEXTS) as file:  # noqa: PTH123 - pathlib would be part of the measured start
        return list(json.load(file))


@holdfast.step
def chat(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer; in turn `TURN` say when the question came, and die."""
    turn = messages[-1]["turn"] + 1 if messages else 0
    if turn == TURN:
        os.write(1, b"%d" % perf_counter_ns())
        os._exit(0)
    return {"turn": turn, "text": texts()[turn % len(texts())]}


@holdfast.agent
def chatter(run: holdfast.Run) -> None:
    """A conversation of which the last `WINDOW` messages are kept, so its size stays the same."""
    run.state.setdefault("messages", [])
    for _turn in run.turns():
        messages = run.state["messages"]
        messages.append(chat(messages))
        if len(messages) > WINDOW:
            del messages[0]


if __name__ == "__main__":
    holdfast.open(STORE).run(chatter, id="run")
