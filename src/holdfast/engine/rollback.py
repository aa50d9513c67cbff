"""A rollback: planned, shown, then carried out; whatever a kill cuts off goes on where it was."""

import datetime as dt
from collections.abc import MutableMapping, Sequence
from typing import Any

from msgspec.structs import replace

from holdfast import failpoint
from holdfast.capture.diff import Change
from holdfast.clock import Clock
from holdfast.engine.fork import Cut, left_open, refuse_pruned
from holdfast.engine.hold import Holds
from holdfast.engine.launch import Launcher
from holdfast.engine.losses import Loss, forks_on, losses, named
from holdfast.engine.plan import RollbackPlan, Said, unfinished
from holdfast.engine.points import Points
from holdfast.engine.restore import edited_at
from holdfast.engine.retake import Retakes
from holdfast.engine.returning import go_back
from holdfast.engine.takeback import TakeBack
from holdfast.engine.targets import Targets
from holdfast.engine.unsettled import may_be_retried
from holdfast.errors import RollbackUnfinished, UnknownCheckpoint, UsageError
from holdfast.model.branches import RolledBack, Settled, Undoing
from holdfast.model.ids import Point, point_id
from holdfast.model.journal import (
    Entry,
    Kept,
    Resumed,
    Saved,
    Spawned,
    Undone,
)
from holdfast.model.rollback import ROLLBACKS, RUNTIME, Rolled, Taken
from holdfast.model.run import Status
from holdfast.store import wishes
from holdfast.store.codec import values
from holdfast.store.gc import pins
from holdfast.store.marks import marks_of
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.writer import RunWriter


