"""Recovers every run of a store whose process is gone, a few at a time, as a service does."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.clock import Clock
from holdfast.engine.agents import Agent
from holdfast.engine.ask import still_waiting
from holdfast.engine.incident import goes_on
from holdfast.engine.order import Order
from holdfast.engine.supervise import Supervisor, Terms
from holdfast.engine.tell import Teller
from holdfast.errors import (
    HoldfastError,
    RunHeld,
    StoreBusy,
    StoreUnwritable,
    UnknownAgent,
    Waiting,
)
from holdfast.model.run import Status
from holdfast.store.open import Opened
from holdfast.store.reader import Run as StoredRun
from holdfast.store.steady import left_of

LOOK_S = 1.0
"""How often the store is looked at; a run is taken when two looks have found nobody at it."""
FIRST_LOOK_S = 0.5
WHOLE_LOOK_S, WHOLE_LOOK_SHARE = 10.0, 0.02
"""How often all runs are looked at, and what that may take of the time: finished ones too may be
rolled back, and many of them are slow to read."""
TRY_AGAIN_S, TRY_AGAIN_S_MAX = 2.0, 60.0
"""How long a run is left whose process could not even be started, at first and at most."""
STARTS_PER_WORKER, STARTS_WINDOW_S = 4, 10.0
"""How many processes are started in that time at most: a storm of restarts is damped."""

Find = Callable[[str, str], Agent[..., Any]]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How a store is watched: with how many processes, and whether once or on and on."""

    workers: int = 4
    is_once: bool = False


