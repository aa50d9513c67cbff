"""Children of a run: runs of their own, begun and continued by their parent.

That a child begins is recorded first, under an id that the parent's place gives it, so a restart
finds it: it goes on with the child, or gets its recorded result. What came of it is the parent's
recorded answer or error. A child has its own timeline and checkpoints; its effects stand in the
ledger of its parent, so that the fence holds for both. What stops a child for a person to look at
stops the parent too, and is no outcome.
"""

import contextvars
import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from holdfast import failpoint
from holdfast.capture.tracked import inside
from holdfast.engine import context
from holdfast.engine.agents import Agent
from holdfast.engine.call import StepSpec, leave, nothing_new, raise_again
from holdfast.engine.drive import Commit, Invoke, Recorded, Rest, adrive, drive
from holdfast.engine.incident import last_decision
from holdfast.engine.line import is_loop_running
from holdfast.engine.naming import run_id
from holdfast.engine.order import Order
from holdfast.engine.question import Question, name_of
from holdfast.engine.reading import Record, key_of
from holdfast.engine.session import Frame
from holdfast.errors import (
    Cancelled,
    ChildFailed,
    Escalated,
    HoldfastError,
    RunFailed,
    RunHeld,
    RunStopped,
    UsageError,
)
from holdfast.model.decision import Action
from holdfast.model.ids import RUN_ID_CHARS_MAX, branch_of, point_id
from holdfast.model.journal import Asked, Call, Raised, Spawned
from holdfast.model.run import Origin
from holdfast.ondemand import OnDemand
from holdfast.store.codec import values

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")

HELD_S = 0.2
"""How often a child is looked for that another process works on."""
LIMIT = 8
MARK_CHARS = 12
"""Of a child's id: so many that among ten thousand siblings no two are ever called the same."""


