"""Whose code is running: the run's own, one of its calls, or somebody else's."""

from holdfast.engine.session import Frame, Session
from holdfast.errors import NestedCall, NotInRun


def within(session: Session, frame: Frame | None, name: str) -> Frame:
    """The frame, if it belongs to the run; else what called `name` of it is refused."""
    if frame is not None and frame.session is session:
        return frame
    raise NotInRun(name, session.id, session.is_over)


def own(session: Session, frame: Frame | None, name: str) -> Frame:
    """The frame, if it is that of the run's own code and not of a step or effect of it."""
    found = within(session, frame, name)
    if found.inside is not None:
        raise NestedCall(name, found.function)
    return found