class Watcher:
    """Watches one store. Agents are found by `find`, among the modules the operator named."""

    def __init__(
        self,
        opened: Opened,
        supervisor: Supervisor,
        clock: Clock,
        find: Find,
        terms: Terms,
        *,
        teller: Teller | None = None,
    ) -> None:
        self._opened, self._supervisor, self._clock = opened, supervisor, clock
        self._find, self._terms, self._teller = find, terms, teller
        self._lock = threading.Lock()
        self._working: dict[str, threading.Thread] = {}
        self._left_alone: dict[str, int] = {}
        self._put_off = Later(clock)
        self._suspects: dict[str, int] = {}
        self._oldest_open = 0
        self._whole_look_at = 0.0
        self._ended: dict[str, str] = {}

    def watch(self, plan: Plan) -> dict[str, str]:
        """Recover runs until told to stop (`KeyboardInterrupt`); once: until none is left.

        Gives each run that was recovered, and what came of it.
        """
        damper = Damper(plan.workers * STARTS_PER_WORKER, STARTS_WINDOW_S)
        looks = 0
        try:
            while True:
                due = self._look()
                looks += 1
                if self._teller is not None:
                    self._teller.look()
                for run in due:
                    self._await_worker(plan.workers, damper)
                    self._begin(run, is_once=plan.is_once)
                if plan.is_once and looks > 1 and not due and not self._busy():
                    self._tell_the_rest()
                    return dict(self._ended)
                self._terms.rest(self._clock, FIRST_LOOK_S if looks == 1 else LOOK_S)
        finally:
            for thread in list(self._working.values()):
                thread.join()

    def _tell_the_rest(self) -> None:
        """What began to wait a moment ago is told before the watch is over."""
        if self._teller is not None:
            self._teller.join()
            self._teller.tell()

    def _look(self) -> list[StoredRun]:
        """Runs that two looks in a row found without a holder, under the same epoch; oldest first.

        Below the oldest run that is not finished all is read again only now and then.
        """
        began = self._clock.monotonic()
        is_whole = began >= self._whole_look_at
        suspects: dict[str, int] = {}
        due: list[StoredRun] = []
        oldest = None
        for run in self._opened.reader.runs():
            if run.row.no < self._oldest_open and not is_whole:
                break
            if run.body.status is not Status.FINISHED:
                oldest = run.row.no
            if not self._is_abandoned(run):
                continue
            if self._suspects.get(run.body.id) == run.row.epoch:
                due.append(run)
            suspects[run.body.id] = run.row.epoch
        self._suspects = suspects
        self._oldest_open = self._oldest_open if oldest is None else oldest
        if is_whole:
            now = self._clock.monotonic()
            self._whole_look_at = now + max(WHOLE_LOOK_S, (now - began) / WHOLE_LOOK_SHARE)
        return due[::-1]

    def _is_abandoned(self, run: StoredRun) -> bool:
        """Whether the run could go on and nobody is at it, here or elsewhere."""
        id_ = run.body.id
        with self._lock:
            is_known = id_ in self._working or self._left_alone.get(id_) == run.row.epoch
            is_known = is_known or self._put_off.is_waiting(id_)
        if is_known or self._opened.leases.is_held(run.row.no):
            return False
        if self._is_left_to_parent(run):
            return False
        if run.body.status is Status.WAITING:
            return still_waiting(self._opened, run, self._clock.now()) is None
        if run.body.status is Status.FAILED:
            return self._goes_on(run)
        return run.body.status in (Status.RUNNING, Status.ROLLING_BACK)

    def _goes_on(self, run: StoredRun) -> bool:
        """Whether a failed run was to go on, and nobody sees to it; a child is its parent's.

        It is asked once: nothing changes in a failed run by itself.
        """
        is_own = run.body.origin is None or not run.body.origin.is_child
        if is_own and goes_on(self._opened.reader, run):
            return True
        with self._lock:
            self._left_alone[run.body.id] = run.row.epoch
        return False

    def _is_left_to_parent(self, run: StoredRun) -> bool:
        """Whether its parent goes on with it, or came to its end without it."""
        origin = run.body.origin
        if origin is None or not origin.is_child:
            return False
        parent = left_of(self._opened.reader, origin.run)
        theirs = (Status.RUNNING, Status.WAITING, Status.FINISHED)
        return parent is not None and parent.body.status in theirs

    def _busy(self) -> bool:
        with self._lock:
            return bool(self._working)

    def _await_worker(self, workers: int, damper: "Damper") -> None:
        """Wait until one more process may be started."""
        while True:
            with self._lock:
                is_free = len(self._working) < workers
            if is_free and damper.may_start(self._clock.monotonic()):
                return
            self._terms.rest(self._clock, FIRST_LOOK_S / 5)

    def _begin(self, run: StoredRun, *, is_once: bool) -> None:
        body = run.body
        try:
            agent = self._find(body.agent, body.module)
        except UnknownAgent as error:
            self._leave_alone(run, "unknown agent", error)
            return
        order = Order(agent=agent, run=body.id)
        thread = threading.Thread(
            target=self._recover, args=(run, order, is_once), name=f"holdfast-{body.id}"
        )
        with self._lock:
            self._working[body.id] = thread
        thread.start()

    def _recover(self, run: StoredRun, order: Order, is_once: bool) -> None:  # noqa: FBT001 a thread's argument
        outcome = "failed"
        try:
            self._supervisor.recover(order, self._terms)
            outcome = "finished"
        except RunHeld as error:
            outcome = "held"
            self._tell(outcome, run, error)
        except KeyboardInterrupt:
            outcome = "stopped"
        except Waiting as error:
            outcome = type(error).__name__
            self._tell("person", run, error)  # Looked at all the while: an answer may come.
        except (StoreBusy, StoreUnwritable, OSError) as error:
            outcome = type(error).__name__
            self._fail(run, error, is_once=is_once)
        except HoldfastError as error:
            outcome = type(error).__name__
            self._leave_alone(run, "person", error)
        finally:
            with self._lock:
                self._ended[order.run] = outcome
                del self._working[order.run]

    def _fail(self, run: StoredRun, error: Exception, *, is_once: bool) -> None:
        """Nothing could be done, and nobody has recorded why: try again later, if there is one."""
        if is_once:
            self._leave_alone(run, "person", error)
            return
        with self._lock:
            self._put_off.put(run.body.id)
        self._tell("error", run, error)

    def _leave_alone(self, run: StoredRun, what: str, error: Exception) -> None:
        """Say it once; the run is looked at again when somebody else has worked on it."""
        now = self._opened.reader.find(run.body.id) or run
        with self._lock:
            self._left_alone[run.body.id] = now.row.epoch
            self._ended[run.body.id] = what
        self._tell(what, run, error)

    def _tell(self, what: str, run: StoredRun, error: Exception) -> None:
        self._terms.happening(what, {"run": run.body.id, "error": str(error)})


class Later:
    """Runs that are left for a while: each time twice as long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, tuple[float, float]] = {}

    def put(self, run: str) -> None:
        """Leave a run for a while."""
        wait_s = min(2 * self._until.get(run, (0.0, TRY_AGAIN_S / 2))[1], TRY_AGAIN_S_MAX)
        self._until[run] = (self._clock.monotonic() + wait_s, wait_s)

    def is_waiting(self, run: str) -> bool:
        """Whether it is to be left still."""
        return self._clock.monotonic() < self._until.get(run, (0.0, 0.0))[0]


class Damper:
    """Lets no more than `limit` starts happen in `window_s` seconds."""

    def __init__(self, limit: int, window_s: float) -> None:
        self._limit, self._window_s = limit, window_s
        self._starts: deque[float] = deque()

    def may_start(self, now: float) -> bool:
        """Whether one may start now; counts it if so."""
        while self._starts and now - self._starts[0] >= self._window_s:
            self._starts.popleft()
        if len(self._starts) >= self._limit:
            return False
        self._starts.append(now)
        return True