class Rollbacks:
    """Plans and carries out rollbacks in one store."""

    def __init__(
        self, opened: Opened, points: Points, launcher: Launcher, clock: Clock, holds: Holds
    ) -> None:
        self._opened, self._points, self._launcher = opened, points, launcher
        self._reader, self._clock, self._holds = opened.reader, clock, holds
        self._targets = Targets(opened.reader, points)
        self._retakes = Retakes(opened, launcher, clock, holds)

    def plan(self, run: Run, to: str | None, only: Sequence[str] | None) -> RollbackPlan:
        """What a rollback to a point would do; of one that was cut off, what is left to do."""
        if run.body.status is Status.ROLLING_BACK:
            return self._rest_of_retakes(run) if self._retakes.is_cut(run) else self._rest(run)
        if to is None:
            msg = "say where to: a checkpoint, a turn, newest-valid, before:KEY, or start"
            raise UsageError(msg)
        if only is not None and not only:
            msg = "only= names no section; leave it out to go back with all of them"
            raise UsageError(msg)
        source = self._targets.find(run, to)
        refuse_pruned(self._opened, run, source.point)
        cut = source if only is None else self._targets.newest(run)
        if only is not None:
            self._sections(source, cut, only)
        loss = losses(self._reader, run, cut, is_kept=only is not None)
        name = point_id(run.body.id, source.point)
        now = self._known(run.body.id)
        then = self._known(name)
        return RollbackPlan(
            run=run.body.id,
            to=name,
            turn=source.turn if source.turn >= 0 else None,
            turns_lost=loss.turns,
            seconds_lost=None if now is None or then is None else _apart(then.at, now.at),
            tokens_in=_less(now and now.tokens_in, then and then.tokens_in),
            tokens_out=_less(now and now.tokens_out, then and then.tokens_out),
            only=None if only is None else list(only),
            changes=self._changes(run.body.id, name, only),
            effects=loss.effects,
            children=self._children(run, cut.point),
            forks=forks_on(self._reader, run, loss.takes),
            is_unfinished=False,
            _apply=lambda plan, said: (
                self._begin(run, cut, source, loss, (plan, said))
                if said.pause_s is None
                else self._paused(run, plan, said)
            ),
        )

    def _children(self, run: Run, point: Point) -> list[str]:
        """The children that were begun after a point of the run's head."""
        head = run.row.head
        return [
            entry.id
            for placed in self._reader.rows(head, point[0], self._reader.end(head))
            for index, entry in enumerate(placed.row.entries)
            if isinstance(entry, Spawned) and (placed.id, index) > point
        ]

    def _paused(self, run: Run, plan: RollbackPlan, said: Said) -> Rolled:
        """The same once whoever works on the run has let it go, of what it had done by then."""
        assert said.pause_s is not None
        with self._holds.pause(run, said.pause_s) as present:
            if present.body.status is Status.ROLLING_BACK:
                raise RollbackUnfinished(run.body.id)
            again = self.plan(present, plan.to, plan.only)
            return again.apply(fork_effects=said.is_free, reason=said.reason)

    def _sections(self, source: Cut, cut: Cut, only: Sequence[str]) -> None:
        is_point = source.turn >= 0 or isinstance(source.at.row.entries[-1], Saved | Kept)
        if cut.turn < 0 or not is_point:
            msg = "sections are taken back once a turn has ended, from a turn's end or a checkpoint"
            raise UsageError(msg)
        state = self._state(source)
        missing = [name for name in only if name not in state]
        if missing:
            known = ", ".join(map(repr, state)) or "none"
            msg = f"there is no section {missing[0]!r} there; there is: {known}"
            raise UsageError(msg)

    def _known(self, name: str) -> Any:  # noqa: ANN401 a checkpoint, whose class is loaded late
        try:
            return self._points.restore(name)[0]
        except UnknownCheckpoint:
            return None

    def _changes(self, now: str, then: str, only: Sequence[str] | None) -> list[Change]:
        try:
            return self._points.changes(now, then, only)
        except UnknownCheckpoint:
            return []

    def _begin(
        self,
        run: Run,
        cut: Cut,
        source: Cut,
        loss: Loss,
        asked: tuple[RollbackPlan, Said],
    ) -> Rolled:
        """Move the head, in one commit; then take the effects back."""
        plan, said = asked
        with self._holds.hold(run) as present:
            end = self._reader.end(run.row.head)
            if present.row != run.row or end != loss.end:
                msg = f"run {run.body.id} went on since this was planned; plan it again"
                raise UsageError(msg)
            for point in {cut.point, source.point}:  # From here on it is held, and stays.
                refuse_pruned(self._opened, run, point)
            if present.body.status is Status.FINISHED:  # Who wanted it to stop came too late.
                wishes.forget(self._opened, run.row.no)
            safety = self._keep(present)
            holder, now = self._launcher.holder(), self._clock.now()
            rolled = RolledBack(
                now,
                end,
                cut.at.id,
                cut.point[1],
                cut.turn,
                plan.only,
                loss.takes,
                said.is_free,
                holder,
                said.reason,
                source.point[0],
                source.point[1],
            )
            resumed = Resumed(now, run.row.epoch + 1, holder, run.body.version)
            entries: list[Entry] = [resumed, rolled, *left_open(self._reader, cut, now)]
            body = replace(
                run.body, holder=holder, status=Status.ROLLING_BACK, ended=None, error=None
            )
            seals = self._reader.seals
            mine = seals.of(run.row.no)
            writer = RunWriter(self._opened.committer, mine, run, seals.of(run.ledger))
            failpoint.reach("rollback.moving")
            writer.grow(cut.at, entries, [m for e in entries for m in marks_of(e)], taken=body)
            failpoint.reach("rollback.moved")
            return self._go_on(writer, rolled, plan, [], safety)

    def _keep(self, run: Run) -> str | None:
        """Keep the newest point of the present for good, whatever garbage collection is told."""
        try:
            point = self._points.newest(run)
        except UnknownCheckpoint:
            return None
        pins.pin(self._opened, (run.row.no, *point))
        return point_id(run.body.id, point)

    def _go_on(
        self,
        writer: RunWriter,
        rolled: RolledBack,
        plan: RollbackPlan,
        over: Sequence[Undoing | Undone],
        safety: str | None,
    ) -> Rolled:
        """Take back what is left, in order, and settle."""
        taker = TakeBack(self._reader, self._clock, writer)
        known = {entry.key: entry for entry in over if isinstance(entry, Undone)}
        begun = {entry.key for entry in over if isinstance(entry, Undoing)}
        for take in rolled.takes:
            if take.key not in known:
                known[take.key] = taker.carry_out(take, was_cut=take.key in begun, over=known)
        effects = [_taken(each, known.get(each.key)) for each in plan.effects]
        self._settle(writer, rolled, plan.to, effects)
        return Rolled(
            run=plan.run,
            to=plan.to,
            branch=writer.run.row.head,
            safety=safety,
            effects=effects,
        )

    def _settle(
        self, writer: RunWriter, rolled: RolledBack, to: str, effects: Sequence[Taken]
    ) -> None:
        now = self._clock.now()
        note: dict[str, Any] = {
            "at": dt.datetime.fromtimestamp(now, dt.UTC).isoformat(timespec="seconds"),
            "to": to,
            "turn": rolled.turn if rolled.turn >= 0 else None,
            "reason": rolled.reason,
            "only": rolled.only,
        }
        for how in ("undone", "offset", "cancelled", "impossible", "unknown", "kept"):
            note[how] = [each.effect for each in effects if each.how == how]
        delta = self._delta(rolled, note)
        settled = Settled(now, rolled.turn, delta, values.encode(note))
        left = writer.run.body.undos_left + self._failed(rolled, effects)
        body = replace(writer.run.body, status=Status.RUNNING, undos_left=left)
        _, ticket = writer.submit([settled], body=body)
        failpoint.reach("rollback.settling")
        writer.finish(ticket)
        failpoint.reach("rollback.settled")

    def _failed(self, rolled: RolledBack, effects: Sequence[Taken]) -> int:
        """How many effects could not be taken back, and may be later."""
        takes = {take.key: take for take in rolled.takes}
        return sum(
            each.how in ("impossible", "unknown") and may_be_retried(self._reader, takes[each.key])
            for each in effects
            if each.key in takes
        )

    def _delta(self, rolled: RolledBack, note: dict[str, Any]) -> bytes | None:
        """The note, and sections that go back, as a change of the state at the end of a turn."""
        if rolled.turn < 0:
            return None
        state = edited_at(self._reader, (rolled.to, rolled.index))
        if rolled.only is not None:
            older = self._points.state((rolled.source, rolled.source_index))
            for name in rolled.only:
                state.root[name] = older[name]
        runtime = state.root.setdefault(RUNTIME, {})
        told = runtime.setdefault(ROLLBACKS, []) if isinstance(runtime, MutableMapping) else None
        if isinstance(told, list):  # Else the agent keeps something of its own there.
            told.append(note)
        return state.delta()

    def _state(self, cut: Cut) -> dict[Any, Any]:
        return self._points.state(cut.point)

    def take_back(self, run: Run, reason: str | None) -> list[Taken]:
        """Undo the newest rollback of a run: its head is the old branch again."""
        with self._holds.hold(run) as present:
            return go_back(self._opened, self._launcher, self._clock, present, reason)

    def _rest(self, run: Run) -> RollbackPlan:
        """The plan of a rollback that was cut off: what it was, and what is left of it."""
        rolled, over = self._unfinished(run)
        done = {entry.key: entry for entry in over if isinstance(entry, Undone)}
        source = (rolled.source, rolled.source_index)
        effects = [_taken(named(self._reader, take), done.get(take.key)) for take in rolled.takes]
        return unfinished(
            run.body.id,
            point_id(run.body.id, source),
            effects,
            lambda plan, _said: self._resume(run, plan),
            at=(rolled.turn, rolled.only),
        )

    def _rest_of_retakes(self, run: Run) -> RollbackPlan:
        """The same where it was failed undos, tried again, that were cut off."""

        def resume(plan: RollbackPlan, _said: Said) -> Rolled:
            effects = self._retakes.resume(run)
            head = run.row.head
            return Rolled(run=plan.run, to=plan.to, branch=head, safety=None, effects=effects)

        id_ = run.body.id
        return unfinished(id_, id_, self._retakes.rest(run), resume, at=(-1, None))

    def retry(self, run: Run, key: str | None, *, is_by_hand: bool = False) -> list[Taken]:
        """Try again to take back what rollbacks of the run could not."""
        return self._retakes.retry(run, key, is_by_hand=is_by_hand)

    def _resume(self, run: Run, plan: RollbackPlan) -> Rolled:
        with self._holds.hold(run) as present:
            rolled, over = self._unfinished(present)
            writer = self._launcher.take(present, present.body.version, status=Status.ROLLING_BACK)
            return self._go_on(writer, rolled, plan, over, None)

    def _unfinished(self, run: Run) -> tuple[RolledBack, list[Undoing | Undone]]:
        over: list[Undoing | Undone] = []
        for placed in self._reader.back(run.row.head):
            for entry in reversed(placed.row.entries):
                if isinstance(entry, RolledBack):
                    return entry, over[::-1]
                if isinstance(entry, Undoing | Undone):
                    over.append(entry)
        msg = f"no rollback of run {run.body.id} is under way"
        raise UsageError(msg)


def _taken(planned: Taken, entry: Undone | None) -> Taken:
    if entry is None:
        return planned
    why = planned.why
    if entry.error is not None:
        why = f"{entry.error.name}: {entry.error.message}"
    return replace(planned, how=entry.how, why=why)


def _apart(then: dt.datetime, now: dt.datetime) -> float:
    return (now - then).total_seconds()


def _less(now: int | None, then: int | None) -> int | None:
    return None if now is None or then is None else now - then
