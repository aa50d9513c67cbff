"""Begin a life of a run and record its end: start, continue, finish, fail."""

import contextlib
import datetime as dt
import os
import random
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.engine import agents, left
from holdfast.engine.agents import Agent
from holdfast.engine.agree import Given, agree, other_pace, started_in, with_defaults
from holdfast.engine.ask import still_waiting
from holdfast.engine.back import go_back
from holdfast.engine.care import Care
from holdfast.engine.facts import facts_of
from holdfast.engine.faults import describe, to_error, to_exception
from holdfast.engine.judge import Judge, Supposed, supposed
from holdfast.engine.order import Done, Life, Order
from holdfast.engine.pace import Pacer
from holdfast.engine.points import Points
from holdfast.engine.pulse import Pulse
from holdfast.engine.redo import redo_turn
from holdfast.engine.restore import whole_history
from holdfast.engine.session import Session
from holdfast.errors import (
    Blocked,
    Cancelled,
    Damaged,
    Diverged,
    Escalated,
    Fenced,
    HoldfastError,
    InDoubt,
    Paused,
    RollbackUnfinished,
    RunFailed,
    RunHeld,
    RunStopped,
    SecretMissing,
    StoreError,
    UnknownRun,
    UsageError,
    Waiting,
)
from holdfast.model.cadence import Pace
from holdfast.model.decision import Decision
from holdfast.model.journal import Decided, Entry, Facts, Failed, Finished, Resumed, Started
from holdfast.model.run import Holder, RunBody, Status
from holdfast.policy.classify import classify
from holdfast.store import wishes
from holdfast.store.codec import values
from holdfast.store.codec.vault import guard
from holdfast.store.committer import Ticket
from holdfast.store.open import Opened
from holdfast.store.reader import Run as StoredRun
from holdfast.store.steady import TRIES_MAX, is_gone
from holdfast.store.writer import RunWriter, create, take_up

NO_PACE = Pace()

STOPPED: dict[type[Exception], Status] = {
    InDoubt: Status.IN_DOUBT,
    Waiting: Status.WAITING,
    Blocked: Status.BLOCKED,
    Cancelled: Status.CANCELLED,
    Diverged: Status.DIVERGED,
}
"""Where a run stands that stopped so; any other error is its failure."""


