"""Commits shared by the runs of one process: whoever is first writes for all who wait."""

import contextlib
import threading
from collections import deque
from typing import TYPE_CHECKING

from holdfast.ondemand import OnDemand
from holdfast.store.backends.base import Records, Write
from holdfast.store.chunks import Chunks

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")

BATCH_MAX = 256


class Ticket:
    """A write on its way: `done` is what `Records.commit` said of it."""

    __slots__ = ("done", "error", "is_over", "loop", "waiter", "wake", "write")

    def __init__(self, write: Write) -> None:
        self.write = write
        self.done = -1
        self.error: Exception | None = None
        self.is_over = False
        self.wake: threading.Lock | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.waiter: asyncio.Future[None] | None = None

    def outcome(self) -> int:
        """What the commit said; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.done


class Committer:
    """A queue in front of `Records.commit`. Writes of one run stay in order."""

    def __init__(self, records: Records, chunks: Chunks | None = None) -> None:
        self._records, self.chunks = records, chunks
        self._queue: deque[Ticket] = deque()
        self._leading = threading.RLock()
        self._is_led = False
        self._hand: threading.Thread | None = None
        self._called = threading.Event()
        self._is_closed = False
        self._fault: Exception | None = None

    def submit(self, write: Write) -> Ticket:
        """Queue a write. It is committed even if nobody waits for it, once anybody does."""
        ticket = Ticket(write)
        self._queue.append(ticket)
        return ticket

    def finish(self, ticket: Ticket) -> int:
        """Wait until the write is durable, leading the commit when nobody else does."""
        while not ticket.is_over:
            if self._fault is not None:
                raise self._fault
            try:
                if self._leading.acquire(blocking=False):
                    self._drain()
                else:
                    self._await_leader(ticket)
            finally:
                self._let_lead()
        return ticket.done if ticket.error is None else ticket.outcome()

    def _let_lead(self) -> None:
        """Lead no more, if this thread did: Ctrl-C may come before it knows that it does."""
        try:
            self._leading.release()
        except RuntimeError:
            return  # Another thread leads.
        if self._queue:
            self._pass_on()

    def _await_leader(self, ticket: Ticket) -> None:
        # A lock that is let go of by who wakes us: an Event is five times the work.
        ticket.wake = wake = threading.Lock()
        wake.acquire()
        # The leader may have finished between our look and the lock: look once more.
        if not ticket.is_over and self._is_led:
            wake.acquire(timeout=0.05)

    def _drain(self) -> None:
        # Writes stay queued until they are over: when Ctrl-C ends the thread that leads, the next
        # one finds them all, and what was written already is recognised when written again.
        queue = self._queue
        self._is_led = True
        try:
            while queue and queue[0].is_over:
                queue.popleft()
            if not queue:
                return
            if len(queue) == 1:  # As it mostly is, and every answer waits for it.
                batch = [queue[0]]
                writes = [queue[0].write]
            else:
                batch = [queue[n] for n in range(min(len(queue), BATCH_MAX))]
                writes = [ticket.write for ticket in batch]
            try:
                results = self._records.commit(writes)
            except Exception as error:  # noqa: BLE001 it rises where each write is waited for
                for ticket in batch:
                    ticket.error = error
            else:
                for ticket, done in zip(batch, results, strict=True):
                    ticket.done = done
            _settle(batch)
            for _ in batch:
                queue.popleft()
        finally:
            self._is_led = False

    def _pass_on(self) -> None:
        """Somebody may have queued while we led: wake one to lead next."""
        try:
            ticket = self._queue[0]
        except IndexError:
            return
        if ticket.wake is not None:
            _ring(ticket.wake)
        elif self._hand is not None:
            self._called.set()

    async def afinish(self, ticket: Ticket) -> int:
        """Wait until the write is durable while the event loop goes on.

        A cancelled caller leaves; its write is committed all the same.
        """
        if self._is_closed:
            return self.finish(ticket)  # It says what has become of the store.
        if not ticket.is_over:
            loop = asyncio.get_running_loop()
            waiter = loop.create_future()
            ticket.loop, ticket.waiter = loop, waiter
            self._call_hand()
            if ticket.is_over:  # Settled by another leader before it saw the waiter.
                return ticket.outcome()
            await waiter
        return ticket.outcome()

    def _call_hand(self) -> None:
        if self._hand is None:
            self._hand = threading.Thread(target=self._serve, name="holdfast-commit", daemon=True)
            self._hand.start()
        self._called.set()

    def _serve(self) -> None:
        while not self._is_closed:
            self._called.wait()
            self._called.clear()
            while self._queue and not self._is_closed:
                with self._leading:
                    self._drain()
                self._pass_on()

    def refuse(self, fault: Exception) -> None:
        """In a forked child: every wait raises `fault`; the locks are the parent's."""
        self._fault, self._is_closed = fault, True

    def close(self) -> None:
        """End the thread and commit what is queued."""
        self._is_closed = True
        self._called.set()
        if self._hand is not None:
            self._hand.join()
            self._hand = None
        with self._leading:
            while self._queue:
                self._drain()


def _settle(batch: list[Ticket]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] | None = None
    for ticket in batch:
        ticket.is_over = True
        if ticket.wake is not None:
            _ring(ticket.wake)
        if ticket.waiter is not None and ticket.loop is not None:
            loops = loops if loops is not None else {}
            loops.setdefault(ticket.loop, []).append(ticket.waiter)
    for loop, waiters in loops.items() if loops else ():
        with contextlib.suppress(RuntimeError):  # Closed by now: nobody waits there any more.
            loop.call_soon_threadsafe(_release, waiters)


def _ring(wake: threading.Lock) -> None:
    with contextlib.suppress(RuntimeError):  # Rung already, by the leader before.
        wake.release()


def _release(waiters: "list[asyncio.Future[None]]") -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
