"""A life of a run from begin to end, in a thread or under an event loop."""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.engine import context, interrupted, left
from holdfast.engine.agents import Agent
from holdfast.engine.call import Left
from holdfast.engine.cancel import cancel, children_of
from holdfast.engine.drive import PAUSE_S
from holdfast.engine.faults import is_cancelled
from holdfast.engine.fork import Fork, fork
from holdfast.engine.halves import go_past
from holdfast.engine.hold import Holds
from holdfast.engine.housekeeper import Housekeeper
from holdfast.engine.inbox import Inbox
from holdfast.engine.incident import goes_on
from holdfast.engine.judge import Supposed
from holdfast.engine.launch import Launcher
from holdfast.engine.line import is_loop_running
from holdfast.engine.order import Done, Life, Order
from holdfast.engine.others import let_others_ask
from holdfast.engine.points import Points
from holdfast.engine.resolve import Permit, Verdict, allow, resolve
from holdfast.engine.rollback import Rollbacks
from holdfast.engine.run import Run
from holdfast.engine.session import Session
from holdfast.errors import (
    Cancelled,
    HoldfastError,
    NestedCall,
    Paused,
    RunStopped,
    StoreError,
    Waiting,
    WrongLoop,
)
from holdfast.model.cadence import Pace
from holdfast.model.decision import Decision
from holdfast.model.secrets import SecretRules
from holdfast.ondemand import OnDemand
from holdfast.store import wishes
from holdfast.store.codec.vault import Guard, guarded
from holdfast.store.open import Opened
from holdfast.store.reader import Run as StoredRun

if TYPE_CHECKING:
    import asyncio

    from holdfast.engine import supervise as supervising
    from holdfast.engine import tell as telling
    from holdfast.engine import watch as watching
    from holdfast.engine.notify import Notifier
else:
    asyncio = OnDemand("asyncio")
    supervising = OnDemand("holdfast.engine.supervise")  # It loads subprocess.
    telling = OnDemand("holdfast.engine.tell")
    watching = OnDemand("holdfast.engine.watch")

EFFECTS_S_MAX = 10.0
HALTED = (Waiting, Paused, Cancelled)
"""What stops a run without a failure."""
CALLED_OFF = (KeyboardInterrupt, SystemExit, Paused)
"""Whoever runs the process, or wants to hold the run, told it to stop: nothing failed."""


