"""A stream: recorded as it arrives, and continued from what is recorded.

Items are handed on at once and recorded together: after so many tokens, with whatever the run
records next, and after a second at the latest. So a crash costs at most the items since the last
record, and nothing the agent has done since it read an item stands without that item. What is
recorded is yielded again without a call; then `fn` goes on from it if it takes `prefix`. One that
does not is called anew: the partial answer stays in the journal, with its cost, and counts no more.
With `retry` the same is done in place when the stream fails, as long as the agent has been given
nothing that it would be given again.
"""

import inspect
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

import msgspec

from holdfast import failpoint
from holdfast.engine import heard, interpose, left
from holdfast.engine.book import place
from holdfast.engine.call import StepSpec, leave, not_cut, nothing_new, raise_again
from holdfast.engine.drive import Commit, Invoke, Recorded, Rest, adrive, drive
from holdfast.engine.faults import is_cutting
from holdfast.engine.items import items_of, own, packed
from holdfast.engine.line import present
from holdfast.engine.patience import Tries, limit_of, retry_of
from holdfast.engine.question import Shape, name_of, show
from holdfast.engine.reading import Record
from holdfast.engine.session import Frame
from holdfast.errors import Diverged, StreamOpen, UsageError
from holdfast.model.journal import ENDED, LEFT, Call, Raised, Streamed, Usage
from holdfast.model.limits import Retry, is_sane, short_repr
from holdfast.model.parts import writable
from holdfast.policy.usage import total
from holdfast.store.codec import values
from holdfast.store.codec.vault import guarded
from holdfast.store.codec.veil import redact

PREFIX = "prefix"
NAME_CHARS_MAX = 100
SPILL_S = 1.0
"""Items that wait for a record longer than this are recorded by the housekeeper."""
END = object()

T = TypeVar("T")
TokensFn = Callable[[Any], int]


class StreamSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A stream as asked for: the step it is, after how many tokens to record, how to count them."""

    step: StepSpec
    every: int
    tokens: TokensFn | None
    takes_prefix: bool


def spec_of(
    fn: Callable[..., Any],
    name: str | None,
    *,
    every: int,
    tokens: TokensFn | None,
    timeout: float | str | None,
    retry: Retry | None,
) -> StreamSpec:
    """What `run.stream` is asked for; refused at its line if it cannot be meant."""
    if type(every) is not int or every < 1:
        msg = f"every= of a stream is a whole number of tokens from 1, not {every!r}"
        raise UsageError(msg)
    if tokens is not None and not callable(tokens):
        msg = f"tokens= of a stream is a function that counts an item's tokens, not {tokens!r}"
        raise UsageError(msg)
    if name is not None and (type(name) is not str or not 0 < len(name) <= NAME_CHARS_MAX):
        msg = f"the name of a stream is a text of at most {NAME_CHARS_MAX} characters"
        raise UsageError(msg)
    called = writable(redact(name)) if name else name_of(fn)
    takes_prefix = PREFIX in Shape(called, fn).names
    shape = Shape(called, fn, (PREFIX,) if takes_prefix else ())
    step = StepSpec(fn=fn, shape=shape, limit_s=limit_of(timeout), retry=retry_of(retry))
    return StreamSpec(step=step, every=every, tokens=tokens, takes_prefix=takes_prefix)


def begin(
    spec: StreamSpec, here: Frame, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> "Stream[Any] | AsyncStream[Any]":
    """The stream, for `for` or for `async for`."""
    if PREFIX in kwargs:
        msg = f"prefix= of {spec.step.shape.name} is what is recorded of the stream; leave it out"
        raise UsageError(msg)
    given = {**kwargs, PREFIX: []} if spec.takes_prefix else kwargs
    question = spec.step.shape.question(args, given, here.session.state.flats)
    flow = Flow(spec, here, here.session.ask(question, here), (args, kwargs))
    return AsyncStream(flow) if is_async(spec.step.fn) else Stream(flow)


class Flow:
    """One stream of a life of a run: what is recorded of it, and what arrives."""

    def __init__(
        self,
        spec: StreamSpec,
        here: Frame,
        asked: tuple[Call, Record | None],
        given: tuple[tuple[Any, ...], Mapping[str, Any]],
    ) -> None:
        self.call, record = asked
        self._path = f"an item of stream {self.call.name}"
        self._spec, self._here, self._given = spec, here, given
        self._session = here.session
        self._frame = Frame(here.session, spec.step.shape.name, self.call)
        self._owner = present()
        self._buffer: list[Any] = []
        self._tokens = 0
        self._since = self._began = here.session.clock.monotonic()
        self.source: Any = None
        self._calls = 0
        self._tries = (
            None if spec.step.retry is None else Tries(self._session, self.call, spec.step.retry)
        )
        parts = [] if record is None else record.parts
        self._raised = record.entry if record and isinstance(record.entry, Raised) else None
        self._how = parts[-1].how if parts else ""
        self._attempt = parts[-1].attempt if parts else 1
        self._part = len(parts)
        self.is_over = False
        is_replay = self._raised is not None or self._how in (ENDED, LEFT)
        if parts and not is_replay and not spec.takes_prefix:
            parts, self._part, self._attempt = [], 0, self._attempt + 1
        again = [item for part in parts for item in items_of(self._session.reader, part)]
        self._again = deque(again)
        self._prefix = [own(item, self._path) for item in again]  # The agent may change its own.
        self._is_new = not is_replay
        self._session.streams.append(self)

    def advance(self) -> Recorded:
        """The next item, or `END` once all of it is recorded."""
        self._session.refuse_if_stopped()
        if self._again:
            return self._again.popleft()
        if self.is_over:
            return END
        if self._how or self._raised is not None:
            return (yield from self._replayed())
        pull = self._apull if self._is_async else self._pull
        while True:
            try:
                yield from nothing_new(self._here, self.call)
                item = yield Invoke(self._frame, pull, (), {}, self._spec.step.limit_s)
                is_full = item is not END and self._take(item)
                break
            except BaseException as error:
                wait_s = self._again_s(error)
                if wait_s is None:
                    self._failed(error)
                    raise
            try:
                yield Rest(self._here, wait_s)
            except BaseException as error:
                self._failed(error)
                raise
        if item is END:
            yield from self._end()
        elif is_full:
            yield from self._record()
        return item

    @property
    def _is_async(self) -> bool:
        return is_async(self._spec.step.fn)

    def _replayed(self) -> Recorded:
        """All that was recorded was yielded again; what came then."""
        session, call = self._session, self.call
        self._close()
        if self._raised is not None:
            yield from raise_again(self._spec.step, self._here, self._raised)
            return (yield from self._uncut())
        session.book.received(call.scope)
        if self._how == LEFT:
            was = f"{show(call.name, call.asked)}, left after {len(self._prefix)} items"
            raise session.stop(Diverged(session.id, place(call.scope), was, "more of it"))
        return END

    def _uncut(self) -> Recorded:
        """What cut it off beside the agent's own code does not come again: go on with it."""
        session, call = self._session, self.call
        if self._prefix and not self._spec.takes_prefix:
            raise session.stop(not_cut(session, call.scope, show(call.name, call.asked)))
        self._raised, self.is_over, self._is_new = None, False, True
        session.streams.append(self)
        return (yield from self.advance())

    def _pull(self) -> object:
        source, calls = self.source, self._calls
        if source is None:
            found = self._call()
            if not hasattr(found, "__iter__"):
                msg = (
                    f"stream {self.call.name} gave {type(found).__name__}, which is no iterable; "
                    "a function that gives one value is called as a step"
                )
                raise UsageError(msg)
            source = iter(found)
            if calls == self._calls:  # Else it was given up: its time ran out.
                self.source = source
        return next(source, END)

    async def _apull(self) -> object:
        if self.source is None:
            found = self._call()
            self.source = aiter(await found if inspect.isawaitable(found) else found)
        return await anext(self.source, END)

    def _call(self) -> Any:  # noqa: ANN401 the user's own iterator
        args, kwargs = self._given
        if self._spec.takes_prefix:
            kwargs = {**kwargs, PREFIX: list(self._prefix)}
        return interpose.call(self._frame, self._spec.step.fn, args, kwargs)

    def _take(self, item: object) -> bool:
        """Keep an item; whether it is time to record."""
        count = 1 if self._spec.tokens is None else self._spec.tokens(item)
        if type(count) is not int or not is_sane(count):
            told = short_repr(count)
            msg = f"tokens= of stream {self.call.name} gave {told}; it counts an item's tokens"
            raise UsageError(msg)
        kept = own(item, self._path)
        with self._session.lock:
            if not self._buffer:
                self._since = self._session.clock.monotonic()
            self._buffer.append(kept)
            self._tokens += count
            if self._tries is not None:
                self._prefix.append(kept)
            return self._tokens >= self._spec.every

    def _again_s(self, error: BaseException) -> float | None:
        """How long to wait before the stream is asked for again, or for the rest of it.

        One that takes no prefix would begin anew, so nothing of it may have been handed on.
        """
        is_safe = self._spec.takes_prefix or not (self._buffer or self._part)
        is_over = self._session.stopped is not None or not isinstance(error, Exception)
        if self._tries is None or is_over or not is_safe:
            return None
        assert isinstance(error, Exception)
        took_s = self._session.clock.monotonic() - self._began
        self.spill()
        wait_s = self._tries.again_s(error, took_s)
        if wait_s is not None:
            self.source, self._calls = None, self._calls + 1
        return wait_s

    def is_old(self, now: float) -> bool:
        """Whether items wait for a record too long."""
        return bool(self._buffer) and now - self._since >= SPILL_S

    def spill(self, how: str = "", *, is_due: bool = False) -> None:
        """Let what has arrived ride along with the next commit."""
        with self._session.lock:
            if not (self._buffer or how or is_due):
                return
            session, count = self._session, len(self._buffer)
            with guarded(session.guard):
                data = values.encode(packed(self._buffer), path=self._path)
                data = session.reader.chunks.keep(data)
            now, took_s = session.clock.now(), session.clock.monotonic() - self._began
            session.pend(
                Streamed(
                    self.call,
                    now,
                    self._attempt,
                    self._part,
                    data,
                    count,
                    self._tokens,
                    how,
                    took_s,
                )
            )
            session.used = total([session.used, Usage(tokens_out=self._tokens)])
            self._part += 1
            self._buffer, self._tokens = [], 0

    def _record(self) -> Recorded:
        """Record what has arrived, durably, while the stream is open."""
        self.spill()
        ticket = self._session.queue()
        failpoint.reach("stream.recording")
        if ticket is not None and self._session.pacer.waits_for(ticket):
            yield Commit(self._here, ticket)
        failpoint.reach("stream.recorded")
        self._session.pacer.after_call()

    def _end(self) -> Recorded:
        """All of it has arrived: the answer is final once that is recorded."""
        self._close()
        self.spill(ENDED)
        ticket = self._session.queue()
        failpoint.reach("stream.ending")
        if ticket is not None and self._session.pacer.waits_for(ticket):
            yield Commit(self._here, ticket)
        failpoint.reach("stream.ended")
        self._session.book.received(self.call.scope)
        self._session.pacer.after_call()

    def _failed(self, error: BaseException) -> None:
        """What it raised is recorded with whatever the run does next, after what it gave."""
        session = self._session
        if session.stopped is not None:
            return
        took_s = session.clock.monotonic() - self._began
        if isinstance(error, Exception):
            self._close()
            self.spill()
            session.raised(self.call, error, took_s, self._spec.step.raises)
        elif is_cutting(error) and (not self.call.is_side or isinstance(self.call.scope, int)):
            self._close()
            self.spill()
            leave(session, self.call, error, took_s)

    def _close(self) -> None:
        self.is_over = True
        if self in self._session.streams:
            self._session.streams.remove(self)

    def leave(self) -> None:
        """The agent goes on without the rest."""
        session = self._session
        if self.is_over or session.is_over or session.stopped is not None:
            return
        is_new = self._is_new and self in session.streams
        self._close()
        session.book.received(self.call.scope)
        self._again.clear()
        if is_new:
            self.spill(LEFT)
            left.note(session, self)

    def refuse_deed(self, deed: str) -> None:
        """Whoever reads a stream does nothing for good before its answer is final."""
        if not self.is_over and (self._owner == present() or heard.is_of(self)):
            raise StreamOpen(deed, self.call.name)


