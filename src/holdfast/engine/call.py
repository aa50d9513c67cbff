"""A step: the recorded answer, or a new one that is recorded before it is returned."""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, NoReturn

import msgspec

from holdfast import failpoint
from holdfast.engine import context
from holdfast.engine.book import place
from holdfast.engine.drive import Commit, Invoke, Linger, Recorded, Rest, Wait
from holdfast.engine.faults import is_cancelled, is_cut, is_cutting, to_exception
from holdfast.engine.line import present
from holdfast.engine.patience import Tries
from holdfast.engine.question import Shape, show
from holdfast.engine.session import Frame, Session
from holdfast.errors import Diverged, UsageError
from holdfast.model.journal import Call, Error, Raised, Scope, Usage
from holdfast.model.limits import Retry
from holdfast.policy.usage import fault_of, usage_of
from holdfast.store.codec.veil import redact

LINGER_S = 5.0
"""How much longer than before a replay waits for the timeout that cut a call off."""

UsageFn = Callable[[Any], "Usage | Mapping[str, Any] | None"]


class StepSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A step as declared."""

    fn: Callable[..., Any]
    shape: Shape
    raises: tuple[type[BaseException], ...] = ()
    usage: UsageFn | None = None
    limit_s: float | None = None
    retry: Retry | None = None


def ask(spec: StepSpec, here: Frame, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Recorded:
    """Answer from the journal if it is there, else call, record, return."""
    session, clock = here.session, here.session.clock
    question = spec.shape.question(args, kwargs, session.state.flats)
    call, record = session.ask(question, here)
    if record is not None:
        if not isinstance(record.entry, Raised):
            return session.replay(record)
        yield from raise_again(spec, here, record.entry)

    frame = Frame(session, spec.shape.name, call)
    tries = None if spec.retry is None else Tries(session, call, spec.retry)
    asked_at = clock.monotonic()
    while True:
        began = clock.monotonic()
        try:
            yield from nothing_new(here, call)
            value = yield Invoke(frame, spec.fn, args, kwargs, spec.limit_s)
            failpoint.reach("step.called", call)
            spec.shape.check_unchanged(question, session.state.flats)
            usage, fault = read_usage(spec.usage, value, spec.shape.name)
            answer, ticket = session.answer(call, value, clock.monotonic() - began, usage)
            break
        except BaseException as error:
            took_s = clock.monotonic() - began
            if session.stopped is not None:
                raise
            if isinstance(error, Exception):
                wait_s = None if tries is None else tries.again_s(error, took_s)
                if wait_s is None:
                    session.raised(call, error, took_s, spec.raises)
                    raise
            else:
                leave(session, call, error, clock.monotonic() - asked_at)
                raise
        try:
            yield Rest(here, wait_s)
        except BaseException as error:
            leave(session, call, error, clock.monotonic() - asked_at)
            raise
    failpoint.reach("step.recording")
    if session.pacer.waits_for(ticket):
        yield Commit(here, ticket)
    failpoint.reach("step.recorded", call)
    session.pacer.after_call()
    return answer if fault is None else _refuse(session, fault)


def _refuse(session: Session, fault: UsageError) -> NoReturn:
    """Said after the answer is recorded: what was paid for is not asked for again."""
    raise session.stop(fault)


def cut_off(session: Session, call: Call, error: BaseException, took_s: float) -> None:
    """Note what cut a call off: where the code goes on, it goes on without it."""
    if is_cutting(error) and not call.is_side and session.stopped is None:
        session.raised(call, error, took_s, ())


def leave(session: Session, call: Call, error: BaseException, took_s: float) -> None:
    """Note the same of a step, also of one in a task beside the agent's own."""
    cut_off(session, call, error, took_s)
    if call.is_side and is_cancelled(error) and isinstance(call.scope, int):
        session.halves.append(Left(session, call, error, took_s))


