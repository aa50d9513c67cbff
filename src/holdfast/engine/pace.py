"""Makes the checkpoints that the cadence of a run asks for, and says which answers are waited for.

Between turns a checkpoint is the turn's end, marked. In the middle of one it is an entry of its own
with what the turn has changed so far, made where the agent's own line of code stands still: when a
call of it has been answered or, by the clock, while one runs. The state cannot change meanwhile, so
it is never seen half-changed; in a turn whose threads or tasks ask too, nothing is saved before its
end. Such an entry rides along with the next commit.
"""

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from weakref import proxy

from holdfast.engine import context
from holdfast.engine.save import cut_short, hold
from holdfast.engine.session import Session
from holdfast.engine.validate import first_fault
from holdfast.model.cadence import ASYNC, BOUND_S, DURABLE, Cadence, Pace, never
from holdfast.model.journal import Entry, Kept, Saved, TurnEnded
from holdfast.policy import adaptive
from holdfast.policy.adaptive import learnt_of, limits_of, value_of
from holdfast.policy.cadence import (
    TIGHT,
    Controller,
    Progress,
    due,
    is_timed,
    is_within_turns,
)
from holdfast.store.committer import Ticket

_MOVING = nullcontext()


class Pacer:
    """The saving of one life of a run."""

    def __init__(self, session: Session, pace: Pace) -> None:
        self._session: Session = proxy(session)  # It holds us, as in `Sections`.
        self.is_given = pace.checkpoint is not None
        self._cadence = pace.checkpoint or never()
        self._snapshots = pace.snapshot or {}
        self._durability = pace.durability or DURABLE
        self.is_lazy = self._durability != DURABLE
        every = [self._cadence, *self._snapshots.values()]
        self.is_timed = any(map(is_timed, every))
        self._is_within = any(map(is_within_turns, every))
        # A snapshot costs less than a checkpoint, or more; what both may cost is one sum.
        self._controller = _controller(session, self._cadence)
        self._snapper = _controller(session, *self._snapshots.values(), of_snapshots=True)
        self._gate = threading.Lock()
        self._still = 0
        self._told: set[str | None] = set()
        self._sides = 0
        self._oldest: tuple[Ticket, float] | None = None
        self._since = _since(session, [None, *self._snapshots])
        self._has_told = False
        for chosen in filter(None, (self._controller, self._snapper)):
            if math.isinf(chosen.clamp().low_s):  # No save will ever be made to learn that from.
                self._tell_clash(chosen)

    def end_turn(self, turn: int) -> bool:
        """A turn ends: whether that is a checkpoint; snapshots that are due ride along."""
        session = self._session
        if not self.is_given and not self._snapshots:
            self._sides = session.book.sides
            return False
        at = self._progress()
        for why, only in self._due_snapshots(at, turn):
            self._snap(why, only, turn)
        found = due(self._cadence, self._since[None], at, turn=turn, controller=self._controller)
        self._sides = session.book.sides
        return found is not None

    def marked(self, took_s: float, only: list[str] | None = None) -> None:
        """A checkpoint was made, or a snapshot, and held the agent up for so long."""
        at = self._progress()
        self._since |= {each: at for each in _held(only) if each in self._since}
        saver, other = self._controller, self._snapper
        if only is not None:
            saver, other = other, saver
        _told(saver, other, took_s, at.now)
        if saver is not None:
            self._tell_clash(saver)

    def after_call(self) -> None:
        """A call of the agent has been answered: save if that is due."""
        is_tight = context.critical.get() is not None and self.is_given
        if (self._is_within or is_tight) and self._is_alone():
            self._save_due(is_tight=is_tight)

    def before_effect(self, *, is_reversible: bool) -> None:
        """An effect is about to be meant; what is saved now stands in the row of its intent."""
        if is_reversible or not self._is_alone():
            return
        why, cadence = "before_irreversible", self._cadence
        self._snap_all(why, [s for s, own in self._snapshots.items() if own.before_irreversible])
        if context.critical.get() is not None and self.is_given:
            cadence |= TIGHT
        if cadence.before_irreversible or cadence.is_adaptive:
            self._keep(why)

    def after_child(self) -> None:
        """A child has ended; that is a checkpoint unless the run wants none at all."""
        if not self._is_alone():
            return
        self._snap_all("on_child", [s for s, own in self._snapshots.items() if own.on_child])
        if self._cadence != never() or not self.is_given:
            self._keep("on_child")

    def tick(self) -> None:
        """From the housekeeper: save by the clock while a call of the agent runs."""
        if self.is_timed:
            with self._gate:
                is_alone = self._session.book.sides == self._sides
                if self._still and is_alone:
                    self._save_due(is_tight=False, is_between=False)

    def standing_still(self) -> AbstractContextManager[None]:
        """A call of the agent's own line runs inside, and its code and state stand still."""
        return self._stand() if self.is_timed and not self._session.is_side() else _MOVING

    @contextmanager
    def _stand(self) -> Iterator[None]:
        with self._gate:
            self._still += 1
            self._told.clear()
        try:
            yield
        finally:
            with self._gate:  # A save that has begun is finished first.
                self._still -= 1

    def waits_for(self, ticket: Ticket) -> bool:
        """Whether an answer is given only once its row is durable."""
        if self._durability == DURABLE or context.critical.get() is not None:
            return True
        if self._durability == ASYNC:
            return False
        now = self._session.clock.monotonic()
        if self._oldest is None or self._oldest[0].is_over:
            self._oldest = ticket, now
        return now - self._oldest[1] >= BOUND_S

    def _tell_clash(self, chosen: adaptive.Controller) -> None:
        """Say, once, that no interval keeps both the overhead cap and the recovery time."""
        between = chosen.clamp()
        if self._has_told or (between.is_possible and math.isfinite(between.low_s)):
            return
        self._has_told = True
        self._session.log.warning(
            "the SLA contradicts itself: at what saves take here, overhead_cap asks for %.3g s "
            "between them, and max_recovery leaves %.3g s; the cap is kept "
            "(`holdfast advise --from-store` says what would keep both)",
            between.low_s,
            max(0.0, between.high_s),
        )

    def _is_alone(self) -> bool:
        """Whether only the agent's own line of code is at work in this turn, and asks."""
        session = self._session
        return session.book.sides == self._sides and not session.is_side()

    def _save_due(self, *, is_tight: bool, is_between: bool = True) -> None:
        """Save what is due; in the middle of a call each but once: a hang is no progress."""
        at = self._progress()
        cadence = self._cadence | TIGHT if is_tight else self._cadence
        told = frozenset() if is_between else frozenset(self._told)
        for why, only in self._due_snapshots(at, None, told):
            self._snap(why, only, self._session.turn)
            self._told.update(only)
        if None in told:
            return
        since, controller = self._since[None], self._controller
        found = due(cadence, since, at, controller=controller, is_between=is_between)
        if found is not None:
            self._keep(found)
            self._told.add(None)

    def _due_snapshots(
        self, at: Progress, turn: int | None, told: frozenset[str | None] = frozenset()
    ) -> list[tuple[str, list[str]]]:
        """The sections whose snapshot is due; those of one rule make one snapshot."""
        found: dict[str, list[str]] = {}
        for section, cadence in self._snapshots.items():
            if section in told:
                continue
            since = self._since[section]
            why = due(cadence, since, at, turn=turn, controller=self._snapper, is_between=False)
            if why is not None:
                self._since[section] = at
                if section in self._session.state.root:
                    found.setdefault(why, []).append(section)
        return list(found.items())

    def _snap_all(self, why: str, sections: list[str]) -> None:
        """An event asks for a snapshot of sections; it holds those that are there."""
        self._since |= dict.fromkeys(sections, self._progress())
        if only := [section for section in sections if section in self._session.state.root]:
            self._snap(why, only, self._session.turn)

    def _keep(self, why: str) -> None:
        """Save the state as it is now; a state that cannot be saved is told at the turn's end."""
        session = self._session
        began = session.clock.monotonic()
        try:
            session.sections.capture()
            if first_fault(session.validators, session.state.root) is not None:
                return
            mark, _, delta = hold(session, None, began)
            now, used, steps = session.clock.now(), session.used, session.steps
            session.pend(Kept(session.turn, now, mark, why, delta, used, steps))
        except Exception:  # noqa: BLE001 also what the user's `capture` raises
            return
        except BaseException as error:
            cut_short(session, error)
            raise
        self.marked(session.clock.monotonic() - began)

    def _snap(self, why: str, only: list[str], turn: int) -> None:
        session = self._session
        began = session.clock.monotonic()
        try:
            session.sections.capture()
            mark, state, delta = hold(session, only, began)
            now, used, steps = session.clock.now(), session.used, session.steps
            session.pend(Kept(turn, now, mark, why, delta, used, steps, only, state))
        except Exception:  # noqa: BLE001 as above
            return
        except BaseException as error:
            cut_short(session, error)
            raise
        self.marked(session.clock.monotonic() - began, only)

    def _progress(self) -> Progress:
        session = self._session
        used = session.used
        tokens = (used.tokens_in or 0) + (used.tokens_out or 0)
        return Progress(steps=session.steps, tokens=tokens, now=session.clock.monotonic())


