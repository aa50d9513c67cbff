"""Keeps a run alive in a child process: it dies or hangs, the end is judged, the decision done.

The child does the work and writes the journal; the supervisor only reads, decides, and starts the
next child, which records the decision. What a supervisor knows it reads from the journal, so one
that is killed is replaced by starting it again.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.engine.agents import Agent
from holdfast.engine.errand import Errand, Go
from holdfast.engine.escalate import escalate
from holdfast.engine.faults import to_exception
from holdfast.engine.hold import Holds
from holdfast.engine.incident import GONE, goes_on
from holdfast.engine.judge import rollback_reason
from holdfast.engine.launch import Launcher
from holdfast.engine.logs import log
from holdfast.engine.order import Order
from holdfast.engine.process import Spare, Start, Watch, start_process
from holdfast.engine.rollback import Rollbacks
from holdfast.errors import Damaged, Escalated, RunHeld, UsageError
from holdfast.model.cadence import Pace
from holdfast.model.decision import Action, Decision
from holdfast.model.failure import Failure
from holdfast.model.ids import MAIN
from holdfast.model.journal import Decided, Failed
from holdfast.model.run import Status
from holdfast.policy.classify import classify
from holdfast.policy.decide import Situation, decide
from holdfast.store.codec import values
from holdfast.store.open import Opened
from holdfast.store.reader import Run as StoredRun

LOOK_S = 0.2
ORPHAN_S_MAX = 15.0
"""How long a child whose supervisor was killed may take to let go."""

Happening = Callable[[str, dict[str, object]], None]
"""Told what the supervisor does, as it does it."""


def quiet(_what: str, _facts: dict[str, object]) -> None:
    """Nobody listens."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is supervised. `stall_s`: so long without a journal record is a hang.

    `is_stopped` is asked all the time; once it is so, the child is stopped and `KeyboardInterrupt`
    raised, as in a process of its own. `start` makes the processes.
    """

    stall_s: float | None = None
    key: str | None = None
    by: str = "supervise"
    environment: tuple[str, ...] = ()
    pace: Pace = Pace()
    happening: Happening = quiet
    has_spare: bool = False
    is_stopped: Callable[[], bool] = bool
    start: Start = start_process

    def rest(self, clock: Clock, wait_s: float) -> None:
        """Wait, a little at a time."""
        until = clock.monotonic() + wait_s
        self.refuse_if_stopped()
        while (left := until - clock.monotonic()) > 0:
            clock.sleep(min(left, LOOK_S))
            self.refuse_if_stopped()

    def attend(self, prepare: Callable[[], None]) -> Callable[[bool], None]:
        """What is done while a child lives: see whether to stop, have a spare."""

        def attend(is_settled: bool) -> None:  # noqa: FBT001 the only thing it is told
            self.refuse_if_stopped()
            if self.has_spare and is_settled:
                prepare()

        return attend

    def refuse_if_stopped(self) -> None:
        """Raise what Ctrl-C would."""
        if self.is_stopped():
            raise KeyboardInterrupt


class Supervisor:
    """Supervises runs of one store."""

    def __init__(
        self,
        opened: Opened,
        launcher: Launcher,
        rollbacks: Rollbacks,
        clock: Clock,
        holds: Holds,
    ) -> None:
        self._opened, self._launcher, self._rollbacks = opened, launcher, rollbacks
        self._clock, self._holds = clock, holds

    def carry_out(self, order: Order, terms: Terms) -> None:
        """Keep the run alive until it has ended; raises what a person has to look at.

        When this returns, the run has finished and its result is recorded.
        """
        _refuse_unfindable(order.agent)
        self._keep_alive(order, terms, Go(is_restart=order.is_restart))

    def recover(self, order: Order, terms: Terms) -> None:
        """The same for a run whose process is gone: what to do about that is decided first."""
        _refuse_unfindable(order.agent)
        self.settle(order.run)
        run = self._opened.reader.find(order.run)
        if run is None or run.body.status is Status.FINISHED:
            return
        # Nothing failed in a run that waited for a person: once there is an answer, it goes on.
        is_waiting = run.body.status is Status.WAITING
        go = Go() if is_waiting else self._judge(order, terms, GONE)
        self._keep_alive(order, terms, go)

    def settle(self, id_: str) -> None:
        """End a rollback that a kill cut off; only then can the run go on."""
        run = self._opened.reader.find(id_)
        if run is not None and run.body.status is Status.ROLLING_BACK:
            self._rollbacks.plan(run, None, None).apply()

    def _keep_alive(self, order: Order, terms: Terms, go: Go) -> None:
        in_vain, spare = 0, Spare(self._errand(order, terms), terms.start)
        try:
            while True:
                self._await_pause(order, terms)
                before = self._await_lease(order.run, terms)
                failure = self._live(order, terms, go, spare)
                if self._await_pause(order, terms):
                    failure = None
                run = self._opened.reader.find(order.run)
                if run is not None and run.body.status is Status.FINISHED:
                    terms.happening("finished", {"run": order.run})
                    return
                if failure is None:
                    in_vain, go = 0, self._after_pause(run)
                elif run is not None and run.row.epoch != before:
                    in_vain, go = 0, self._judge(order, terms, failure)
                else:
                    in_vain += 1
                    self._judge_unborn(order, terms, failure, in_vain)
        finally:
            spare.stop()

    def _await_pause(self, order: Order, terms: Terms) -> bool:
        """Wait while somebody has the run paused; whether somebody had.

        A rollback that was cut off in a pause is ended here.
        """
        was_paused = False
        while (run := self._opened.reader.find(order.run)) and self._holds.is_elsewhere(run):
            if not was_paused:
                terms.happening("paused", {"run": order.run})
            was_paused = True
            terms.rest(self._clock, LOOK_S)
        self.settle(order.run)
        return was_paused

    def _after_pause(self, run: StoredRun | None) -> Go:
        """The word for the next life of a run that was paused: nothing failed."""
        if run is not None:
            self._refuse_waiting(run)
        return Go(is_restart=run is not None)

    def _judge_unborn(self, order: Order, terms: Terms, failure: Failure, in_vain: int) -> None:
        """The child ended before it had the run: the journal says nothing of it."""
        situation = Situation(recoveries=in_vain - 1, repeats=in_vain - 1)
        decision = decide(failure, situation, order.agent.sla)
        terms.happening(str(decision.action), _facts(order, failure, decision))
        if decision.action is not Action.RESTART:
            raise Escalated(order.run, failure.what, decision.reason)
        terms.rest(self._clock, decision.wait_s)

    def _judge(self, order: Order, terms: Terms, failure: Failure) -> Go:
        """Decide about the end of a life; gives the word for the next, or raises for a person."""
        run = self._opened.reader.find(order.run)
        if run is None:
            raise Damaged(f"run {order.run}", "it was there and is gone")
        self._refuse_waiting(run)
        if self._opened.leases.is_held(run.row.no):
            raise RunHeld(order.run, str(run.body.holder), "a moment ago")
        if run.body.status is Status.RUNNING and self._launcher.judge.is_touched(run):
            return Go(is_restart=True)
        decided = self._decide(order, run, failure, terms)
        failure, decision = decided.failure, decided.decision
        terms.happening(str(decision.action), _facts(order, failure, decision))
        if decision.action is Action.ROLLBACK:
            plan = self._rollbacks.plan(run, decision.to, None)
            plan.apply(reason=rollback_reason(terms.by, failure))
        elif decision.action is not Action.RESTART:
            raise self._give_to_person(run, decided)
        log.info("run %s: %s; %s", order.run, failure.what, decision.reason)
        failpoint.reach("supervise.decided")
        terms.rest(self._clock, decision.wait_s)
        return Go(is_restart=True, decided=decided)

    def _live(self, order: Order, terms: Terms, go: Go, spare: Spare) -> Failure | None:
        """One life in a child; how it ended, or None if it was paused."""
        failpoint.reach("supervise.starting")
        child = spare.take()
        child.begin(go)
        failpoint.reach("supervise.started")
        terms.happening("start", {"run": order.run, "pid": child.process.pid})
        try:
            watch = Watch(self._opened, self._clock, child, order.run, terms.stall_s)
            ended = watch.wait(terms.attend(spare.prepare))
        finally:
            child.stop()
        failpoint.reach("supervise.ended")
        if child.heard.was_paused:
            return None
        rules = order.agent.rules
        return child.heard.failure or classify(ended, rules=rules, now=self._clock.now())

    def _errand(self, order: Order, terms: Terms) -> Errand:
        args = values.encode((list(order.args), dict(order.kwargs)), path="arguments of the run")
        module, script = _home(order.agent)
        return Errand(
            store=str(self._opened.path.absolute()),
            key=terms.key,
            run=order.run,
            agent=order.agent.name,
            module=module,
            main=script,
            path=list(sys.path),
            args=args,
            environment=list(terms.environment),
            pace=terms.pace,
            told=order.pace,
        )

    def _decide(self, order: Order, run: StoredRun, failure: Failure, terms: Terms) -> Decided:
        care = self._launcher.care_of(run, order.agent)
        found, known, decision = self._launcher.judge.verdict(run, None, care, otherwise=failure)
        return Decided(self._clock.now(), terms.by, found.turn, found.steps, known, decision)

    def _refuse_waiting(self, run: StoredRun) -> None:
        """A run that waits for a person, or diverged, says so itself."""
        if run.body.status in (Status.RUNNING, Status.FAILED):
            return
        raise to_exception(self._failed(run).error)

    def _give_to_person(self, run: StoredRun, decided: Decided) -> Exception:
        """Record that a person has to look, where the run did not record it itself."""
        if run.body.status is Status.FAILED and not goes_on(self._opened.reader, run):
            return self._launcher.failed(run)
        return escalate(self._opened, self._launcher, self._clock, run, decided)

    def _failed(self, run: StoredRun) -> Failed:
        reader = self._opened.reader
        last = reader.row(reader.end(run.row.head)).row.entries[-1]
        if not isinstance(last, Failed):
            raise Damaged(f"run {run.body.id}", "it stopped but its journal does not say why")
        return last

    def _await_lease(self, id_: str, terms: Terms) -> int:
        """Wait for a child whose supervisor was killed; `RunHeld` if it is somebody else.

        Gives the run's epoch, which each life raises; 0 of a run that has not begun.
        """
        began = self._clock.monotonic()
        while True:
            run = self._opened.reader.find(id_)
            if run is None:
                return 0
            if not self._opened.leases.is_held(run.row.no):
                return run.row.epoch
            if self._clock.monotonic() - began > ORPHAN_S_MAX:
                raise RunHeld(id_, str(run.body.holder), "before this supervisor began")
            terms.rest(self._clock, LOOK_S)


def _facts(order: Order, failure: Failure, decision: Decision) -> dict[str, object]:
    return {
        "run": order.run,
        "kind": str(failure.kind),
        "failure": failure.what,
        "reason": decision.reason,
        "wait_s": decision.wait_s,
    }


def _refuse_unfindable(agent: Agent[..., Any]) -> None:
    if "<" in agent.name:
        msg = (
            f"agent {agent.name} is declared inside a function, where a child process cannot find "
            "it; declare it at the top of a module"
        )
        raise UsageError(msg)
    if _home(agent) == (MAIN, None):
        msg = f"agent {agent.name} comes from no file a child process could read; put it into one"
        raise UsageError(msg)


def _home(agent: Agent[..., Any]) -> tuple[str, str | None]:
    """The module that a child finds an agent in; of a script, its file."""
    if agent.module != MAIN:
        return agent.module, None
    spec = getattr(sys.modules.get(MAIN), "__spec__", None)
    if spec is not None:  # Started by `python -m`: then it can be imported by that name.
        return str(spec.name), None
    path = Path(agent.fn.__code__.co_filename)
    return MAIN, str(path.absolute()) if path.is_file() else None
