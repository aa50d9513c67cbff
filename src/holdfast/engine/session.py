"""One life of a run in one process: what it asks, records and keeps pending."""

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast import failpoint
from holdfast.capture.state import State
from holdfast.capture.tracked import track
from holdfast.clock import Clock
from holdfast.engine import lacks
from holdfast.engine.book import Book
from holdfast.engine.care import Care
from holdfast.engine.exits import Exits
from holdfast.engine.faces import Flowing, Saving
from holdfast.engine.faults import describe, is_broken, mark, marks, to_error
from holdfast.engine.fence import Fence
from holdfast.engine.halves import Half, go_past
from holdfast.engine.line import Line
from holdfast.engine.logs import log
from holdfast.engine.outside import is_outside
from holdfast.engine.pulse import Told
from holdfast.engine.question import Question
from holdfast.engine.reading import Record, key_of
from holdfast.engine.recall import recall
from holdfast.engine.restore import Sources
from holdfast.engine.sections import Sections
from holdfast.engine.timed import Limit
from holdfast.engine.validate import Validator, first_fault
from holdfast.errors import Diverged, InDoubt, InvalidState, NotStorable, UsageError
from holdfast.model.ids import Point
from holdfast.model.journal import (
    ENDED,
    Answer,
    Based,
    Call,
    Entry,
    Failed,
    Finished,
    Happened,
    Intended,
    Kept,
    LoopLeft,
    Noted,
    Raised,
    Saved,
    Scope,
    Streamed,
    TurnEnded,
    Usage,
)
from holdfast.model.run import RunBody
from holdfast.ondemand import OnDemand
from holdfast.policy.parameters import ModelCall
from holdfast.policy.usage import total
from holdfast.store.codec import values
from holdfast.store.codec.vault import Guard
from holdfast.store.codec.wire import FORM_PLAIN
from holdfast.store.committer import Ticket
from holdfast.store.ledger import Ledger
from holdfast.store.reader import History, Reader
from holdfast.store.writer import RunWriter

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")

_CHANGES = frozenset({TurnEnded, LoopLeft, Kept, Saved})

OUTSIDE = -1
"""The scope of the code before the first loop."""


