"""An effect: intent durable → call → outcome durable → returned; in doubt, ask before acting."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast import failpoint
from holdfast.engine import context
from holdfast.engine.approve import Approve, approval
from holdfast.engine.bare import olders
from holdfast.engine.call import UsageFn, cut_off_again, nothing_new, read_usage
from holdfast.engine.drive import PAUSE_S, Commit, Invoke, Recorded, Rest
from holdfast.engine.faults import is_broken, is_cut, is_cutting, to_error, to_exception
from holdfast.engine.fence import Look
from holdfast.engine.fitted import as_said
from holdfast.engine.handlers import arranged
from holdfast.engine.intent import Aim, meaning
from holdfast.engine.outcomes import begun_elsewhere, is_elsewhere
from holdfast.engine.patience import Tries
from holdfast.engine.question import KEY, Question, Shape, show
from holdfast.engine.reading import Record, is_open
from holdfast.engine.session import Frame
from holdfast.errors import Blocked, InDoubt, NotDone, NotStorable
from holdfast.model.journal import Answered, Call, Declined, Happened, Intended
from holdfast.model.limits import Retry
from holdfast.policy.effects import Move, next_move
from holdfast.policy.signs import words_of
from holdfast.store.codec import values
from holdfast.store.codec.veil import redact
from holdfast.store.marks import marks_of

SIBLINGS_WAIT_S_MAX = 10.0


class EffectSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An effect as declared; `after` are the modules and names of those that it stands on."""

    fn: Callable[..., Any]
    shape: Shape
    module: str
    key: tuple[str, ...] = ()
    undo: Callable[..., Any] | None = None
    offset: Callable[..., Any] | None = None
    probe: Callable[..., Any] | None = None
    is_idempotent: bool = False
    not_done: tuple[type[BaseException], ...] = ()
    returns_none: bool = False
    usage: UsageFn | None = None
    approve: Approve | None = None
    limit_s: float | None = None
    retry: Retry | None = None
    after: tuple[tuple[str, str], ...] = ()


class _Deed(msgspec.Struct, frozen=True, kw_only=True):
    """One effect being done: what is asked, how it is known, under which key."""

    spec: EffectSpec
    here: Frame
    question: Question
    call: Call
    aim: Aim
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    look: Look | None
    granted: Answered | None = None
    tries: Tries | None = None


