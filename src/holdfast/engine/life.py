"""A life of a run from begin to end, in a thread or under an event loop."""

import contextlib
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.engine import context
from holdfast.engine.housekeeper import Housekeeper
from holdfast.engine.launch import Done, Launcher, Life, Order
from holdfast.engine.resolve import Verdict, resolve
from holdfast.engine.run import Run
from holdfast.engine.session import Frame, Session, is_loop_running
from holdfast.errors import HoldfastError, NestedCall, WrongLoop
from holdfast.ondemand import OnDemand
from holdfast.store.open import Opened
from holdfast.store.reader import Run as StoredRun

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")


class Lives:
    """The runs that one store handle carries out."""

    def __init__(self, opened: Opened, clock: Clock, chance: random.Random) -> None:
        self._opened, self._clock, self._chance = opened, clock, chance
        self._launcher = Launcher(opened, clock)
        self._housekeeper = Housekeeper(opened.leases, clock)

    def carry_out(self, order: Order) -> Any:  # noqa: ANN401 the agent's own result
        """Carry an order out in this thread."""
        _refuse_nested(order)
        if order.agent.is_async:
            if is_loop_running():
                raise WrongLoop("store.run", "an event loop runs in this thread")
            return asyncio.run(self.acarry_out(order))
        begun = self._launcher.begin(order)
        if isinstance(begun, Done):
            return begun.value
        with self._living(begun) as run:
            try:
                value = order.agent.fn(run, *begun.args, **begun.kwargs)
                result, ticket = self._launcher.conclude(begun.session, value)
                failpoint.reach("run.ending")
                begun.session.writer.finish(ticket)
                failpoint.reach("run.ended")
            except Exception as error:  # noqa: BLE001 recorded, then raised
                failed = self._launcher.fail(begun.session, error)
                raise failed from failed.__cause__
            return result

    async def acarry_out(self, order: Order) -> Any:  # noqa: ANN401 the agent's own result
        """Carry an order out while the event loop goes on; a synchronous agent gets a thread."""
        _refuse_nested(order)
        if not order.agent.is_async:
            return await asyncio.to_thread(self.carry_out, order)
        begun = await asyncio.to_thread(self._launcher.begin, order)
        if isinstance(begun, Done):
            return begun.value
        with self._living(begun) as run:
            try:
                value = await order.agent.fn(run, *begun.args, **begun.kwargs)
                result, ticket = self._launcher.conclude(begun.session, value)
                failpoint.reach("arun.ending")
                await begun.session.writer.afinish(ticket)
                failpoint.reach("arun.ended")
            except Exception as error:  # noqa: BLE001 recorded, then raised
                failed = await asyncio.to_thread(self._launcher.fail, begun.session, error)
                raise failed from failed.__cause__
            return result

    @contextlib.contextmanager
    def _living(self, begun: Life) -> Iterator[Run]:
        """The agent's code runs inside; whatever ends it, the run is let go."""
        session = begun.session
        context.count_active(+1)
        here = context.frame.set(Frame(session))
        session.begin()
        self._housekeeper.add(session)
        try:
            yield Run(session, self._chance)
        finally:
            self._housekeeper.remove(session)
            context.frame.reset(here)
            context.count_active(-1)
            self._let_go(session)

    def _let_go(self, session: Session) -> None:
        """Interrupted or ended: what is pending is kept if it can be."""
        if session.stopped is None:
            with contextlib.suppress(HoldfastError):
                session.flush()
        self._launcher.end(session)

    def resolve(self, run: StoredRun, verdict: Verdict) -> None:
        """Record a person's word on an effect in doubt."""
        resolve(self._opened, self._launcher, self._clock, run, verdict)

    def abandon(self, fault: Exception) -> None:
        """In a forked child: the runs are the parent's."""
        for session in self._housekeeper.sessions_now():
            session.stopped = fault

    def close(self) -> None:
        """Commit what is pending and stop looking after runs."""
        for session in self._housekeeper.sessions():
            session.flush()
        self._housekeeper.close()


def _refuse_nested(order: Order) -> None:
    here = context.frame.get()
    if here is not None:
        outer = here.function or f"run {here.session.id}"
        raise NestedCall(f"a run of agent {order.agent.name}", outer)