def _told(saver: Controller | None, other: Controller | None, took_s: float, now: float) -> None:
    """Tell who chose a save what it took, and who chooses the others that it is gone."""
    if saver is not None:
        saver.saved(took_s, now)
    if other is not None:
        other.spent(took_s)


def _controller(
    session: Session, *cadences: Cadence, of_snapshots: bool = False
) -> adaptive.Controller | None:
    """What learns the best interval; it begins with what the run's own history says."""
    if not any(each.is_adaptive for each in cadences):
        return None
    sla = session.care.sla
    return adaptive.Controller(
        session.clock.monotonic(),
        learnt=learnt_of(_entries(session), of_snapshots=of_snapshots),
        limits=limits_of(sla, detect_s=0.0),
        value=value_of(sla, _turn_s(session)),
    )


def _turn_s(session: Session) -> float | None:
    """How long a turn of the run has taken so far; None before one has ended."""
    ends = [entry for entry in _entries(session) if isinstance(entry, TurnEnded)]
    if not ends:
        return None
    return max(0.0, ends[-1].at - session.writer.run.body.created) / (ends[-1].turn + 1)


def _since(session: Session, saved: Iterable[str | None]) -> dict[str | None, Progress]:
    """How far the run was when each was saved last, as its journal says; the clock begins now.

    None is a whole state, the others are sections with snapshots of their own.
    """
    now = session.clock.monotonic()
    found = dict.fromkeys(saved, Progress(now=now))
    for entry in _entries(session):
        if isinstance(entry, TurnEnded | Saved | Kept) and entry.mark is not None:
            tokens = (entry.used.tokens_in or 0) + (entry.used.tokens_out or 0)
            at = Progress(steps=entry.steps, tokens=tokens, now=now)
            only = None if isinstance(entry, TurnEnded) else entry.only
            found |= {each: at for each in _held(only) if each in found}
    return found


def _held(only: list[str] | None) -> Sequence[str | None]:
    """What a save holds, as `_since` names it."""
    return [None] if only is None else only


def _entries(session: Session) -> Iterator[Entry]:
    """What the run's newest rows hold, where it had lives before this one."""
    for placed in () if session.history is None else session.history.rows:
        yield from placed.row.entries