class Stream(Iterator[T]):
    """What `run.stream` gives: an iterator over the items."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def __next__(self) -> T:
        item = drive(self._flow.advance())
        if item is END:
            raise StopIteration
        heard.listen(self._flow)
        return cast("T", item)

    def close(self) -> None:
        """Go on without the rest, which is not asked for; `break` does it too.

        Needed where the stream is still in a variable, and the agent wants to act.
        """
        self._flow.leave()
        if hasattr(self._flow.source, "close"):
            self._flow.source.close()

    def __del__(self) -> None:
        self._flow.leave()  # CPython lets go of a loop's iterator right when the loop is left.


class AsyncStream(AsyncIterator[T]):
    """The same for `async for`."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    async def __anext__(self) -> T:
        item = await adrive(self._flow.advance())
        if item is END:
            raise StopAsyncIteration
        heard.listen(self._flow)
        return cast("T", item)

    async def aclose(self) -> None:
        """Go on without the rest, which is not asked for."""
        self._flow.leave()
        if hasattr(self._flow.source, "aclose"):
            await self._flow.source.aclose()

    def __del__(self) -> None:
        self._flow.leave()


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether a stream of this function is read by `async for`."""
    return inspect.isasyncgenfunction(fn) or inspect.iscoroutinefunction(fn)