class Lives:
    """The runs that one store handle carries out."""

    def __init__(
        self,
        opened: Opened,
        clock: Clock,
        chance: random.Random,
        environment: Mapping[str, str],
        *,
        rules: SecretRules,
        pace: Pace,
        is_checked: bool = False,
    ) -> None:
        self.notifier: Notifier | None = None
        self._opened, self._clock, self._chance = opened, clock, chance
        self._rules = rules
        self._launcher = Launcher(
            opened, clock, environment, chance, pace=pace, is_checked=is_checked
        )
        self._launcher.judge.standing = self._standing
        self._housekeeper = Housekeeper(opened.leases, clock, self._asked)
        self._holds = Holds(opened, clock)

    def _asked(self) -> dict[int, Callable[[str], RunStopped]]:
        """Which runs people want to stop; a run to be cancelled need not be paused."""
        now, asked = self._clock.now(), dict[int, Callable[[str], RunStopped]]()
        for run, until in wishes.pauses(self._opened).items():
            if until > now:
                asked[run] = Paused
        return asked | dict.fromkeys(wishes.asked(self._opened), Cancelled)

    def carry_out(self, order: Order) -> Any:  # noqa: ANN401 the agent's own result
        """Carry an order out in this thread."""
        _refuse_nested(order)
        if order.agent.is_async and is_loop_running():
            raise WrongLoop("store.run", "an event loop runs in this thread")
        try:
            if order.agent.is_async:
                return asyncio.run(self.acarry_out(order))
            return self._carry_out(order, lambda _: None)
        except KeyboardInterrupt as error:
            interrupted.tell(error, order)
            raise

    def _carry_out(self, order: Order, begun_with: Callable[[Session], None]) -> Any:  # noqa: ANN401
        try:
            return self._live(order, begun_with)
        except RunStopped:
            self._notify(order.run)
            raise

    def _notify(self, run: str) -> None:
        """The run was let go and may wait for a person: say so, if anybody is to be told."""
        if self.notifier is not None:
            self.notifier.tell_of(run)

    def _live(self, order: Order, begun_with: Callable[[Session], None]) -> Any:  # noqa: ANN401
        with guarded(self._guard()):
            begun = self._launcher.begin(order)
        if isinstance(begun, Done):
            return begun.value
        begun_with(begun.session)
        with self._living(begun) as run:
            try:
                value = order.agent.fn(run, *begun.args, **begun.kwargs)
                result, ticket = self._launcher.conclude(begun.session, value)
                failpoint.reach("run.ending")
                begun.session.writer.finish(ticket)
                failpoint.reach("run.ended")
            except Exception as error:  # noqa: BLE001 recorded, then raised
                for _ in self._while_doing(begun.session):
                    self._clock.sleep(PAUSE_S)
                if begun.session.back is None:
                    failed = self._fail(begun.session, error)
                    raise failed from failed.__cause__
            else:
                return result
        return self._carry_out(_back(order, begun.session), begun_with)

    async def acarry_out(self, order: Order) -> Any:  # noqa: ANN401 the agent's own result
        """Carry an order out while the event loop goes on; a synchronous agent gets a thread."""
        _refuse_nested(order)
        if not order.agent.is_async:
            with Leash(Session.cancel) as leash:
                return await asyncio.to_thread(self._carry_out, order, leash.tie)
        try:
            return await self._alive(order)
        except RunStopped:
            await asyncio.to_thread(self._notify, order.run)
            raise
        except asyncio.CancelledError as error:
            interrupted.tell(error, order)
            raise

    async def _alive(self, order: Order) -> Any:  # noqa: ANN401 the agent's own result
        with Leash(self._launcher.end) as leash:
            begun = await asyncio.to_thread(self._begin, order, leash)
        if isinstance(begun, Done):
            return begun.value
        with self._living(begun) as run:
            try:
                value = await order.agent.fn(run, *begun.args, **begun.kwargs)
                await let_others_ask(begun.session)
                result, ticket = self._launcher.conclude(begun.session, value)
                failpoint.reach("arun.ending")
                await begun.session.writer.afinish(ticket)
                failpoint.reach("arun.ended")
            except Exception as error:  # noqa: BLE001 recorded, then raised
                for _ in self._while_doing(begun.session):
                    await asyncio.sleep(PAUSE_S)
                if begun.session.back is None:
                    failed = await asyncio.to_thread(self._fail, begun.session, error)
                    raise failed from failed.__cause__
            else:
                return result
        return await self.acarry_out(_back(order, begun.session))

    def _fail(self, session: Session, error: Exception) -> BaseException:
        """Record why the run stopped; a section that a timeout left on the way is aborted first.

        Of a step that was left nothing is noted: this error may be what cancelled it.
        """
        if session.stopped is None and not isinstance(error, RunStopped | StoreError):
            session.halves[:] = [half for half in session.halves if not isinstance(half, Left)]
            go_past(session.halves, is_side=False)
        return self._launcher.fail(session, error)

    def _while_doing(self, session: Session) -> Iterator[None]:
        """Where nothing failed: effects that tasks or threads beside the agent do may still end.

        Cut off, they would be in doubt.
        """
        began = self._clock.monotonic()
        while isinstance(session.stopped, HALTED) and session.doing:
            if self._clock.monotonic() - began > EFFECTS_S_MAX:
                return
            yield

    def _begin(self, order: Order, leash: "Leash") -> Life | Done:
        with guarded(self._guard()):
            begun = self._launcher.begin(order)
        if isinstance(begun, Life):
            leash.tie(begun.session)
        return begun

    def _guard(self) -> Guard:
        """A life goes on only with the secrets that it needs."""
        return Guard(demands=True, rules=self._rules)

    @contextlib.contextmanager
    def _living(self, begun: Life) -> Iterator[Run]:
        """The agent's code runs inside; whatever ends it, the run is let go."""
        session, before = begun.session, context.frame.get()
        try:  # From here on: Ctrl-C may come between any two of these.
            context.enter(session)
            session.begin()
            self._housekeeper.add(session)
            with guarded(session.guard):
                yield Run(session, self._chance, self)
        except BaseException as error:
            left.take_back(session)
            if isinstance(error, CALLED_OFF) or is_cancelled(error):
                interrupted.note(session, error)
            raise
        finally:
            self._housekeeper.remove(session)
            context.leave(session, before)
            self._let_go(session)

    def _let_go(self, session: Session) -> None:
        """Interrupted or ended: what is pending is kept if it can be."""
        with contextlib.suppress(HoldfastError):
            session.let_go()
        self._launcher.end(session)

    def fork(self, points: Points, run: StoredRun, wanted: Fork) -> None:
        """Make a new run from a point of another."""
        self._opened.records.revive()
        fork(self._opened, points, self._clock, run, wanted)

    def cancel(self, run: StoredRun, reason: str | None) -> None:
        """Cancel a run, or ask whoever holds it to stop."""
        cancel(self._opened, self._launcher, self._clock, run, reason)

    def revive(self, run: StoredRun) -> None:
        """Nobody wants the run to stop any more, nor its children."""
        wishes.forget(self._opened, run.row.no)
        for child in children_of(self._opened.reader, run):
            self.revive(child)

    def rollbacks(self, points: Points) -> Rollbacks:
        """What plans and carries out rollbacks."""
        return Rollbacks(self._opened, points, self._launcher, self._clock, self._holds)

    def paused(self, run: StoredRun, wait_s: float) -> AbstractContextManager[StoredRun]:
        """Hold a run, whoever works on it."""
        return self._holds.pause(run, wait_s)

    def new_id(self, start: str) -> str:
        """An id that no run has, which begins with `start`."""
        return f"{start}-{self._chance.getrandbits(48):012x}"

    def supervise(self, order: Order, terms: "supervising.Terms") -> Any:  # noqa: ANN401 the agent's own result
        """Keep a run alive in a child process until it has ended; its recorded result."""
        _refuse_nested(order)
        supervisor = self._supervisor()
        supervisor.settle(order.run)
        found = self._opened.reader.find(order.run)
        is_cut = found is not None and goes_on(self._opened.reader, found)
        known = self._launcher.known(replace(order, is_restart=order.is_restart or is_cut))
        if known is None:
            try:
                (supervisor.recover if is_cut else supervisor.carry_out)(order, terms)
            except RunStopped:
                self._notify(order.run)
                raise
            except KeyboardInterrupt as error:
                interrupted.tell(error, order)
                raise
            known = self._launcher.known(order)
        assert known is not None
        return known.value

    def watch(
        self, find: "watching.Find", plan: "watching.Plan", terms: "supervising.Terms"
    ) -> dict[str, str]:
        """Recover the runs of the store whose processes are gone."""
        self._opened.records.revive()
        supervisor = self._supervisor()
        watcher = watching.Watcher(
            self._opened, supervisor, self._clock, find, terms, teller=self._teller()
        )
        return watcher.watch(plan)

    def _teller(self) -> "telling.Teller | None":
        if self.notifier is None:
            return None
        inbox = Inbox(self._opened, self._clock)
        return telling.Teller(self.notifier, inbox.items, self._clock)

    def _supervisor(self) -> "supervising.Supervisor":
        rollbacks = self.rollbacks(self._points())
        return supervising.Supervisor(
            self._opened, self._launcher, rollbacks, self._clock, self._holds
        )

    def _points(self) -> Points:
        return Points(self._opened.reader, self._opened.path)

    def _standing(self, run: StoredRun, point: str) -> int:
        """Effects after a point that a rollback to it could not take back."""
        plan = self.rollbacks(self._points()).plan(run, point, None)
        return sum(effect.how in ("impossible", "unknown") for effect in plan.effects)

    def decide(self, run: StoredRun, failure: Supposed, agent: Agent[..., Any] | None) -> Decision:
        """What would be done about a failure of the run now."""
        return self._launcher.verdict(run, failure, agent)

    def resolve(self, run: StoredRun, verdict: Verdict) -> None:
        """Record a person's word on an effect in doubt."""
        resolve(self._opened, self._launcher, self._clock, run, verdict)

    def allow(self, run: StoredRun, permit: Permit) -> None:
        """Record a person's permission for an effect that the fence stopped."""
        allow(self._opened, self._launcher, self._clock, run, permit)

    def abandon(self, fault: Exception) -> None:
        """In a forked child: the runs are the parent's."""
        for session in self._housekeeper.abandon():
            session.stopped = fault

    def close(self) -> None:
        """Commit what is pending and stop looking after runs."""
        for session in self._housekeeper.sessions():
            session.flush()
        self._housekeeper.close()


class Leash:
    """Reaches what a thread began for a task, when the task is cancelled meanwhile."""

    def __init__(self, let_go: Callable[[Session], None]) -> None:
        self._let_go = let_go
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._is_cut = False

    def tie(self, session: Session) -> None:
        """In the thread: this is what was begun."""
        with self._lock:
            self._session = session
            if self._is_cut:
                self._let_go(session)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and is_cancelled(error):
            with self._lock:
                self._is_cut = True
                if self._session is not None:
                    self._let_go(self._session)


def _back(order: Order, session: Session) -> Order:
    """The order to carry on from the point before, which a restored state made necessary."""
    return replace(order, back=session.back, is_redo=False, reason=str(session.stopped))


def _refuse_nested(order: Order) -> None:
    here = context.frame.get()
    if here is not None:
        outer = here.function or f"run {here.session.id}"
        instead = "`run.child(agent, ...)` in the agent's own code runs another agent"
        raise NestedCall(f"a run of agent {order.agent.name}", outer, instead)
