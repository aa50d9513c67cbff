"""What goes on while runs are active: heartbeats, commits of what rides along, wishes to stop."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping

from holdfast.clock import Clock
from holdfast.engine.session import Session
from holdfast.errors import Cancelled, HoldfastError, RunStopped, StoreError
from holdfast.store.leases import BEAT_S, Leases

TICK_S = 0.047
"""What is pending through two ticks is committed: within 100 ms.

Not 50: that beats in time with steps of 100 ms, and each would end just when this thread commits.
"""

IDLE_TICKS = 20
"""After so many ticks without a run, a second, the thread sleeps until one begins.

Not at once: of short runs one after the other each would have to wake it, and wait for it too.
"""

Asked = Callable[[], Mapping[int, Callable[[str], RunStopped]]]
"""The runs that are to stop at their next call, and as what."""


class Housekeeper:
    """One thread per store, alive while runs are."""

    def __init__(self, leases: Leases, clock: Clock, asked: Asked) -> None:
        self._leases, self._clock, self._asked = leases, clock, asked
        self._seen: dict[Session, int] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._idle_ticks, self._is_asleep = 0, False
        self._is_closed = False

    def add(self, session: Session) -> None:
        """Look after a session; of a run that was made just now nobody can have asked anything."""
        if session.history is not None:
            self._stop_asked([session])
        with self._lock:
            self._seen[session] = -1
            self._idle_ticks = 0
            was_asleep, self._is_asleep = self._is_asleep, False
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="holdfast-housekeeper", daemon=True
                )
                self._thread.start()
        if was_asleep:
            self._wake.set()

    def remove(self, session: Session) -> None:
        """Look after it no more."""
        with self._lock:
            self._seen.pop(session, None)

    def sessions(self) -> list[Session]:
        """The sessions looked after."""
        with self._lock:
            return list(self._seen)

    def abandon(self) -> list[Session]:
        """In a forked child: look after nothing; gives what the parent looks after.

        Its thread is not here, and nobody would ever let go of what it held when it forked.
        """
        self._lock, self._wake, self._thread = threading.Lock(), threading.Event(), None
        self._is_asleep = False
        left, self._seen = list(self._seen), {}
        return left

    def _work(self) -> None:
        beaten = self._clock.monotonic()
        while not self._is_closed:
            if self._falls_asleep():
                self._wake.wait()
                self._wake.clear()
                beaten = self._clock.monotonic()  # Whoever takes a run beats for it at once.
                continue
            if self._clock.monotonic() - beaten >= BEAT_S:
                self._leases.beat()
                self._stop_asked(self.sessions())
                beaten = self._clock.monotonic()
            self._look_after()
            self._wake.wait(TICK_S)
            self._wake.clear()

    def _look_after(self) -> None:
        for session in self.sessions():
            session.pacer.tick()
            self._spill(session)
            self._flush_if_idle(session)

    def _falls_asleep(self) -> bool:
        """Whether there was no run for a while; `add` wakes the thread from here on."""
        with self._lock:
            self._idle_ticks = 0 if self._seen else self._idle_ticks + 1
            self._is_asleep = self._idle_ticks > IDLE_TICKS
            return self._is_asleep

    def _stop_asked(self, sessions: Iterable[Session]) -> None:
        """Have runs that somebody cancelled, or wants to hold, stop at their next call.

        A child that began after its parent had been called off is called off with it.
        """
        with contextlib.suppress(StoreError):  # The commits of the run say so themselves.
            asked, called_off = self._asked(), set[str]()
            for session in sessions:  # A parent stands before its children.
                run, why = session.writer.run, asked.get(session.writer.run.row.no)
                origin = run.body.origin
                if origin is not None and origin.is_child and origin.run in called_off:
                    why = Cancelled
                if why is not None:
                    session.stop(why(session.id))
                if why is Cancelled:
                    called_off.add(session.id)

    def _spill(self, session: Session) -> None:
        """Have what streams gave a while ago recorded, so that slow ones can be followed."""
        now = self._clock.monotonic()
        for stream in list(session.streams):
            if stream.is_old(now):
                with contextlib.suppress(HoldfastError):  # Said where the stream is read.
                    stream.spill()

    def _flush_if_idle(self, session: Session) -> None:
        serial = session.pending_serial
        is_idle = session.is_pending and self._seen.get(session) == serial
        if is_idle or session.pacer.is_lazy:
            try:
                if is_idle:
                    session.flush()
                session.settle()
            except HoldfastError as error:
                # The session refuses from now on; its own thread raises this at its next call.
                session.log.warning("could not commit what was pending: %s", error)
        with self._lock:
            if session in self._seen:
                self._seen[session] = serial

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._wake.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
