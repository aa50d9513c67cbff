"""How a run was started, and whether an order asks for the same."""

from collections.abc import Mapping
from typing import Any

from holdfast.engine.bare import olders
from holdfast.engine.order import Order
from holdfast.engine.question import Question, Shape, show
from holdfast.errors import AgentMismatch, Damaged, UsageError
from holdfast.model.cadence import Pace
from holdfast.model.journal import Started
from holdfast.model.run import Status
from holdfast.store.codec.veil import redact
from holdfast.store.reader import Reader, Run

Given = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of a run."""


def started_in(reader: Reader, run: Run) -> Started:
    """Event 0 of a run; of a fork, that of the run it comes from."""
    entry = reader.row(reader.first(run.row.head)).row.entries[0]
    if not isinstance(entry, Started):
        raise Damaged(f"run {run.body.id}", "its first row does not say how it started")
    return entry


def other_pace(started: Started, pace: Pace) -> Pace | None:
    """How a life is saved where that is not as the run was at its start; None: as then."""
    return None if pace == (started.pace or Pace(checkpoint=started.cadence)) else pace


def agree(reader: Reader, order: Order, found: Run) -> Given:
    """The recorded arguments; an error that shows both where the order asks something else."""
    agent, body = order.agent, found.body
    if not agent.is_same(body.agent, body.module):
        recorded, asked = f"{body.module}:{body.agent}", f"{agent.module}:{agent.name}"
        raise AgentMismatch(order.run, "agent", recorded, asked)
    started = started_in(reader, found)
    recorded = redact(show(body.agent, started.asked))
    if order.args or order.kwargs:
        question = agent.shape.question(order.args, order.kwargs)
        if question.digest == started.digest or _is_older(question, started):
            return order.args, dict(order.kwargs)
    args, kwargs = _pair(reader.value(started.args))
    if order.args or order.kwargs:
        if _is_migrated(agent.shape, (args, kwargs), started, question):
            return order.args, dict(order.kwargs)
        meant = _completed(agent.shape, (args, kwargs), order, started)
        if meant is None or not _fits(agent.shape.question((), meant), started):
            asked = show(agent.name, question.asked)
            raise AgentMismatch(order.run, "arguments", recorded, asked)
        return (), meant
    try:
        bound = agent.shape.bind(args, kwargs)
    except TypeError as error:
        asked = f"a signature that does not take them ({error})"
        raise AgentMismatch(order.run, "arguments", recorded, asked) from error
    is_plain = len(args) + len(kwargs) == len(bound)  # No default has a say.
    if not (is_plain and list(bound) == [each.name for each in started.asked]):
        question = agent.shape.question(args, kwargs)
        if body.status is not Status.FINISHED and not _fits(question, started):
            asked = f"a signature that reads them as {show(agent.name, question.asked)}"
            raise AgentMismatch(order.run, "arguments", recorded, asked)
    return args, kwargs


def with_defaults(shape: Shape, order: Order, bound: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments with the defaults of today: a run keeps those it was started with."""
    given = shape.given(order.args, order.kwargs)
    missing = {} if given is None else {n: bound[n] for n in bound if n not in given}
    return missing | dict(order.kwargs)


def _is_migrated(shape: Shape, recorded: Given, started: Started, question: Question) -> bool:
    """Whether what was recorded is what is asked, once it passed the migrations of its classes."""
    given, names = shape.given(*recorded), {each.name for each in started.asked}
    if given is None or not given.keys() == names == {each.name for each in question.asked}:
        return False  # Else a default of today would have a say.
    try:
        return shape.question(*recorded).digest == question.digest
    except TypeError:  # The agent does not take them any more.
        return False


def _completed(
    shape: Shape,
    recorded: Given,
    order: Order,
    started: Started,
) -> dict[str, Any] | None:
    """What is asked with, and what was recorded of the rest: a default may be another by now."""
    before, now = shape.given(*recorded), shape.given(order.args, order.kwargs)
    if before is None or now is None or not now.keys() <= {each.name for each in started.asked}:
        return None
    return before | now


def _is_older(question: Question, started: Started) -> bool:
    """Whether the run was started with the same, recorded under other words."""
    return any(older.question.digest == started.digest for older in olders(question))


def _fits(question: Question, started: Started) -> bool:
    """Whether every recorded argument has its name and value still; others may have come since."""
    marks = {each.name: {each.mark} for each in question.asked}
    for older in olders(question):
        for name, mark in older.marks().items():
            marks[name].add(mark[:4])
    return all(each.mark in marks.get(each.name, ()) for each in started.asked)


def _pair(recorded: object) -> Given:
    if not isinstance(recorded, list) or len(recorded) != 2:  # noqa: PLR2004 args and kwargs
        msg = "the recorded arguments are not a pair"
        raise UsageError(msg)
    return tuple(recorded[0]), dict(recorded[1])