def perform(
    spec: EffectSpec, here: Frame, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Recorded:
    """Do the effect once: whatever a crash cuts off is found in doubt."""
    session = here.session
    for stream in session.streams:
        stream.refuse_deed(f"effect {spec.shape.name}")
    question = spec.shape.question(args, kwargs)
    granted = None
    if spec.approve is not None:
        is_done = _is_meant(spec, here, question)
        given = spec.shape.spread(spec.shape.bind(args, kwargs))
        granted = approval(spec.approve, here, question, given, is_done=is_done)
    call, record = session.ask(question, here)
    yield from nothing_new(here, call) if is_open(record) else ()
    look: Look | None = None
    if record is None or is_elsewhere(record.outcome):
        yield from _let_siblings_ask(here, call)
        look = _look(spec, here, question, record)
        found = look.aim
    elif isinstance(record.outcome, Happened):
        session.book.received(call.scope)
        if isinstance(record.entry, Intended):
            context.meant(record.entry.key)
        value = session.give(record.outcome.value, record.row, record.index)
        return as_said(spec.fn, value) if record.outcome.how == "person" else value
    elif isinstance(record.outcome, Declined) and record.outcome.error is not None:
        session.book.received(call.scope)
        if is_cut(record.outcome.error):
            yield from cut_off_again(here, call, record.outcome.took_s, record.outcome.error)
        raise to_exception(record.outcome.error, spec.not_done)
    else:
        found = _recorded_aim(spec, record, question)
        look = _look_again(here, question, found, record)
        found = found if look is None else look.aim
    context.meant(found.key)
    deed = _Deed(
        spec=spec,
        here=here,
        question=question,
        call=call,
        aim=found,
        args=args,
        kwargs=kwargs,
        look=look,
        granted=granted,
        tries=None if spec.retry is None else Tries(session, call, spec.retry),
    )
    if look is not None and look.standing is not None:
        return (yield from _adopt(deed, look))
    if record is not None and record.outcome is None:
        return (yield from _settle(deed, None))
    return (yield from _attempt(deed, "call"))


def _is_meant(spec: EffectSpec, here: Frame, question: Question) -> bool:
    """Whether the effect was meant here, or done on another line: that needs no leave any more."""
    session, meant = here.session, meaning(spec.module, spec.key, question)
    is_known = session.book.knows(session.scope, question)
    return is_known or session.fence.stands(meant, question)


def _look(spec: EffectSpec, here: Frame, question: Question, record: Record | None) -> Look:
    """What the ledger says of a call that this line of history has not made yet."""
    session, entry = here.session, record and record.entry
    elsewhere = entry.key if isinstance(entry, Intended) else None
    meant = meaning(spec.module, spec.key, question)
    for older in olders(question):
        was = older.meaning(spec.module, spec.key)
        if session.fence.stands(was, older.question):
            meant, question = was, older.question
    try:
        look = session.fence.look(meant, question, elsewhere)
        return session.fence.beside(look, question, session.book.unasked())
    except Blocked as error:
        raise session.stop(error) from None


def _recorded_aim(spec: EffectSpec, record: Record, question: Question) -> Aim:
    intended = record.entry
    assert isinstance(intended, Intended)
    meant = replace(meaning(spec.module, spec.key, question), about=intended.about)
    if not intended.module:  # Indexed as it was then.
        meant = replace(meant, module="", intent=meant.old)
    return Aim(meaning=meant, nth=intended.nth, key=intended.key)


def _look_again(here: Frame, question: Question, aim: Aim, record: Record) -> Look | None:
    """What the ledger says of an effect that this line meant before; another may have done it."""
    session, fence = here.session, here.session.fence
    try:
        if record.outcome is None:
            look = fence.settled(aim, question)
            if look is not None and look.aim.key != aim.key:  # It was taken back since.
                record.outcome = begun_elsewhere(record.call, aim.key, session.clock.now())
                session.pend(record.outcome)
            return look
        return fence.look(aim.meaning, question, again=aim)
    except Blocked as error:
        raise session.stop(error) from None


def _adopt(deed: _Deed, look: Look) -> Recorded:
    """The effect stands on another line of history: its outcome answers here too.

    One that is in doubt there is in doubt here.
    """
    assert look.standing is not None
    session, standing, outcome = deed.here.session, look.standing.meant, look.outcome
    meant = _intended(deed, standing.args)
    if outcome is None:
        _, _, ticket = session.record(meant, intents=tuple(marks_of(meant)))
        session.doing[deed.aim.key] = deed.call
        failpoint.reach("doubt.adopting")
        yield Commit(deed.here, ticket)
        failpoint.reach("doubt.adopted")
        return (yield from _settle(deed, None))
    happened = replace(
        outcome, call=deed.call, at=session.clock.now(), took_s=0.0, how="ledger", usage=None
    )
    row, index, ticket = session.record(happened, before=(meant,), intents=tuple(marks_of(meant)))
    session.received(deed.call, None)
    failpoint.reach("effect.adopting")
    yield Commit(deed.here, ticket)
    failpoint.reach("effect.adopted")
    return session.give(outcome.value, row, index)


def _intended(deed: _Deed, args: bytes) -> Intended:
    session, aim = deed.here.session, deed.aim
    return Intended(
        deed.call,
        aim.key,
        aim.meaning.about,
        aim.nth,
        args,
        session.clock.now(),
        session.writer.run.row.epoch,
        aim.meaning.module,
    )


def _let_siblings_ask(here: Frame, call: Call) -> Recorded:
    """Before a new effect, let threads and tasks beside it ask for what is recorded of them."""
    session = here.session
    if not isinstance(call.scope, int):
        return
    began = session.clock.monotonic()
    while session.book.is_waiting(call.scope):
        if session.clock.monotonic() - began > SIBLINGS_WAIT_S_MAX:
            raise session.stop(session.book.late(call))
        yield Rest(here, PAUSE_S)


def _attempt(deed: _Deed, how: str) -> Recorded:
    """Record the intent, call, record the outcome."""
    session, spec = deed.here.session, deed.spec
    args = values.encode(deed.question.bound, path=f"arguments of {spec.shape.name}")
    if deed.granted is not None and (deed.tries is None or deed.tries.count == 0):
        session.pend(deed.granted)  # In the same row as the intent: used once, or not at all.
    session.pacer.before_effect(is_reversible=(spec.undo or spec.offset) is not None)
    meant = _intended(deed, session.reader.chunks.keep(args))
    _, _, ticket = session.record(meant, intents=tuple(marks_of(meant)))
    session.doing[deed.aim.key] = deed.call
    failpoint.reach("effect.intending", deed.call)
    try:
        yield Commit(deed.here, ticket, begins=True)
    except BaseException as cut:
        _not_begun(deed, how, cut)
        raise
    failpoint.reach("effect.intended", deed.call)
    if deed.look is not None and session.fence.has_changed(deed.look):
        raise _overtaken(deed)
    began = session.clock.monotonic()
    try:
        value = yield Invoke(_inside(deed), spec.fn, deed.args, _with_key(deed), spec.limit_s)
    except Exception as error:
        if is_broken(session.stopped):
            raise
        took_s = session.clock.monotonic() - began
        if not isinstance(error, (NotDone, *spec.not_done)):
            return (yield from _settle(deed, error, took_s, is_repeated=how == "repeat"))
        failed, not_done_by = error, "call"
    except BaseException as cut:
        _doubt(deed, f"{type(cut).__name__} cut it off")
        raise
    else:
        failpoint.reach("effect.called", deed.call, deed.aim.key, spec.is_idempotent, value)
        return (yield from _happened(deed, value, session.clock.monotonic() - began, how))
    return (yield from _not_done(deed, failed, took_s, not_done_by))


def _not_done(deed: _Deed, error: Exception, took_s: float, how: str) -> Recorded:
    """It surely did not happen: make the call again if that was declared, else raise."""
    wait_s = None if deed.tries is None else deed.tries.again_s(error, took_s)
    if wait_s is None:
        yield from _declined(deed, error, took_s, how)
        raise error
    yield from _declined(deed, None, took_s, how)
    try:
        yield Rest(deed.here, wait_s)
    except BaseException as cut:
        _not_begun(deed, "call", cut, took_s)
        raise
    return (yield from _attempt(deed, "call"))


def _settle(
    deed: _Deed, error: Exception | None, took_s: float = 0.0, *, is_repeated: bool = False
) -> Recorded:
    """The effect may have happened. `error`: the call just raised it; None: found after a crash."""
    spec, session, wait_s = deed.spec, deed.here.session, None
    if error is not None and spec.is_idempotent and deed.tries is not None:
        wait_s = deed.tries.again_s(error, took_s)
    move = next_move(
        has_probe=spec.probe is not None and wait_s is None,
        is_idempotent=spec.is_idempotent,
        is_repeated=is_repeated and wait_s is None,
    )
    match move:
        case Move.PROBE:
            return (yield from _probe(deed, error))
        case Move.REPEAT:
            if wait_s is not None:
                yield Rest(deed.here, wait_s)
            return (yield from _attempt(deed, "repeat"))
        case Move.STOP:
            raised = error and f"the call raised {type(error).__name__}: {words_of(error)}"
            raise _doubt(deed, raised or session.fence.unknown(deed.aim.key)) from error


def _probe(deed: _Deed, error: Exception | None) -> Recorded:
    """Ask the world; what it cannot tell stays in doubt."""
    session, spec = deed.here.session, deed.spec
    assert spec.probe is not None
    given = spec.shape.spread(spec.shape.bind(deed.args, deed.kwargs))
    began = session.clock.monotonic()
    failpoint.reach("effect.probing")
    try:
        args, kwargs = arranged(spec.probe, given, deed.aim.key)
        found = yield Invoke(_inside(deed), spec.probe, args, kwargs)
    except Exception as unknown:
        why = f"its probe raised {type(unknown).__name__}: {unknown}"
        raise _doubt(deed, why) from unknown
    except BaseException as cut:
        _doubt(deed, f"{type(cut).__name__} cut its probe off")
        raise
    failpoint.reach("effect.probed")
    took_s = session.clock.monotonic() - began
    if found is not None:
        value = None if found is True and spec.returns_none else found
        return (yield from _happened(deed, value, took_s, "probe"))
    if error is None:
        return (yield from _attempt(deed, "call"))
    return (yield from _not_done(deed, error, took_s, "probe"))


def _happened(deed: _Deed, value: object, took_s: float, how: str) -> Recorded:
    session = deed.here.session
    try:
        data = values.encode(value, path=f"the outcome of {deed.spec.shape.name}")
    except NotStorable as error:
        raise _doubt(deed, f"it was done, but its outcome cannot be stored ({error})") from error
    usage, _ = read_usage(deed.spec.usage, value, deed.spec.shape.name)
    kept = session.reader.chunks.keep(data)
    row, index, ticket = session.record(
        Happened(deed.call, deed.aim.key, kept, session.clock.now(), took_s, how, usage)
    )
    session.doing.pop(deed.aim.key, None)
    session.received(deed.call, usage)
    failpoint.reach("effect.recording")
    yield Commit(deed.here, ticket)
    failpoint.reach("effect.recorded", deed.call)
    session.pacer.after_call()
    return session.give(data, row, index, value)


def _declined(deed: _Deed, error: Exception | None, took_s: float, how: str) -> Recorded:
    """Record that it did not happen; without an error it is made anew, here or after a crash."""
    session = deed.here.session
    recorded = None if error is None else to_error(error, deed.spec.not_done)
    _, _, ticket = session.record(
        Declined(deed.call, deed.aim.key, recorded, session.clock.now(), took_s, how)
    )
    session.doing.pop(deed.aim.key, None)
    if error is not None:
        session.received(deed.call, None)
    failpoint.reach("effect.declining")
    yield Commit(deed.here, ticket)
    failpoint.reach("effect.declined")


def _overtaken(deed: _Deed) -> Exception:
    """Another line of history recorded an effect of the same scope in this very moment."""
    session, question = deed.here.session, deed.question
    session.doing.pop(deed.aim.key, None)
    session.pend(begun_elsewhere(deed.call, deed.aim.key, session.clock.now()))
    asked = show(question.name, question.asked)
    how = "was begun on another branch or fork in the same moment"
    return session.stop(Blocked(session.id, asked, deed.aim.key, "an effect", how))


def _not_begun(deed: _Deed, how: str, cut: BaseException, took_s: float = 0.0) -> None:
    """A wait before the call was cut off, so it was not made; what cut it off is what came of it.

    Nothing more is known of an effect that was tried before.
    """
    session, call = deed.here.session, deed.call
    session.doing.pop(deed.aim.key, None)
    if how == "call":
        error = to_error(cut) if is_cutting(cut) and not call.is_side else None
        session.pend(Declined(call, deed.aim.key, error, session.clock.now(), took_s, how))
        if error is not None:
            session.received(call, None)


def _doubt(deed: _Deed, why: str) -> Exception:
    session = deed.here.session
    session.doing.pop(deed.aim.key, None)
    return session.stop(InDoubt(session.id, deed.spec.shape.name, deed.aim.key, redact(why)))


def _inside(deed: _Deed) -> Frame:
    name = deed.spec.shape.name
    return Frame(deed.here.session, name, deed.call, is_effect=True, key=deed.aim.key)


def _with_key(deed: _Deed) -> Mapping[str, Any]:
    return {**deed.kwargs, KEY: deed.aim.key} if deed.spec.shape.takes_key else deed.kwargs
