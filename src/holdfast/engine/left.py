"""Streams that the agent let go of: for good, or because an error ends the run on its way.

A loop that is left says nothing of why. So a stream counts as left at once, and where an error ends
this life before the agent has asked for anything more, that is taken back: after the restart the
stream goes on, as after a kill.
"""

from holdfast.engine.faces import Flowing
from holdfast.engine.session import Session


def note(session: Session, stream: Flowing) -> None:
    """The agent let go of a stream."""
    last = [each for each in session.left if _is_last(session, *each)]
    session.left = [*last, (stream, _asked(session, stream))]


def take_back(session: Session) -> None:
    """An error ends this life: what it was thrown through was not left for good."""
    if session.stopped is None and not session.is_over:
        open_ = (session.scope, session.turn)  # The same error has left the loop over turns too.
        for stream, asked in session.left:
            if _is_last(session, stream, asked) and stream.call.scope in open_:
                stream.spill(is_due=True)
    session.left = []


def _is_last(session: Session, stream: Flowing, asked: int) -> bool:
    return asked == _asked(session, stream)


def _asked(session: Session, stream: Flowing) -> int:
    """How much was asked so far: by the agent's own code, or by all if the stream is not of it."""
    return session.book.all if stream.call.is_side else session.book.own
