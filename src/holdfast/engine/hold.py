"""A run held by a verb: its lease with a heartbeat; one that is at work is asked to pause first.

Who holds a run is asked by a durable wish, and lets go at its next call. The wish stands as long as
the run is paused, so that a supervisor knows to wait. It counts for a moment only and is renewed:
one whose author was killed is soon nobody's, and the run goes on.
"""

import contextlib
import datetime as dt
import threading
from collections.abc import Iterator

from holdfast.clock import Clock
from holdfast.errors import NotPaused, RunHeld, UnknownRun, UsageError
from holdfast.model.limits import seconds
from holdfast.model.run import Status
from holdfast.store import wishes
from holdfast.store.leases import BEAT_S
from holdfast.store.open import Opened
from holdfast.store.reader import Run

PAUSE_S = 30.0
"""How long whoever works on a run may take to let it go, unless said otherwise."""
COUNTS_S, RENEW_S = 3.0, 1.0
"""How long a wish to pause counts, and how often it is renewed while it is waited for."""
LOOK_S = 0.05


def patience_s(wait: float | str) -> float:
    """`wait=` in seconds; refused if it cannot be meant."""
    try:
        return seconds(wait)
    except ValueError as error:
        raise UsageError(f"wait=: {error}") from None


class Holds:
    """The runs that one store handle holds to do something to them."""

    def __init__(self, opened: Opened, clock: Clock) -> None:
        self._opened, self._clock = opened, clock
        self._paused: set[int] = set()

    @contextlib.contextmanager
    def hold(self, run: Run) -> Iterator[Run]:
        """Hold a run that nobody works on, or that is paused here; gives it as it stands then."""
        if run.row.no in self._paused:
            yield self._now(run)
            return
        self._opened.records.revive()
        if not self._opened.leases.take(run.row.no):
            raise self._held(run)
        with self._beating(run):
            # What was cut off may have left a wish; whoever is alive and waits renews his.
            wishes.resume(self._opened, run.row.no)
            yield self._now(run)

    @contextlib.contextmanager
    def pause(self, run: Run, wait_s: float = PAUSE_S) -> Iterator[Run]:
        """Hold a run, whoever works on it: that process is asked to let it go at its next call.

        `NotPaused` where it does not within `wait_s`; then nothing was changed. Afterwards a
        supervised or watched run goes on by itself.
        """
        no = run.row.no
        self._opened.records.revive()
        try:
            self._await_lease(run, wait_s)
            with self._beating(run):
                self._paused.add(no)
                yield self._now(run)
        finally:
            self._paused.discard(no)
            wishes.resume(self._opened, no)

    def is_elsewhere(self, run: Run) -> bool:
        """Whether somebody has the run paused, is about to, or rolls it back now.

        A wish that was left behind is forgotten.
        """
        is_held = self._opened.leases.is_held(run.row.no)
        until = wishes.pauses(self._opened).get(run.row.no)
        if until is None:
            return is_held and run.body.status is Status.ROLLING_BACK
        if is_held or until > self._clock.now():
            return True
        wishes.resume(self._opened, run.row.no)
        return False

    def _await_lease(self, run: Run, wait_s: float) -> None:
        no, began = run.row.no, self._clock.monotonic()
        renewed: float | None = None
        while True:
            now = self._clock.monotonic()
            if renewed is None or now - renewed >= RENEW_S:
                wishes.pause(self._opened, no, self._clock.now() + COUNTS_S)
                renewed = now
            if self._opened.leases.take(no):
                return
            if now - began >= wait_s:
                raise NotPaused(run.body.id, str(self._now(run).body.holder), wait_s)
            self._clock.sleep(LOOK_S)

    @contextlib.contextmanager
    def _beating(self, run: Run) -> Iterator[None]:
        """The lease is ours: say so all the while, or others take us for dead; then let it go."""
        is_over = threading.Event()

        def beat() -> None:
            while not is_over.wait(BEAT_S):
                self._opened.leases.beat()

        beating = threading.Thread(target=beat, name="holdfast-hold", daemon=True)
        beating.start()
        try:
            yield
        finally:
            is_over.set()
            beating.join()
            self._opened.leases.give(run.row.no)

    def _now(self, run: Run) -> Run:
        found = self._opened.reader.find(run.body.id)
        if found is None or found.row.no != run.row.no:  # Removed before it was held.
            raise UnknownRun(run.body.id, str(self._opened.path))
        return found

    def _held(self, run: Run) -> RunHeld:
        holder = self._now(run).body.holder
        since = dt.datetime.fromtimestamp(holder.since, dt.UTC)
        return RunHeld(run.body.id, str(holder), f"{since:%Y-%m-%d %H:%M:%S} UTC")