class Launcher:
    """Begins and ends lives of runs on one open store."""

    def __init__(
        self,
        opened: Opened,
        clock: Clock,
        environment: Mapping[str, str],
        chance: random.Random,
        *,
        pace: Pace = NO_PACE,
        is_checked: bool = False,
    ) -> None:
        self._opened, self._clock, self._environment = opened, clock, environment
        self._pace = pace
        self._is_checked = is_checked
        self._chance = chance
        self.judge = Judge(opened.reader, clock)

    def begin(self, order: Order) -> Life | Done:
        """Start the run, continue it, or give its recorded result."""
        self._opened.records.revive()
        for attempt in range(TRIES_MAX):
            is_new = not (order.is_named or attempt)
            found = self._opened.reader.find(order.run, is_new=is_new)
            if found is None:
                life = self._start(order)
                if life is not None:
                    return life
                continue
            try:
                with Points(self._opened.reader, self._opened.path).offering(found):
                    return self._continue(order, found)
            except Damaged:
                if not is_gone(self._opened.reader, found):
                    raise
        raise Damaged(f"run {order.run}", "it was there and is gone, again and again")

    def _start(self, order: Order) -> Life | None:
        """A new run; None when another process made it in this moment."""
        if order.must_exist:  # Removed since it was found: what it did is not known any more.
            raise UnknownRun(order.run, str(self._opened.path))
        agent, now = order.agent, self._clock.now()
        question = agent.shape.question(order.args, order.kwargs)
        holder, pace = self.holder(), self._paced(order, None)
        kwargs = with_defaults(agent.shape, order, question.bound)
        args = values.encode([list(order.args), kwargs], path="arguments of the run")
        started = Started(
            now,
            agent.name,
            agent.module,
            agent.version,
            self._opened.chunks.keep(args),
            question.digest,
            question.asked,
            pace.checkpoint,
            agent.sla,
            holder,
            facts_of(agent, self._environment),
            pace if pace != NO_PACE else None,
            order.pace if order.pace != NO_PACE else None,
            None if order.origin is None else order.origin.run,
        )
        body = RunBody(
            id=order.run,
            agent=agent.name,
            module=agent.module,
            version=agent.version,
            created=now,
            holder=holder,
            origin=order.origin,
        )
        writer = create(self._opened.committer, self._opened.reader.seals, body, started)
        if writer is None:
            return None
        if not self._opened.leases.take(writer.run.row.no):
            raise self._held(writer.run)
        session = self._session(order, writer)
        session.pacer = Pacer(session, pace)
        return Life(session=session, args=order.args, kwargs=dict(order.kwargs))

    def _continue(self, order: Order, found: StoredRun) -> Life | Done:
        given = agree(self._opened.reader, order, found)
        done = self._known_end(order, found)
        if done is not None:
            return done
        self._refuse_unanswered(order, found)
        if not self._opened.leases.take(found.row.no):
            raise self._held(found)
        try:
            return self._take_up(order, found, given)
        except BaseException:
            self._opened.leases.give(found.row.no)
            raise

    def _take_up(self, order: Order, was: StoredRun, given: Given) -> Life | Done:
        """The lease is ours: read what stands now, raise the epoch, load what a replay needs."""
        reader = self._opened.reader
        found = reader.find(order.run)
        if found is None or found.row.no != was.row.no:
            raise Damaged(f"run {order.run}", "it was removed before it was held")
        done = self._known_end(order, found)
        if done is not None:
            self._opened.leases.give(found.row.no)
            return done
        facts, started = facts_of(order.agent, self._environment), started_in(reader, found)
        pace = self._paced(order, started.told)
        writer = self.take(found, order.agent.version, facts, pace=other_pace(started, pace))
        if order.back is not None:
            go_back(writer, reader, self._clock, order.back, order.reason)
        elif order.is_redo:
            redo_turn(writer, reader, self._clock, order.reason)
        session = self._session(order, writer, is_resumed=True)
        session.pacer = Pacer(session, pace)
        if order.decided is not None:
            session.pend(order.decided)
            session.flush()  # Also of a life that dies at once it is told why it began.
        session.log.info("continues under epoch %d", writer.run.row.epoch)
        return Life(session=session, args=given[0], kwargs=given[1])

    def take(
        self,
        found: StoredRun,
        version: str | None,
        facts: Facts | None = None,
        *,
        status: Status = Status.RUNNING,
        pace: Pace | None = None,
    ) -> RunWriter:
        """Become the run's writer under the next epoch; the lease is held already."""
        holder = self.holder()
        body = replace(found.body, holder=holder, status=status, ended=None, error=None)
        entry = Resumed(self._clock.now(), found.row.epoch + 1, holder, version, facts, pace)
        try:
            return take_up(
                self._opened.committer,
                self._opened.reader.seals,
                self._opened.reader.history(found),
                self._opened.records.tail(found.row.head),
                body=body,
                entry=entry,
            )
        except Fenced:
            raise self._held(found) from None

    def _session(self, order: Order, writer: RunWriter, *, is_resumed: bool = False) -> Session:
        reader = self._opened.reader_of_run()
        session = Session(
            writer=writer,
            reader=reader,
            clock=self._clock,
            care=self._care(order.agent, order.pulse, is_child=order.origin is not None),
            history=whole_history(reader, writer.run) if is_resumed else None,
            is_checked=self._is_checked,
            is_held=self._opened.leases.is_held,
            guard=guard.get(),
        )
        session.sections.allow_missing(order.agent.optional)
        session.validators = order.agent.validate
        session.is_revived = order.is_revived
        return session

    def _paced(self, order: Order, told: Pace | None) -> Pace:
        """How a life is saved: as asked now, else as the run was told, its agent or store says."""
        return order.pace.over(told or NO_PACE).over(order.agent.pace).over(self._pace)

    def known(self, order: Order) -> Done | None:
        """The recorded result; raises as `begin` does where the order cannot be carried out."""
        self._opened.records.revive()
        found = self._opened.reader.find(order.run)
        if found is None:
            order.agent.shape.question(order.args, order.kwargs)
            return None
        agree(self._opened.reader, order, found)
        return self._known_end(order, found)

    def _known_end(self, order: Order, found: StoredRun) -> Done | None:
        """The recorded result; `RunFailed` for a failed run that nobody asks to try again."""
        if found.body.status is Status.FINISHED:
            finished = self._last(found)
            if not isinstance(finished, Finished):
                raise Damaged(f"run {order.run}", "it is finished but has no result")
            return Done(value=self._opened.reader.value(finished.value))
        if found.body.status is Status.ROLLING_BACK:
            raise RollbackUnfinished(order.run)
        if found.body.status is Status.CANCELLED and not order.is_revived:
            raise to_exception(self._end_of(found).error)
        if found.body.status is Status.FAILED and not order.is_restart:
            error = self.failed(found)
            raise error from error.__cause__
        return None

    def failed(self, found: StoredRun) -> Exception:
        """The error that a failed run ended with, as it is raised."""
        failed = self._end_of(found)
        cause = to_exception(failed.error)
        if isinstance(cause, Escalated):
            return cause
        error = RunFailed(found.body.id, failed.error.name, failed.error.message)
        error.__cause__ = cause
        return error

    def _end_of(self, found: StoredRun) -> Failed:
        failed = self._last(found)
        if not isinstance(failed, Failed):
            raise Damaged(f"run {found.body.id}", "it failed but its journal does not say how")
        return failed

    def _refuse_unanswered(self, order: Order, found: StoredRun) -> None:
        """A run that waits for a person does no work, and leaves no trace, until there is one."""
        if found.body.status is Status.WAITING and not order.is_redo:
            waits = still_waiting(self._opened, found, self._clock.now())
            if waits is not None:
                raise waits

    def _last(self, found: StoredRun) -> Entry:
        reader = self._opened.reader
        return reader.row(reader.end(found.row.head)).row.entries[-1]

    def conclude(self, session: Session, value: object) -> tuple[object, Ticket]:
        """Queue the result; returns it as a later call will get it, and the ticket."""
        session.refuse_if_stopped()
        session.close_scope(session.scope)
        if session.turn >= 0:
            session.close_scope(session.turn)
        session.refuse_doubt(is_end=True)
        data = values.encode(value, path="the result of the run")
        given = values.decode(data)  # What could not be read again is no result.
        now = self._clock.now()
        session.sections.capture()
        session.refuse_invalid("at the end of the run")
        finished = Finished(now, session.reader.chunks.keep(data), session.state.delta())
        body = replace(session.writer.run.body, status=Status.FINISHED, ended=now)
        ticket = session.record(finished, body=body)[2]
        return given, ticket

    def fail(self, session: Session, error: Exception) -> BaseException:
        """Record why the run stopped; returns the error to raise."""
        cause = session.stopped or error
        if isinstance(cause, Fenced | StoreError | SecretMissing | Paused):
            return cause  # Nothing can be recorded, or nothing failed in the run.
        if not isinstance(cause, Exception):
            return cause  # It was interrupted: it has not failed.
        status = next((s for kind, s in STOPPED.items() if isinstance(cause, kind)), Status.FAILED)
        if status is Status.DIVERGED:
            session.drop_pending()
        elif status is Status.FAILED:
            left.take_back(session)
            session.blame(cause)
        decided: list[Decided] = []
        if status not in (Status.WAITING, Status.CANCELLED):
            decided = self._judge(session, cause)
        now, recorded = self._clock.now(), to_error(cause)
        body = replace(session.writer.run.body, status=status, ended=now, error=describe(recorded))
        failpoint.reach("run.failing")
        try:
            entry = Failed(now, str(status), recorded)
            ticket = session.record(entry, before=decided, body=body)[2]
            session.writer.finish(ticket)
        except HoldfastError as unrecorded:
            unrecorded.__cause__ = cause
            return unrecorded
        failpoint.reach("run.failed")
        if status is Status.CANCELLED:
            wishes.forget(self._opened, session.writer.run.row.no)
        if isinstance(cause, RunStopped | UsageError):
            return cause
        failed = RunFailed(session.id, recorded.name, recorded.message)
        failed.__cause__ = cause
        return failed

    def verdict(self, run: StoredRun, failure: Supposed, agent: Agent[..., Any] | None) -> Decision:
        """What would be done about a failure of the run; by the rules of its agent, if known."""
        body = run.body
        if body.status in (Status.FINISHED, Status.CANCELLED):
            raise UsageError(f"run {body.id} is {body.status}; there is nothing to decide")
        care = self.care_of(run, agent)
        is_held = self._opened.leases.is_held(run.row.no)
        known = supposed(failure, care, self._clock.now())
        return self.judge.verdict(run, known, care, is_held=is_held and failure is None)[2]

    def care_of(self, run: StoredRun, agent: Agent[..., Any] | None) -> Care:
        """How failures of a run are judged: as its agent says, else as it was recorded."""
        found = agent or agents.known(run.body.agent, run.body.module)
        if found is not None:
            return self._care(found)
        return Care(sla=started_in(self._opened.reader, run).sla, chance=self._chance)

    def _care(
        self, agent: Agent[..., Any], pulse: Pulse | None = None, *, is_child: bool = False
    ) -> Care:
        return Care(
            sla=agent.sla,
            rules=agent.rules,
            chance=self._chance,
            pulse=pulse or Pulse(),
            is_child=is_child,
        )

    def _judge(self, session: Session, cause: Exception) -> list[Decided]:
        """Decide what is to be done about the failure; recorded with it, in one row."""
        care, now = session.care, self._clock.now()
        failure = classify(cause, rules=care.rules, now=now)
        with contextlib.suppress(HoldfastError):  # What cannot be read now is not judged.
            session.flush()
            run = session.writer.run
            _, known, decision = self.judge.verdict(run, failure, care)
            return [Decided(now, "run", session.turn, session.steps, known, decision)]
        return []

    def end(self, session: Session) -> None:
        """Let the run go: another process may take it at once."""
        session.is_over = True
        session.state.end(session.id)
        self._opened.leases.give(session.writer.run.row.no)

    def holder(self) -> Holder:
        """Name this process to whoever asks."""
        return Holder(pid=os.getpid(), host=os.uname().nodename, since=self._clock.now())

    def _held(self, found: StoredRun) -> RunHeld:
        again = self._opened.reader.find(found.body.id) or found
        since = dt.datetime.fromtimestamp(again.body.holder.since, dt.UTC)
        return RunHeld(found.body.id, str(again.body.holder), f"{since:%Y-%m-%d %H:%M:%S} UTC")
