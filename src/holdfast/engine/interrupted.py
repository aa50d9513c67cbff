"""Ctrl-C in the user's own program: noted in the run, told shortly, with how the run goes on."""

from types import TracebackType

from holdfast.engine.faults import is_broken
from holdfast.engine.order import Order
from holdfast.engine.session import Session
from holdfast.model.journal import Interrupted

_OURS = __name__.partition(".")[0]


def tell(error: BaseException, order: Order) -> None:
    """Say that the run can be continued; of the way to where it was cut, leave the user's lines.

    Between them stands how Holdfast makes a call, which is nothing to look at: nothing failed.
    A child goes on with its parent, of which alone is told.
    """
    if order.origin is None:
        error.add_note(
            f"run {order.run} is interrupted: what it recorded is kept; "
            f'the same call, with id="{order.run}", continues it'
        )
    error.__traceback__ = _theirs(error.__traceback__)


def note(session: Session, why: BaseException) -> None:
    """Whoever runs the process told it to stop: nothing failed here."""
    if not is_broken(session.stopped) and not session.is_over:
        exits = session.exits.of(why)
        session.pend(Interrupted(session.clock.now(), type(why).__name__, exits))


def _theirs(trace: TracebackType | None) -> TracebackType | None:
    lines: list[TracebackType] = []
    while trace is not None:
        module: str = trace.tb_frame.f_globals.get("__name__", "")
        if module.partition(".")[0] != _OURS:
            lines.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for each in reversed(lines):
        kept = TracebackType(kept, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return kept
