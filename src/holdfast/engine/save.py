"""A checkpoint as the agent asks for it, and what every checkpoint says of itself."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from holdfast.capture.digest import digest
from holdfast.engine.here import own
from holdfast.engine.question import Question
from holdfast.engine.reading import Record
from holdfast.engine.session import Frame, Session
from holdfast.errors import UsageError
from holdfast.model.ids import point_id
from holdfast.model.journal import Call, Mark, Saved
from holdfast.model.parts import writable
from holdfast.model.sections import is_name
from holdfast.policy.parameters import asked_of
from holdfast.store.codec import values
from holdfast.store.codec.vault import vault
from holdfast.store.codec.veil import redact
from holdfast.store.committer import Ticket


def save(
    session: Session, frame: Frame | None, label: str | None, only: Sequence[str] | None
) -> tuple[str, Ticket | None]:
    """Queue a checkpoint of the state as it is now, or of the sections `only`.

    Returns its id, and the ticket to wait for; no ticket where the journal holds it already.
    """
    if not isinstance(label, str | None):
        msg = f"run.checkpoint: a label is text, not {label!r}; sections are named by only=[...]"
        raise UsageError(msg)
    label = label and writable(redact(label))
    question = Question("run.checkpoint", (label or "").encode()[:16], [], {})
    call, record = asked(session, frame, question)
    if record is not None:
        session.replay(record)
        return point_id(session.id, (record.row, record.index)), None
    row, index, ticket = keep(session, call, label, only)
    return point_id(session.id, (row, index)), ticket


def asked(session: Session, frame: Frame | None, question: Question) -> tuple[Call, Record | None]:
    """Which checkpoint of the agent's own code this is, and what the journal holds of it."""
    return session.ask(question, own(session, frame, question.name))


def keep(
    session: Session, call: Call, label: str | None, only: Sequence[str] | None = None
) -> tuple[int, int, Ticket]:
    """Queue a new checkpoint; returns its row, its index there, and the ticket to wait for."""
    began = session.clock.monotonic()
    session.sections.capture()
    session.refuse_invalid(f"at {call.name}")
    sections = None if only is None else _named(only)
    is_own = not session.is_side()
    try:
        mark, state, delta = hold(session, sections, began, label, is_own=is_own)
        now, used, steps = session.clock.now(), session.used, session.steps
        entry = Saved(call, session.turn, now, mark, sections, state, used, steps, delta)
        session.book.received(call.scope)
        if is_own:
            session.pacer.marked(session.clock.monotonic() - began, sections)
        return session.record(entry)
    except BaseException as error:
        cut_short(session, error)
        raise


def cut_short(session: Session, error: BaseException) -> None:
    """Ctrl-C came while changes were taken and not yet kept: without them nothing may follow."""
    if not isinstance(error, Exception):
        session.stopped = session.stopped or error


def _named(only: Iterable[Any]) -> list[str]:
    """The sections that are asked for, each once."""
    if not isinstance(only, Iterable):
        msg = f"run.checkpoint(only=…) takes the names of sections, not {only!r}"
        raise UsageError(msg)
    named = [only] if isinstance(only, str) else list(only)
    unnamed = [name for name in named if not is_name(name)]
    if unnamed:
        why = "a section that is saved alone has a text as its name"
        raise UsageError(f"run.checkpoint(only=…): {why}, not {unnamed[0]!r}")
    return list(dict.fromkeys(map(str.__str__, named)))


def hold(
    session: Session,
    only: list[str] | None,
    began: float,
    label: str | None = None,
    *,
    is_own: bool = True,
) -> tuple[Mark, bytes | None, bytes | None]:
    """What a checkpoint says of itself; then all that it holds, or what changed.

    What changed, and whoever asks writes it before the next change is taken. Only the agent's own
    line can promise that; where it `is_own` not, or where a section that is not asked for cannot
    be stored now, it is all of what was asked for.
    """
    with session.state.lock:  # What is hashed and what is written are of the same moment.
        # The tracked containers themselves: they know the digests of all that has not changed.
        held = _sections(session.state.root, only)
        mark = seal(session, held, began, label)
        state = delta = None
        try:
            if is_own:
                delta = session.state.delta()
        except UsageError:
            if only is None:
                raise
            is_own = False
        if not is_own:
            state = session.reader.chunks.keep(values.encode(held, path="state"))
    return replace(mark, blocked_s=session.clock.monotonic() - began), state, delta


def seal(session: Session, state: object, began: float, label: str | None = None) -> Mark:
    """What a checkpoint of `state` says of itself; saving it began at `began`."""
    session.state.hashes_anew(vault.declared)
    root = digest(state, path="state")
    model, parameters = asked_of(session.model_call)
    return Mark(
        root,
        session.writer.life,
        session.clock.monotonic() - began,
        model,
        parameters,
        session.error,
        label,
        not vault.is_empty,
    )


def _sections(root: dict[Any, Any], only: list[str] | None) -> dict[Any, Any]:
    if only is None:
        return root
    if not only:  # An empty list, which would save nothing at all.
        msg = "run.checkpoint(only=…) names no section; leave it out to save them all"
        raise UsageError(msg)
    unknown = [name for name in only if name not in root]
    if unknown:
        known = ", ".join(map(repr, root)) or "none"
        msg = f"run.checkpoint(only=…): there is no section {unknown[0]!r}; there is: {known}"
        raise UsageError(msg)
    return {name: root[name] for name in only}
