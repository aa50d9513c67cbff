"""The agent's loops: where a turn begins and ends, and what a restart puts back in place."""

from collections.abc import Iterable

from holdfast import failpoint
from holdfast.capture.gaps import gaps_in
from holdfast.engine import lacks
from holdfast.engine.back import newest_passing
from holdfast.engine.needed import rows_to
from holdfast.engine.others import let_others_ask
from holdfast.engine.restore import state_at
from holdfast.engine.save import cut_short, seal
from holdfast.engine.session import Session
from holdfast.engine.validate import first_fault
from holdfast.errors import HoldfastError, InvalidState, SecretMissing, UsageError
from holdfast.model.ids import Point, ranges
from holdfast.model.journal import Based, LoopLeft, TurnEnded
from holdfast.model.sections import Declared
from holdfast.store.reader import Placed

BASE_BYTES_MIN = 64 * 1024
"""A new base is due when a restart would read more than this, and more than the last base and
what that names."""

BASE_BYTES_ASIDE_MIN = 1024 * 1024
"""And when more than this was put aside since then, and more than the last base has and names: rows
behind a base are needed, with all that they name, as long as any point after it is."""


class Loops:
    """Turns of a run, counted through all of its loops; the state at each turn's end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._entered = 0
        self._live_loop = 1
        self._next_turn = 0
        self._open_loop: int | None = None
        self._is_restored = True
        self.is_resumed = session.history is not None
        if self.is_resumed:
            self._resume()

    def _resume(self) -> None:
        """Find the turn that was interrupted, and in which loop it stands."""
        assert self._session.history is not None
        for placed in self._session.history.rows:
            for entry in placed.row.entries:
                if isinstance(entry, TurnEnded | Based):
                    self._next_turn, self._is_restored = entry.turn + 1, False
                if isinstance(entry, TurnEnded):
                    self._live_loop = entry.loop + entry.is_loop_over
                if isinstance(entry, Based):
                    self._live_loop = entry.loop

    def enter(self) -> "Turns":
        """The agent begins a loop: one that is over yields nothing, else its next turn."""
        session = self._session
        session.refuse_if_stopped()
        if session.is_side():
            msg = "run.turns() belongs to the agent's own code, not to a thread or task beside it"
            raise UsageError(msg)
        if self._open_loop is not None:
            msg = (
                "run.turns() was asked for while the loop before has not let go of its turns; "
                "loops stand one after the other, each as `for turn in run.turns():`"
            )
            raise UsageError(msg)
        session.close_scope(session.scope)
        self._entered += 1
        if self._entered < self._live_loop:
            return self._skip(self._entered)
        if self._entered > self._live_loop:
            self._end(self._entered - 1, is_loop_over=True)
            self._live_loop = self._entered
        self._restore()
        return Turns(self, self._entered)

    def _skip(self, loop: int) -> "Turns":
        """A loop that was over before the restart: put the state there in place."""
        session = self._session
        assert session.history is not None
        point = session.book.loops_left[loop]
        head = session.writer.run.row.head
        self._put_in_place(rows_to(session.reader, head, point), point)
        session.scope = -1 - loop
        return Turns(self, loop, is_over=True)

    def _restore(self) -> None:
        """Put the state of the newest turn's end inside the containers the agent holds."""
        if not self._is_restored:
            session = self._session
            assert session.history is not None
            self._put_in_place(session.history.rows)
            self._refuse_invalid()
            self._is_restored = True
            session.log.info("restored the state at the end of turn %d", self._next_turn - 1)

    def _put_in_place(self, rows: Iterable[Placed], point: Point | None = None) -> None:
        """Put a recorded state in place; what is missing in it is told."""
        session = self._session
        before, session.guard.clear = session.guard.gaps, set()
        try:
            state = state_at(
                session.reader,
                rows,
                point,
                optional=session.sections.optional,
                settle=session.settle if session.is_checked else None,
            )
        except SecretMissing as error:
            raise session.stop(error) from None
        finally:
            clear, session.guard.clear = session.guard.clear, None
        assert state is not None
        is_whole = session.guard.gaps == before
        gaps = {} if is_whole else dict(gaps_in(state.root))
        session.state.adopt(state)
        session.sections.restore(state.lost, self._next_turn)
        session.sections.lack(gaps)
        if not is_whole:
            session.lack(list(gaps) or ["state"])
        if clear:
            session.pend(lacks.exposed(session.id, clear, session.log, session.clock.now()))

    def _refuse_invalid(self) -> None:
        """A restored state that fails a validator: go back to the newest point that passes.

        Where effects were done since, that is for a person to decide: they would be done again.
        """
        session, last = self._session, self._next_turn - 1
        found = first_fault(session.validators, session.state.root)
        if found is None:
            return
        validator, why = found
        optional = session.sections.optional
        back = newest_passing(session.reader, session.writer.run, session.validators, optional)
        if back is None:
            why += "; no point before it passes"
        elif not back.is_free:
            why += f"; turn {back.turn} passes, but effects or questions stand after it"
        else:
            session.back = back.point
            why += f"; the run goes back to the end of turn {back.turn}"
        when = f"at the end of turn {last}, as restored,"
        error = session.stop(InvalidState(session.id, validator, why, when))
        session.log.error("%s", error)
        raise error

    def open_turn(self, loop: int) -> int:
        """The next turn begins."""
        session = self._session
        if session.stopped is not None or session.is_over:
            session.refuse_if_stopped()
        self._open_loop = loop
        session.scope = session.turn = self._next_turn
        session.error = None
        failpoint.reach("turn.opened")
        return self._next_turn

    async def let_others_ask(self) -> None:
        """Before the open turn ends, under an event loop."""
        await let_others_ask(self._session)

    def end_turn(self, loop: int) -> None:
        """The open turn is over; its changes ride along with the next commit."""
        session = self._session
        if session.stopped is not None or session.is_over:
            session.refuse_if_stopped()
        self._end(loop, is_loop_over=False)

    def _end(self, loop: int, *, is_loop_over: bool) -> None:
        session, turn = self._session, self._next_turn
        session.close_scope(turn)
        session.refuse_doubt()
        session.sections.capture()
        is_marked = session.pacer.end_turn(turn)
        if session.validators and (is_marked or not session.pacer.is_given):
            session.refuse_invalid(f"at the end of turn {turn}")
        failpoint.reach("turn.ending")
        began, now = session.clock.monotonic(), session.clock.now()
        try:
            with session.state.lock:  # Change, base and hash are of the same moment.
                delta = session.state.delta()
                based = self._based(turn, loop + is_loop_over, is_beside=delta is not None)
                mark = seal(session, session.state.root, began) if is_marked else None
            used, steps = session.used, session.steps
            ended = TurnEnded(turn, loop, now, delta, mark, is_loop_over, used, steps)
            # Pended together they stand side by side: the base can name what the end wrote.
            session.pend(*_declared(session, based), ended, *based) if based else session.pend(
                ended
            )
        except BaseException as error:
            cut_short(session, error)
            raise
        failpoint.reach("turn.ended")
        session.book.forget(turn)
        if is_marked:
            session.pacer.marked(session.clock.monotonic() - began)
        self._next_turn = turn + 1

    def _based(self, turn: int, loop: int, *, is_beside: bool) -> list[Based]:
        """The base that goes with a turn's end, if one is due."""
        session = self._session
        to_read = max(BASE_BYTES_MIN, session.state.bytes_to_read)
        aside = max(BASE_BYTES_ASIDE_MIN, to_read + session.state.bytes_aside)
        if session.bytes_since_base <= to_read and session.writer.bytes_aside <= aside:
            return []
        try:
            state = session.state.base(is_beside=is_beside)
        except HoldfastError:
            # A thread changed something meanwhile. The turn's end is told already and must be
            # written; what is wrong is said when the state is saved next.
            return []
        session.bytes_since_base = session.writer.bytes_aside = 0
        return [Based(turn, loop, state, ranges(iter(sorted(session.outside_rows))))]

    def left(self, loop: int) -> None:
        """The `for` loop let go of its turns: by break, by return, or by an exception."""
        session = self._session
        if loop == self._open_loop and not session.is_over and session.stopped is None:
            self._leave(loop)

    def _leave(self, loop: int) -> None:
        session = self._session
        self._open_loop = None
        session.scope = -1 - loop
        try:
            session.sections.capture()
            session.pend(LoopLeft(self._next_turn, loop, session.state.delta()))
        except Exception:  # noqa: BLE001 also what the user's `capture` raises
            return  # Said again, to the agent, when the state is saved next.
        except BaseException as error:
            cut_short(session, error)
            raise