class Left:
    """A step of a task beside the agent's own that was cancelled.

    The task may end with it, and the run too, or a timeout of its own is gone past. So it is noted
    once code of the run goes on.
    """

    def __init__(self, session: Session, call: Call, error: BaseException, took_s: float) -> None:
        self._session, self._call, self._error, self._took_s = session, call, error, took_s
        self.owner = present()

    def abort(self) -> None:
        """The code goes on without the answer."""
        self._session.raised(self._call, self._error, self._took_s, ())


def _left_again(here: Frame, raised: Raised) -> Generator[Wait, Any, None]:
    """Wait for what cancelled a step beside the agent's own code; where nothing does, ask anew.

    What cancelled it may have been the error of another task, which ended the run then.
    """
    book = here.session.book
    try:
        yield Linger(here, book.spared_s + raised.took_s + LINGER_S)
    except BaseException:
        book.received(raised.call.scope)
        raise


def raise_again(spec: StepSpec, here: Frame, raised: Raised) -> Recorded:
    """The error that the run went past; of a call that was cut off, the wait for that.

    It ends without an error only where a step beside the agent's own code is to be asked anew.
    """
    if raised.call.is_side and is_cut(raised.error):
        return (yield from _left_again(here, raised))
    session = here.session
    session.book.received(raised.call.scope)
    if is_cut(raised.error):
        yield from cut_off_again(here, raised.call, raised.took_s, raised.error)
    error = to_exception(raised.error, spec.raises)
    session.mark(error, raised)
    raise error


def cut_off_again(
    here: Frame, call: Call, took_s: float, error: Error | None = None
) -> Generator[Wait, Any, NoReturn]:
    """Wait for the timeout that cut a call off in another life; nobody would press Ctrl-C again.

    It may have begun before calls that this life need not wait for.
    """
    session = here.session
    if error is not None and error.name == KeyboardInterrupt.__name__:
        raise KeyboardInterrupt(f"as in an earlier life of run {session.id}, which went on")
    yield Linger(here, session.book.spared_s + took_s + LINGER_S)
    raise session.stop(not_cut(session, call.scope, show(call.name, call.asked)))


def nothing_new(here: Frame, call: Call) -> Iterable[Wait]:
    """In a section that another life left cut off nothing new is asked: wait for that again."""
    section = context.critical.get()
    if section is None or section.cut_s is None:
        return ()  # As nearly always: no generator is made.
    return cut_off_again(here, call, section.cut_s)


def not_cut(session: Session, scope: Scope, what: str) -> Diverged:
    """What a timeout cut off in another life went on in this one."""
    recorded = f"{what}, cut off by a timeout"
    return Diverged(session.id, place(scope), recorded, "the same without the timeout")


def read_usage(
    usage: UsageFn | None, value: object, name: str
) -> tuple[Usage | None, UsageError | None]:
    """What the answer used: as the user's function says, or as known shapes report it.

    Where that function is at fault, what is wrong with it.
    """
    try:
        found = usage_of(value) if usage is None else _told_usage(usage, value, name)
    except UsageError as fault:
        return None, fault
    if found is None or found.model is found.provider is None:
        return found, None
    named = [each and redact(each) for each in (found.model, found.provider)]
    if named == [found.model, found.provider]:
        return found, None
    return msgspec.structs.replace(found, model=named[0], provider=named[1]), None


def _told_usage(usage: UsageFn, value: object, name: str) -> Usage | None:
    try:
        told = usage(value)
    except Exception as error:
        why = redact(f"{type(error).__name__}: {error}")
        msg = f"usage= of {name} raised {why}; the answer is recorded without what it used"
        raise UsageError(msg) from error
    if told is None:
        return None
    if isinstance(told, Usage):
        if (fault := fault_of(told)) is not None:
            raise UsageError(f"usage= of {name}: {fault}")
        return told
    if isinstance(told, Mapping):
        named = {"model": told.get("model"), "provider": told.get("provider")}
        return usage_of({"usage": told, **named})
    msg = f"usage= of {name} returned {type(told).__name__}; return a mapping, Usage or None"
    raise UsageError(msg)
