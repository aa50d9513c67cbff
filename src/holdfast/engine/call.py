"""A step: the recorded answer, or a new one that is recorded before it is returned."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from holdfast import failpoint
from holdfast.engine.drive import Commit, Invoke, Recorded
from holdfast.engine.faults import to_exception
from holdfast.engine.question import Shape
from holdfast.engine.session import Frame, call_id
from holdfast.errors import UsageError
from holdfast.model.journal import Raised, Usage
from holdfast.policy.usage import usage_of

UsageFn = Callable[[Any], "Usage | Mapping[str, Any] | None"]


class StepSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A step as declared."""

    fn: Callable[..., Any]
    shape: Shape
    raises: tuple[type[BaseException], ...] = ()
    usage: UsageFn | None = None


def ask(spec: StepSpec, here: Frame, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Recorded:
    """Answer from the journal if it is there, else call, record, return."""
    session, clock = here.session, here.session.clock
    question = spec.shape.question(args, kwargs)
    call, record = session.ask(question, here)
    if record is not None:
        if isinstance(record.entry, Raised):
            session.replay(record)
            raise to_exception(record.entry.error, spec.raises)
        return session.replay(record)

    frame = Frame(session, spec.shape.name, call_id(call))
    began = clock.monotonic()
    try:
        value = yield Invoke(frame, spec.fn, args, kwargs)
    except Exception as error:
        if session.stopped is None:
            session.raised(call, error, clock.monotonic() - began, spec.raises)
        raise
    spec.shape.check_unchanged(question)
    failpoint.reach("step.called")
    usage = read_usage(spec.usage, value, spec.shape.name)
    answer, ticket = session.answer(call, value, clock.monotonic() - began, usage)
    failpoint.reach("step.recording")
    yield Commit(here, ticket)
    failpoint.reach("step.recorded")
    return answer


def read_usage(usage: UsageFn | None, value: object, name: str) -> Usage | None:
    """What the answer used: as the user's function says, or as known shapes report it."""
    if usage is None:
        return usage_of(value)
    told = usage(value)
    if told is None or isinstance(told, Usage):
        return told
    if isinstance(told, Mapping):
        return usage_of({"usage": told, "model": told.get("model")})
    msg = f"usage= of {name} returned {type(told).__name__}; return a mapping, Usage or None"
    raise UsageError(msg)
