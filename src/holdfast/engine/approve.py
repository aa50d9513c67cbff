"""A person's leave for an effect, asked before its intent and bound to its exact arguments."""

from collections.abc import Callable

import msgspec

from holdfast.engine.ask import Wanted, ask
from holdfast.engine.handlers import arranged
from holdfast.engine.item import APPROVAL
from holdfast.engine.question import Given, Question, show
from holdfast.engine.session import Frame
from holdfast.errors import Expired, NotDone, Rejected, UsageError
from holdfast.model.journal import Answered, Questioned
from holdfast.model.limits import seconds
from holdfast.store.codec import values


class Approve(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls of an effect need leave: those `when` says, else all; how long it is good."""

    when: Callable[..., bool] | None
    within_s: float | None


def rule(
    name: str,
    approve: bool | Callable[..., bool],  # noqa: FBT001 as the user says it
    within: float | str | None,
) -> Approve | None:
    """What `approve=` and `approve_within=` of an effect say, checked where they are written."""
    if approve is not True and approve is not False and not callable(approve):
        msg = f"approve= of {name} takes True or a function of its arguments, not {approve!r}"
        raise UsageError(msg)
    if approve is False:
        if within is not None:
            msg = f"approve_within= of {name} says how long an approval is good; add approve="
            raise UsageError(msg)
        return None
    try:
        within_s = None if within is None else seconds(within)
    except ValueError as error:
        raise UsageError(f"approve_within= of {name}: {error}") from None
    return Approve(when=None if approve is True else approve, within_s=within_s)


def approval(
    needs: Approve,
    here: Frame,
    question: Question,
    given: Given,
    *,
    is_done: bool,
) -> Answered | None:
    """The leave to be recorded with the intent, or None where none is needed or it was used.

    `is_done` says that the effect was meant already, here or on another line of history.
    `Waiting` until a person has spoken; `Rejected` or `Expired` where the effect may not be done.
    """
    if needs.when is not None and not _is_needed(needs.when, question.name, given):
        return None
    session = here.session
    asked = Question(f"approve {question.name}", question.digest, question.asked, question.bound)
    if is_done:
        _withdraw(here, asked)
        return None
    text = show(question.name, question.asked)
    data = values.encode(question.bound, path=f"arguments of {question.name}")
    wanted = Wanted(kind=APPROVAL, text=text, question=asked, within_s=needs.within_s, args=data)
    heard = ask(here, wanted)
    answered = heard.answered
    if answered.how == "approved":
        return answered if heard.is_new else None
    if heard.is_new:
        session.pend(answered)
    if answered.how == "rejected":
        raise Rejected(session.id, text, answered.by or "", answered.note or "")
    raise Expired(session.id, answered.id, text)


def _is_needed(when: Callable[..., bool], name: str, given: Given) -> bool:
    """What `approve=` says of these arguments, which it gets as a probe does."""
    try:
        args, kwargs = arranged(when, given, "")
    except NotDone as error:
        raise TypeError(f"approve= of {name}: {error.__cause__}") from None
    return when(*args, **kwargs)


def _withdraw(here: Frame, asked: Question) -> None:
    """Pass over the question of an effect that was meant already; nobody need answer it now."""
    session = here.session
    if not session.book.knows(session.scope, asked):
        return
    call, record = session.ask(asked, here)
    if record is not None and isinstance(record.entry, Questioned):
        now = session.clock.now()
        session.pend(Answered(call, record.entry.id, "withdrawn", None, None, None, now))
    session.book.received(call.scope)
