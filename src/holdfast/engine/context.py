"""Where in which run the present code stands; carried by a context variable."""

import logging
from contextvars import ContextVar

import msgspec

from holdfast.capture.tracked import inside
from holdfast.engine.logs import log
from holdfast.engine.session import Frame, Session
from holdfast.errors import UsageError


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """What `holdfast.current()` tells: the run, and the call it is asked from."""

    run_id: str
    turn: int | None
    function: str | None
    idempotency_key: str | None


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A critical section: the keys of its effects in order.

    `cut_s`: after how long an earlier life left it cut off, so that nothing new is asked in it.
    """

    keys: list[str]
    cut_s: float | None = None


frame: ContextVar[Frame | None] = ContextVar("holdfast_frame", default=None)

critical: ContextVar[Section | None] = ContextVar("holdfast_critical", default=None)
"""The critical section that the present code stands in."""

program: ContextVar[str | None] = ContextVar("holdfast_program", default=None)
"""The script or module that a child process reads at present, for the agents that it declares."""

NO_RUN = "-"
"""The `run_id` of a log record that belongs to no run: a format may name the field."""

_active: set[int] = set()


def current() -> Current:
    """The run and call this code belongs to; `UsageError` outside a run."""
    here = frame.get()
    if here is None:
        msg = "holdfast.current() was asked outside a run"
        raise UsageError(msg)
    session = here.session
    return Current(
        run_id=session.id,
        turn=session.turn if session.turn >= 0 else None,
        function=here.function or None,
        idempotency_key=here.key,
    )


def enter(session: Session) -> None:
    """A life of a run begins: the code that follows is its."""
    _active.add(id(session))
    frame.set(Frame(session))


def leave(session: Session, before: Frame | None) -> None:
    """A life of a run is over: its code stands where it stood before, and inside no call.

    Ctrl-C between two instructions of ours may have left it inside one, or before it was in.
    """
    _active.discard(id(session))
    frame.set(before)
    inside.set(None)


def refuse_while_read() -> None:
    """Raise where a program begins runs while a child process reads it: each child would."""
    if read := program.get():
        msg = (
            f"{read} begins a run while a child process reads it for its agents; "
            'put what the program does under `if __name__ == "__main__":`'
        )
        raise UsageError(msg)


def meant(key: str) -> None:
    """An effect is asked for: one of the critical section, if the code stands in one."""
    section = critical.get()
    if section is not None and key not in section.keys:
        section.keys.append(key)


def is_any_active() -> bool:
    """Whether any run is active in this process."""
    return bool(_active)


def forget() -> None:
    """In a forked child no run is active."""
    _active.clear()


def name_run(record: logging.LogRecord) -> bool:
    """Say in a log record which run it is of; says that it may be logged."""
    here = frame.get()
    record.__dict__.setdefault("run_id", NO_RUN if here is None else here.session.id)
    return True


log.addFilter(name_run)
