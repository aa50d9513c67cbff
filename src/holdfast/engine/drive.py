"""Two ways to carry out the same recorded call: in a thread, or under an event loop.

A recorded call is written once, as a generator that yields what has to be waited for. The
drivers below do the waiting; what is thrown while waiting is thrown into the generator.
"""

import functools
from collections.abc import Callable, Generator, Mapping
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from holdfast.capture.still import Still, holds_objects
from holdfast.capture.tracked import inside
from holdfast.engine import context, interpose, owed
from holdfast.engine.session import Frame
from holdfast.engine.timed import Limit, awithin, within
from holdfast.errors import UsageError
from holdfast.ondemand import OnDemand
from holdfast.store.committer import Ticket

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")

PAUSE_S = 0.002


class Invoke(msgspec.Struct, frozen=True):
    """Call the user's function inside `frame`."""

    frame: Frame
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    limit_s: float | None = None


class Commit(msgspec.Struct, frozen=True):
    """Wait until a queued row is durable.

    Where it holds an answer, a cancellation waits for that; what it begins can still be left.
    """

    frame: Frame
    ticket: Ticket
    begins: bool = False


class Linger(msgspec.Struct, frozen=True):
    """Wait for as long as it takes until the waiting task is cancelled, but no longer than this."""

    frame: Frame
    wait_s_max: float


class Rest(msgspec.Struct, frozen=True):
    """Wait so long."""

    frame: Frame
    wait_s: float


Wait = Invoke | Commit | Linger | Rest
Recorded = Generator[Wait, Any, Any]


def drive(recorded: Recorded) -> Any:  # noqa: ANN401 the user's own type, restored by the decorator
    """Carry a recorded call out in this thread."""
    watched: _Watched | None = None
    is_theirs = False
    try:
        wait = next(recorded)
        while True:
            try:
                result = None
                match wait:
                    case Invoke():
                        watched = _watched(wait.frame)
                        result = _invoke(wait)
                    case Commit():
                        wait.frame.session.writer.finish(wait.ticket)
                    case Linger() | Rest():
                        _pause(wait)
            except BaseException as error:  # noqa: BLE001 the generator decides what it means
                is_theirs = isinstance(error, RuntimeError)
                wait = recorded.throw(error)
            else:
                wait = recorded.send(result)
    except StopIteration as done:
        if watched is not None:  # Said after the outcome is recorded: it happened all the same.
            watched.refuse_changes()
        return done.value
    except RuntimeError as error:
        _let_through(error, is_theirs=is_theirs)
        raise


def _pause(wait: Linger | Rest) -> None:
    if isinstance(wait, Rest):  # No task waits here that could be cancelled.
        with wait.frame.session.care.pulse.during(wait.wait_s):
            wait.frame.session.clock.sleep(wait.wait_s)


def _let_through(error: RuntimeError, *, is_theirs: bool) -> None:
    """Raise what the user's function did (by `next`), where no generator lets that through."""
    stop = error.__cause__
    if not is_theirs and isinstance(stop, StopIteration):
        raise stop from stop.__cause__


class _Watched(NamedTuple):
    """A call after which attached objects, and objects in the state, must be as they were."""

    frame: Frame
    still: Still

    def refuse_changes(self) -> None:
        """Raise `ChangedInCall` where the call changed one of them."""
        name, session = self.frame.function, self.frame.session
        self.still.refuse_changes(name)
        session.sections.capture(inside=name)


def _watched(frame: Frame) -> _Watched | None:
    """What to look at again after a call; None if there is nothing.

    Beside other threads and tasks, a change of theirs could not be told from one of the call.
    """
    session = frame.session
    may_change = session.sections.has_objects or holds_objects(session.state.root)
    if not may_change or session.is_side():
        return None
    session.sections.capture()
    return _Watched(frame, Still(session.state.root))


def _invoke(wait: Invoke) -> object:
    if wait.limit_s is not None:
        limit = Limit(wait.frame.function, wait.limit_s)
        frame = msgspec.structs.replace(wait.frame, limit=limit)
        with frame.session.care.pulse.during(wait.limit_s):
            return within(limit, lambda: _invoke(Invoke(frame, wait.fn, wait.args, wait.kwargs)))
    before, guard = context.frame.get(), inside.get()
    pacer = wait.frame.session.pacer
    try:
        context.frame.set(wait.frame)
        inside.set(wait.frame.function)
        if pacer.is_timed:
            with pacer.standing_still():
                result = interpose.call(wait.frame, wait.fn, wait.args, wait.kwargs)
        else:
            result = interpose.call(wait.frame, wait.fn, wait.args, wait.kwargs)
    finally:
        inside.set(guard)
        context.frame.set(before)
    if isinstance(result, CoroutineType):
        result.close()
        msg = (
            f"{wait.frame.function} gave back a coroutine, which nobody awaits here; "
            "write it with `async def`, and await it in an async agent"
        )
        raise UsageError(msg)
    return result


async def adrive(recorded: Recorded) -> Any:  # noqa: ANN401 see drive
    """Carry a recorded call out while the event loop goes on."""
    try:
        wait = next(recorded)
        while True:
            try:
                result = None
                match wait:
                    case Invoke():
                        if not wait.frame.is_effect:  # Of an effect, before its intent stood.
                            await owed.collect()
                        result = await _ainvoke(wait)
                    case Commit():
                        await _acommit(wait)
                    case Linger():
                        await asyncio.sleep(wait.wait_s_max)
                    case Rest():
                        with wait.frame.session.care.pulse.during(wait.wait_s):
                            await asyncio.sleep(wait.wait_s)
            except BaseException as error:  # noqa: BLE001 the generator decides what it means
                wait = recorded.throw(error)
            else:
                wait = recorded.send(result)
    except StopIteration as done:
        return done.value


async def _acommit(wait: Commit) -> None:
    finish = functools.partial(wait.frame.session.writer.afinish, wait.ticket)
    if wait.begins:
        await owed.collect()
        await finish()
    else:
        await owed.to_the_end(finish)


async def _ainvoke(wait: Invoke) -> object:
    if wait.limit_s is not None:
        limit = Limit(wait.frame.function, wait.limit_s)
        frame = msgspec.structs.replace(wait.frame, limit=limit)
        with frame.session.care.pulse.during(wait.limit_s):
            return await awithin(limit, _ainvoke(Invoke(frame, wait.fn, wait.args, wait.kwargs)))
    before, guard = context.frame.get(), inside.get()
    try:
        context.frame.set(wait.frame)
        inside.set(wait.frame.function)
        with wait.frame.session.pacer.standing_still():
            result = interpose.call(wait.frame, wait.fn, wait.args, wait.kwargs)
            if isinstance(result, CoroutineType):
                result = await result
    finally:
        inside.set(guard)
        context.frame.set(before)
    return result