class Host(Protocol):
    """Who carries out runs."""

    def carry_out(self, order: Order) -> Any:  # noqa: ANN401 the agent's own result
        """Carry an order out in this thread."""

    async def acarry_out(self, order: Order) -> Any:  # noqa: ANN401 the agent's own result
        """Carry an order out while the event loop goes on."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A child as asked for."""

    agent: Agent[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    id: str | None = None


class _Child(msgspec.Struct, frozen=True, kw_only=True):
    """A child at its place in the parent."""

    wanted: Wanted
    here: Frame
    call: Call
    record: Record | None


def wanted(agent: object, args: Sequence[Any], kwargs: dict[str, Any], id_: str | None) -> Wanted:
    """What `run.child` is asked for; refused at its line if it cannot be meant."""
    if not isinstance(agent, Agent):
        msg = f"run.child takes an agent, not {type(agent).__name__}; decorate it with @agent"
        raise UsageError(msg)
    chosen = None if id_ is None else run_id(id_)
    return Wanted(agent=agent, args=tuple(args), kwargs=kwargs, id=chosen)


def called(call: object) -> Wanted:
    """One of the calls of `run.children`: an agent and what it is given."""
    if not isinstance(call, Sequence) or isinstance(call, str) or not call:
        msg = f"run.children takes calls, each written (agent, *args), not {call!r:.80}"
        raise UsageError(msg)
    return wanted(call[0], call[1:], {}, None)


def child(host: Host, here: Frame, asked: Wanted) -> Any:  # noqa: ANN401 the agent's own result
    """The child's result; awaitable where an event loop runs."""
    begun = _asked(here, asked)
    return adrive(_one(host, begun)) if is_loop_running() else drive(_one(host, begun))


def children(
    host: Host, here: Frame, asked: Iterable[Wanted], limit: int, *, returns_errors: bool
) -> Any:  # noqa: ANN401 the results, or what gives them
    """The results of several children in their order, at most `limit` of them at work at once."""
    if type(limit) is not int or limit < 1:
        msg = f"limit= is a whole number from 1, not {limit!r}"
        raise UsageError(msg)
    begun = [_asked(here, each) for each in asked]  # In the agent's own order, whoever ends first.
    if is_loop_running():
        return _atogether(host, begun, limit, returns_errors=returns_errors)
    with ThreadPoolExecutor(limit, thread_name_prefix="holdfast-child") as pool:
        futures = [
            pool.submit(contextvars.copy_context().run, drive, _carry(host, each, HELD_S))
            for each in begun
        ]
    found = [future.exception() or future.result() for future in futures]
    here.session.pacer.after_child()
    return _together(found, returns_errors=returns_errors)


async def _atogether(
    host: Host, begun: list[_Child], limit: int, *, returns_errors: bool
) -> list[Any]:
    gate = asyncio.Semaphore(limit)

    async def one(each: _Child) -> Any:  # noqa: ANN401 the agent's own result
        async with gate:
            return await adrive(_carry(host, each, HELD_S))

    found = await asyncio.gather(*map(one, begun), return_exceptions=True)
    if begun:
        begun[0].here.session.pacer.after_child()
    return _together(found, returns_errors=returns_errors)


def _together(found: Sequence[Any], *, returns_errors: bool) -> list[Any]:
    """All results; what stops the run goes first, then the first child that failed."""
    faults = [each for each in found if isinstance(each, BaseException)]
    others = [each for each in faults if not isinstance(each, ChildFailed)]
    if others:
        raise others[0]
    if faults and not returns_errors:
        raise faults[0]
    return list(found)


def _asked(here: Frame, asked: Wanted) -> _Child:
    """Which child of the run this is, and what the journal holds of it."""
    question = asked.agent.shape.question(asked.args, asked.kwargs)
    id_ = (asked.id or "").encode()
    whole = hashlib.sha256(question.digest + id_).digest()
    named = [Asked("id", repr(asked.id), hashlib.sha256(id_).digest()[:4])] if id_ else []
    name = f"child {asked.agent.name}"
    told = [*question.asked, *named]
    bound = Question(name, whole[: len(question.digest)], told, question.bound)
    for stream in here.session.streams:
        stream.refuse_deed(name)  # What it does stands, whatever the stream says anew.
    call, record = here.session.ask(bound, here)
    return _Child(wanted=asked, here=here, call=call, record=record)


def _one(host: Host, each: _Child) -> Recorded:
    try:
        return (yield from _carry(host, each, HELD_S))
    finally:
        if each.record is None or isinstance(each.record.entry, Spawned):
            each.here.session.pacer.after_child()


def _carry(host: Host, each: _Child, held_s: float) -> Recorded:
    """The recorded answer or error; else begin the child, or go on with it, and record that."""
    session, call, entry = each.here.session, each.call, each.record and each.record.entry
    if each.record is not None and not isinstance(entry, Spawned):
        if not isinstance(entry, Raised):
            return session.replay(each.record)
        spec = StepSpec(fn=each.wanted.agent.fn, shape=each.wanted.agent.shape)
        yield from raise_again(spec, each.here, entry)
        each = _unended(each, each.record)
    session.refuse_if_stopped()  # It may have waited for its turn while the run was cancelled.
    began = session.clock.monotonic()
    try:
        yield from nothing_new(each.here, call)
        value = yield from _through(host, each, held_s)
    except BaseException as error:
        leave(session, call, error, session.clock.monotonic() - began)
        raise
    answer, ticket = session.answer(call, value, session.clock.monotonic() - began, None)
    failpoint.reach("child.recording")
    yield Commit(each.here, ticket)
    failpoint.reach("child.recorded")
    return answer


def _unended(each: _Child, ended: Record) -> _Child:
    """The child without what came of it: what cut it off does not come again."""
    begun = ended.begun
    record = begun and Record(ended.call, begun, ended.row, ended.index)
    return replace(each, record=record)


def _through(host: Host, each: _Child, held_s: float) -> Recorded:
    """The child carried to its end, as often as its own rules restart it."""
    session, call, began = each.here.session, each.call, each.here.session.clock.monotonic()
    origin = yield from _spawn(each)
    order = _order(each, origin)
    frame = Frame(session, call.name, call)
    carry = _abare if is_loop_running() else _bare
    while True:
        try:
            return (yield Invoke(frame, carry, (host, order), {}))
        except RunHeld:
            yield Rest(each.here, held_s)  # Another process goes on with it: wait for its end.
        except (RunFailed, Escalated, Cancelled) as error:
            wait_s = _again_s(each, order, error)
            if wait_s is None:
                raise _failed(each, order, error, session.clock.monotonic() - began) from error
            yield Rest(each.here, wait_s)
            order = replace(order, is_restart=True)
        except RunStopped as error:
            raise session.stop(error) from None  # For a person; the parent waits with it.


def _spawn(each: _Child) -> Recorded:
    """Record that the child begins, durably, before it does; where that stands is its origin."""
    session, entry = each.here.session, each.record and each.record.entry
    if isinstance(entry, Spawned) and _is_own(each):
        assert each.record is not None
        return _origin(each, entry.id, (each.record.row, each.record.index))
    id_ = each.wanted.id or _id(each)
    row, index, ticket = session.record(Spawned(each.call, id_, session.clock.now()))
    failpoint.reach("child.beginning")
    yield Commit(each.here, ticket, begins=True)
    failpoint.reach("child.begun")
    return _origin(each, id_, (row, index))


def _is_own(each: _Child) -> bool:
    """Whether the run itself began the child: one that was under way is not a fork's."""
    run = each.here.session.writer.run
    own = {branch.no for branch in each.here.session.reader.branches(run)}
    return each.record is not None and branch_of(each.record.row) in own


def _origin(each: _Child, id_: str, at: tuple[int, int]) -> Origin:
    run = each.here.session.writer.run
    point = point_id(run.body.id, at)
    return Origin(run=run.body.id, point=point, root=id_, ledger=run.ledger, is_child=True)


def _id(each: _Child) -> str:
    """By the branch and the place: the same after a restart, another one after a rollback.

    Deep in a family, where the ids of all before it would be too long, only their beginning.
    """
    run = each.here.session.writer.run
    place = repr((run.body.id, run.row.head, key_of(each.call))).encode()
    family = f"{run.body.id}.{name_of(each.wanted.agent.fn).rpartition('.')[2]}"
    mark = f"-{hashlib.sha256(place).hexdigest()[:MARK_CHARS]}"
    return run_id(family[: RUN_ID_CHARS_MAX - len(mark)] + mark)


def _order(each: _Child, origin: Origin) -> Order:
    session = each.here.session
    known = session.reader.find(origin.root)
    if known is not None and (known.body.origin is None or known.body.origin.run != session.id):
        msg = f"run {origin.root} is no child of run {session.id}; give the child another id"
        raise UsageError(msg)
    return Order(
        agent=each.wanted.agent,
        run=origin.root,
        args=each.wanted.args,
        kwargs=each.wanted.kwargs,
        is_restart=each.record is not None,  # A restart of the parent tries it again too.
        is_revived=session.is_revived,  # It was cancelled with its parent.
        pulse=session.care.pulse,
        origin=origin,
    )


def _again_s(each: _Child, order: Order, error: HoldfastError) -> float | None:
    """How long to wait before the child is restarted; None where its failure is what came of it."""
    session = each.here.session
    if session.stopped is not None:
        raise session.stopped
    run = session.reader.find(order.run)
    if run is None or isinstance(error, Cancelled):
        return None
    decided = last_decision(session.reader, run)
    return decided.wait_s if decided is not None and decided.action is Action.RESTART else None


def _failed(each: _Child, order: Order, error: HoldfastError, took_s: float) -> Exception:
    session = each.here.session
    why = error.message if isinstance(error, RunFailed) else str(error)
    kind = error.kind if isinstance(error, RunFailed) else type(error).__name__
    failed = ChildFailed(session.id, order.run, f"{kind}: {why}")
    session.raised(each.call, failed, took_s, (ChildFailed,))
    return failed


def _bare(host: Host, order: Order) -> Any:  # noqa: ANN401 the agent's own result
    """Carry a child out as if nothing were around it."""
    return _outside().run(host.carry_out, _own(order))


async def _abare(host: Host, order: Order) -> Any:  # noqa: ANN401 the agent's own result
    return await asyncio.create_task(host.acarry_out(_own(order)), context=_outside())


def _own(order: Order) -> Order:
    """With copies of what it gives: what a child changes is its own, as it is after a restart."""
    given = [list(order.args), dict(order.kwargs)]
    copied: Any = values.decode(values.encode(given, path="arguments of the run"))
    return replace(order, args=tuple(copied[0]), kwargs=copied[1])


CARRIES = (_bare, _abare)
"""What carries a child out: calls of ours, though they go where the user's go."""


def _outside() -> contextvars.Context:
    here = contextvars.copy_context()
    here.run(_leave)
    return here


def _leave() -> None:
    context.frame.set(None)
    context.critical.set(None)
    inside.set(None)
