"""The agent that the state is measured with: 50 variables of which 2 change, two messages a turn.

Every system runs this: a user's message, one step that takes the whole list, its answer, two
variables. The first message is the task; its text says with which of the model's texts to begin.
"""

from collections.abc import Iterator
from typing import TypedDict

import msgspec

from bench.job import Message, Model

VARIABLES = 50
_STRIDE = 7

Variables = dict[str, int]


class Added(TypedDict):
    """What one turn adds to the state."""

    messages: list[Message]
    variables: Variables


def variables() -> Variables:
    """The variables as a run begins with them."""
    return {_name(number): number for number in range(VARIABLES)}


def changed(turn: int) -> Variables:
    """The two variables that change in a turn, and to what."""
    return {_name(turn * _STRIDE): turn, _name(turn * _STRIDE + 1): turn * turn}


def user(model: Model, messages: list[Message]) -> Message:
    """What the user says next."""
    return {"author": "user", "text": model.text(messages)}


def added(model: Model, task: Message, turns: int) -> Iterator[bytes]:
    """The msgpack of what each turn adds, as a system that stored nothing else would keep it."""
    encode = msgspec.msgpack.Encoder().encode
    messages = [task]
    for turn in range(turns):
        asked = user(model, messages)
        messages.append(asked)
        reply: Message = {"author": "model", "text": model.text(messages)}
        messages.append(reply)
        yield encode(Added(messages=[asked, reply], variables=changed(turn)))


def _name(number: int) -> str:
    return f"variable_{number % VARIABLES:02d}"