class Session:
    """A run being worked on. Threads and tasks of the run share it."""

    def __init__(
        self,
        *,
        writer: RunWriter,
        reader: Reader,
        clock: Clock,
        care: Care,
        history: History | None,
        is_held: Callable[[int], bool],
        is_checked: bool = False,
        guard: Guard | None = None,
    ) -> None:
        self.guard = guard or Guard()
        self.id = writer.run.body.id
        self.writer, self.reader, self.clock = writer, reader, clock
        self.care, self.history = care, history
        self.log = logging.LoggerAdapter(log, {"run_id": self.id})
        self.book = Book(self.id, reader.value)
        self.fence = Fence(reader, writer, is_held)
        self.is_checked = is_checked
        recorded = Sources(reader, {}, self.settle).get if is_checked else None
        self.state = State(
            aside=reader.chunks, check=is_checked, answer=recorded, names_leaves=reader.names_leaves
        )
        self.state.base()  # Changes count from the empty state.
        self.state.locate(None)
        self.sections = Sections(self)
        self.pacer: Saving  # Whoever begins the life says how it is saved.
        self.scope: int = OUTSIDE
        self.turn = -1
        self.used, self.steps = Usage(), 0
        self.model_call: ModelCall | None = None
        self.error: str | None = None
        self.outside_rows: list[int] = []
        self.bytes_since_base = self.pending_serial = 0
        self.stopped: BaseException | None = None
        self.validators: Sequence[Validator[Any]] = ()
        self.is_revived = self.is_over = False
        self.back: Point | None = None
        self.doing: dict[str, Call] = {}
        self.ledger: Ledger | None = None
        self.streams: list[Flowing] = []
        self.left: list[tuple[Flowing, int]] = []
        self.halves: list[Half] = []
        self._pending: list[Entry] = []
        self._last: Ticket | None = None
        self.lock = threading.RLock()
        line = Line()
        self.begin, self.is_side, self._refuse = line.begin, line.is_side, line.refuse_exit
        self.exits = Exits(line)
        if history is not None:
            self.book.load(history.outside, history.rows)
            recall(self, history)

    def refuse_if_stopped(self) -> None:
        """Raise why the run cannot go on; swallowing such an error does not revive it."""
        if self.stopped is not None:
            raise self.stopped
        self._refuse_if_over()

    def _refuse_if_over(self) -> None:
        if self.is_over:
            raise UsageError(f"run {self.id} has ended; a thread or task of it is still at work")

    def cancel(self) -> None:
        """The task that waits for a synchronous agent was cancelled: its next call raises that."""
        self.stopped = self.stopped or asyncio.CancelledError()

    def stop(self, why: Exception) -> Exception:
        """Remember why the run cannot go on, and return it to be raised."""
        self.stopped = self.stopped or why
        return why

    def ask(self, question: Question, frame: "Frame") -> tuple[Call, Record | None]:
        """Which call this is, and what the journal holds of it."""
        if self.stopped is not None or self.is_over:
            self.refuse_if_stopped()
        self._refuse()
        if frame.limit is not None:
            frame.limit.refuse_if_over()
        if self.halves:
            go_past(self.halves, is_side=self.is_side())
        scope: Scope = self.scope if frame.inside is None else frame.call
        try:
            found = self.book.ask(scope, question, is_side=self.is_side())
        except Diverged as error:
            raise self.stop(error) from None
        self.exits.take(found[0])
        return found

    def close_scope(self, scope: int) -> None:
        """The scope is over; answers that nobody asked for stop the run as diverged."""
        if self.halves:
            go_past(self.halves, is_side=self.is_side())
        if self.streams:
            for stream in [each for each in self.streams if each.call.scope == scope]:
                stream.leave()
        try:
            self.book.close(scope)
        except Diverged as error:
            raise self.stop(error) from None

    def refuse_invalid(self, when: str) -> None:
        """Raise `InvalidState` before anything is published that fails a validator."""
        found = first_fault(self.validators, self.state.root)
        if found is not None:
            raise InvalidState(self.id, *found, when)

    def refuse_doubt(self, *, is_end: bool = False) -> None:
        """A turn or the run ends: an effect whose outcome is not known stops it as in doubt."""
        left = self.book.undecided()
        if left is not None and isinstance(left.entry, Intended):
            why = "it was cut off in a turn that was run anew without it"
            raise self.stop(InDoubt(self.id, left.call.name, left.entry.key, why))
        for key, call in list(self.doing.items()) if self.doing else ():
            if call.scope == self.turn or is_end:
                why = "the agent went on while a thread or task still did it; wait for it first"
                raise self.stop(InDoubt(self.id, call.name, key, why))

    def drop_pending(self) -> None:
        """Forget what was not committed: the code went another way than the journal."""
        with self.lock:
            self._pending = []
            self.streams.clear()

    def record(
        self,
        entry: Entry,
        *,
        before: Sequence[Entry] = (),
        intents: Sequence[bytes] = (),
        body: RunBody | None = None,
    ) -> tuple[int, int, Ticket]:
        """Queue `entry`, behind all that is pending and `before`; returns row id, index, ticket."""
        with self.lock:
            if self.is_over:
                self._refuse_if_over()
            if self.streams:
                self.spill()  # What the agent has read stands before what it does next.
            self._pending += [*before, entry] if before else [entry]
            return self._submit(intents, body)

    def _submit(
        self, intents: Sequence[bytes] = (), body: RunBody | None = None
    ) -> tuple[int, int, Ticket]:
        """Under the lock: queue what is pending as one row; its id, the last index, the ticket."""
        entries, self._pending = self._pending, []
        if self.guard.redacted:
            entries[:0] = lacks.redacted(self.guard, self.log, self.clock.now())
        try:
            row, ticket = self.writer.submit(entries, turn=self.turn, intents=intents, body=body)
        except (NotStorable, KeyboardInterrupt) as error:
            # The changes in it count as saved: what followed could not be read without it.
            self.stopped = self.stopped or error
            raise
        # Nothing follows a run's end, whatever its threads still do.
        self.is_over = isinstance(entries[-1], Finished | Failed)
        self._last = ticket
        if self.care.is_child:
            self.care.pulse.tell(Told(moved=True))
        self.bytes_since_base += len(row.body)
        for index, each in enumerate(entries):
            kind = type(each)
            is_end = isinstance(each, Streamed) and each.how == ENDED
            self.steps += kind is Answer or kind is Happened or is_end
            if kind is Based or (kind in _CHANGES and each.delta):  # type: ignore[union-attr]  # only entries of `_CHANGES` get there, and each has a delta
                self.state.locate((row.id, index))
        if is_outside(self.turn, entries):
            self.outside_rows.append(row.id)
        return row.id, len(entries) - 1, ticket

    def lack(self, places: list[str]) -> None:
        """Tell that values came back without what was redacted in them."""
        self.pend(lacks.incomplete(places, self.log, self.clock.now()))

    def pend(self, *entries: Entry) -> None:
        """Let entries ride along with the next commit, or be flushed a moment later."""
        with self.lock:
            self._pending.extend(entries)
            self.pending_serial += 1

    def spill(self) -> None:
        """Let what streams have given ride along too."""
        for stream in self.streams:
            stream.spill()

    def queue(self) -> Ticket | None:
        """Queue what is pending; returns the ticket to wait for, if anything was."""
        with self.lock:
            self.spill()
            if not self._pending:
                return None
            self._refuse_if_over()
            return self._submit()[2]

    def flush(self) -> None:
        """Commit what is pending; what another thread has queued of it is waited for."""
        ticket = self.queue()
        if ticket is not None:
            failpoint.reach("pending.flushing")
            self.writer.finish(ticket)
            failpoint.reach("pending.flushed")
        self.settle()

    def let_go(self) -> None:
        """Interrupted or ended: keep what is pending, and wait for what a cancelled call queued."""
        (self.settle if is_broken(self.stopped) or self.is_over else self.flush)()

    def settle(self) -> None:
        """Wait until all that was queued can be read."""
        if self._last is not None and not self._last.is_over:
            failpoint.reach("queue.waiting")
            self.writer.finish(self._last)
            failpoint.reach("queue.empty")

    @property
    def is_pending(self) -> bool:
        """Whether something waits for the next commit."""
        return bool(self._pending)

    def answer(
        self, call: Call, value: object, took_s: float, usage: Usage | None
    ) -> tuple[object, Ticket]:
        """Queue a step's answer; returns it as a replay would, and the ticket to wait for."""
        data = values.encode(value, path=f"the answer of {call.name}")
        entry = Answer(call, self.reader.chunks.keep(data), self.clock.now(), took_s, usage)
        row, index, ticket = self.record(entry)
        self.received(call, usage)
        return self.give(data, row, index, value), ticket

    def give(self, data: bytes, row: int, index: int, value: object = None) -> object:
        """A recorded value as tracked containers that know where it is recorded."""
        if data[0] != FORM_PLAIN or value is None:
            value = self.reader.value(data)
            self.state.answered(data, (row, index))
        return track(value, source=(row, index))

    def received(self, call: Call, usage: Usage | None) -> None:
        """A new answer was received."""
        self.book.received(call.scope)
        if usage is not None:
            with self.lock:
                self.used = total([self.used, usage])
                self.model_call = call, usage

    def replay(self, record: Record) -> object:
        """The recorded answer of a step, clock or checkpoint."""
        entry = record.entry
        self.book.received(record.call.scope)
        match entry:
            case Answer():
                before = self.guard.gaps
                answer = self.give(entry.value, record.row, record.index)
                if self.guard.gaps > before:
                    self.lack([f"the answer of {record.call.name}"])
                return answer
            case Noted():
                return self.reader.value(entry.value)
            case _:
                return None

    def raised(
        self, call: Call, error: BaseException, took_s: float, known: Sequence[type[BaseException]]
    ) -> None:
        """Note a step's error; it is recorded with whatever the run does next."""
        attempt = self.count_attempt(call)
        raised = Raised(call, to_error(error, known), self.clock.now(), took_s, attempt)
        self.pend(raised)
        self.book.received(call.scope)
        self.mark(error, raised)

    def count_attempt(self, call: Call) -> int:
        """The number of this attempt at a call, through all lives of the run."""
        key = key_of(call)
        self.book.attempts[key] = self.book.attempts.get(key, 0) + 1
        return self.book.attempts[key]

    def mark(self, error: BaseException, raised: Raised) -> None:
        """Remember on an exception which record it is, in case it ends the run."""
        self.error = describe(raised.error)
        mark(error, (self, raised, self.book.own, self.book.all))

    def blame(self, error: BaseException) -> None:
        """An error that ended the run is no answer: note it after all that others asked since.

        Where the agent's own code asked something after its own error, it went past that one.
        """
        for session, raised, mine, all_ in marks(error):
            is_past = mine < self.book.own and not raised.call.is_side
            if session is self and all_ < self.book.all and not is_past:
                self.pend(raised)

    def note(self, frame: "Frame", name: str, value: object) -> object:
        """A reading that is recorded with the next commit: the recorded one if there is one."""
        call, record = self.ask(Question(name, b"", [], {}), frame)
        if record is not None:
            return self.replay(record)
        self.pend(Noted(call, values.encode(value)))
        self.book.received(call.scope)
        return value


class Frame(msgspec.Struct, frozen=True):
    """A run's own code (`inside` no call), or the inside of a step or effect of it."""

    session: "Session"
    function: str = ""
    inside: Call | None = None
    is_effect: bool = False
    key: str | None = None
    limit: Limit | None = None

    @property
    def call(self) -> bytes:
        """The scope of what is called here inside a call; empty in the run's own code."""
        if self.inside is None:
            return b""
        return hashlib.sha256(repr(key_of(self.inside)).encode()).digest()[:16]