def _declared(session: Session, based: list[Based]) -> list[Declared]:
    """With a base, what it holds is declared anew: nothing before it is read any more."""
    is_due = based and session.sections.declared
    return [Declared(dict(session.sections.declared))] if is_due else []


class Turns:
    """What `run.turns()` returns: numbers of turns, for `for` and for `async for`."""

    def __init__(self, loops: Loops, loop: int, *, is_over: bool = False) -> None:
        self.loop = loop
        self.has_begun = False
        self._loops, self._is_over = loops, is_over

    def __iter__(self) -> "Turns":
        return self

    def __next__(self) -> int:
        if self._is_over:
            raise StopIteration
        return self._go_on()

    def __aiter__(self) -> "Turns":
        return self

    async def __anext__(self) -> int:
        if self._is_over:
            raise StopAsyncIteration
        if self.has_begun and self._loops.is_resumed:  # In a first life nothing is recorded yet.
            await self._loops.let_others_ask()
        return self._go_on()

    def _go_on(self) -> int:
        if self.has_begun:
            self._loops.end_turn(self.loop)
        self.has_begun = True
        return self._loops.open_turn(self.loop)

    def __del__(self) -> None:
        # CPython lets go of a loop's iterator right when the loop is left.
        if self.has_begun and not self._is_over:
            self._loops.left(self.loop)
