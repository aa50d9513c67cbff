"""How a run was started, and whether an order asks for the same."""

from typing import Any

from holdfast.engine.order import Order
from holdfast.engine.question import show
from holdfast.errors import AgentMismatch, Damaged, UsageError
from holdfast.model.journal import Started
from holdfast.store.reader import Reader, Run


def started_in(reader: Reader, run: Run) -> Started:
    """Event 0 of a run; of a fork, that of the run it comes from."""
    entry = reader.row(reader.first(run.row.head)).row.entries[0]
    if not isinstance(entry, Started):
        raise Damaged(f"run {run.body.id}", "its first row does not say how it started")
    return entry


def agree(reader: Reader, order: Order, found: Run) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The recorded arguments; an error that shows both where the order asks something else."""
    agent, body = order.agent, found.body
    if not agent.is_same(body.agent, body.module):
        recorded, asked = f"{body.module}:{body.agent}", f"{agent.module}:{agent.name}"
        raise AgentMismatch(order.run, "agent", recorded, asked)
    started = started_in(reader, found)
    if order.args or order.kwargs:
        question = agent.shape.question(order.args, order.kwargs)
        if question.digest != started.digest:
            recorded = show(body.agent, started.asked)
            asked = show(agent.name, question.asked)
            raise AgentMismatch(order.run, "arguments", recorded, asked)
        return order.args, dict(order.kwargs)
    args, kwargs = _pair(reader.value(started.args))
    try:
        agent.shape.bind(args, kwargs)
    except TypeError as error:
        recorded = show(body.agent, started.asked)
        asked = f"a signature that does not take them ({error})"
        raise AgentMismatch(order.run, "arguments", recorded, asked) from error
    return args, kwargs


def _pair(recorded: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if not isinstance(recorded, list) or len(recorded) != 2:  # noqa: PLR2004 args and kwargs
        msg = "the recorded arguments are not a pair"
        raise UsageError(msg)
    return tuple(recorded[0]), dict(recorded[1])
