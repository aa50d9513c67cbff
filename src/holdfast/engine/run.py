"""`Run`: what an agent is handed, its state, its turns, and what is recorded for it."""

import contextvars
import datetime as dt
import functools
import inspect
import random
import uuid
from collections.abc import (
    AsyncIterable,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast, overload

from holdfast import failpoint
from holdfast.capture.tracked import TrackedDict, plain
from holdfast.engine import context
from holdfast.engine.ask import NOTHING, ask_person
from holdfast.engine.ask import question as ask_for
from holdfast.engine.budget import Budget
from holdfast.engine.call import StepSpec, ask
from holdfast.engine.drive import adrive, drive
from holdfast.engine.here import own, within
from holdfast.engine.question import Shape, name_of, unfold
from holdfast.engine.save import save
from holdfast.engine.session import Frame, Session
from holdfast.engine.turns import Loops, Turns
from holdfast.errors import StateReplaced, UsageError
from holdfast.model.journal import Usage
from holdfast.model.limits import Retry
from holdfast.model.rollback import ROLLBACKS, RUNTIME
from holdfast.model.sections import Part
from holdfast.ondemand import OnDemand
from holdfast.store.codec.vault import guarded

if TYPE_CHECKING:
    from holdfast.engine import children as family
    from holdfast.engine import critical as abort
    from holdfast.engine import stream as streaming
    from holdfast.engine.agents import Agent
    from holdfast.engine.children import Host
    from holdfast.engine.critical import Critical
else:
    family = OnDemand("holdfast.engine.children")
    streaming = OnDemand("holdfast.engine.stream")
    abort = OnDemand("holdfast.engine.critical")  # It loads all that rollbacks need.

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class RecordedRandom(random.Random):
    """Randomness whose seed is recorded: the same numbers on a replay of the same turn."""

    def __call__(self) -> float:
        """A number from 0 up to 1."""
        return self.random()


class Run:
    """One execution of an agent. Its methods belong to the agent's own code."""

    def __init__(self, session: Session, chance: random.Random, host: "Host") -> None:
        self._session, self._chance, self._host = session, chance, host
        self._loops = Loops(session)
        self._random: tuple[int, RecordedRandom] | None = None

    @property
    def id(self) -> str:
        """The run's id."""
        return self._session.id

    @property
    def state(self) -> TrackedDict:
        """The durable values of the run: ordinary dicts and lists that know what changed."""
        return self._session.state.root

    @state.setter
    def state(self, value: TrackedDict) -> None:
        if value is not self._session.state.root:  # `run.state |= more` sets what stands there.
            raise StateReplaced(self.id)

    @state.deleter
    def state(self) -> NoReturn:
        raise StateReplaced(self.id)

    def turns(self) -> Turns:
        """The rounds of the agent's loop: `for turn in run.turns()`, or `async for`.

        After a crash the loop continues with the turn that was interrupted, on the state at the
        end of the turn before. Leaving the loop does not end the turn.
        """
        return self._loops.enter()

    def attach(
        self,
        section: str,
        obj: object,
        *,
        only: Sequence[str] | None = None,
        optional: bool = False,
    ) -> None:
        """Make an object of the program a section of the state.

        `obj` is a dataclass, a Pydantic model, a msgspec Struct, or offers `capture()` and
        `restore(value)`; of any other object, `only` names the attributes to keep. What it holds is
        captured at every turn's end, as the change; after a crash, entering `run.turns()` fills it
        again.
        """
        self._session.refuse_if_stopped()
        self._own("run.attach")
        self._session.sections.attach(section, obj, only, is_optional=optional)

    @property
    def restored(self) -> dict[str, Part]:
        """What became of each section when a restart put the state in place; empty before that."""
        return dict(self._session.sections.report)

    def call(self, fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Record a call of an undecorated function as a step (awaitable if `fn` is async)."""
        target, values, options = unfold(fn, args, kwargs)
        _refuse_no_function("run.call", target)
        name = name_of(target)
        spec = StepSpec(fn=target, shape=Shape(name, target))
        recorded = ask(spec, self._here(name), values, options)
        if inspect.iscoroutinefunction(target):
            return cast("R", adrive(recorded))
        return cast("R", drive(recorded))

    @overload
    def stream(
        self,
        fn: Callable[..., Iterable[T]],
        *args: Any,  # noqa: ANN401 the function's own
        every: int = 1000,
        tokens: Callable[[T], int] | None = None,
        name: str | None = None,
        timeout: float | str | None = None,
        retry: Retry | None = None,
        **kwargs: Any,  # noqa: ANN401 the function's own
    ) -> streaming.Stream[T]: ...
    @overload
    def stream(
        self,
        fn: Callable[..., AsyncIterable[T] | Awaitable[AsyncIterable[T]]],
        *args: Any,  # noqa: ANN401 the function's own
        every: int = 1000,
        tokens: Callable[[T], int] | None = None,
        name: str | None = None,
        timeout: float | str | None = None,
        retry: Retry | None = None,
        **kwargs: Any,  # noqa: ANN401 the function's own
    ) -> streaming.AsyncStream[T]: ...
    def stream(
        self,
        fn: Callable[..., Any],
        *args: Any,
        every: int = 1000,
        tokens: Callable[[Any], int] | None = None,
        name: str | None = None,
        timeout: float | str | None = None,
        retry: Retry | None = None,
        **kwargs: Any,
    ) -> Any:
        """`for item in run.stream(fn, ...)`, or `async for`: records what `fn` yields as it comes.

        A record reaches the disk after `every` tokens: items, or what `tokens` counts in one. After
        a crash the recorded items are yielded again without a call, then those that `fn(...,
        prefix=items)` yields; a function that takes no `prefix` is called anew. The answer is final
        at its end, or where it is left (`break`, `close()`): until then whoever reads it does no
        effects. `timeout` is for each item; `name` is what others read it by (`store.stream`), else
        the function's. `retry` asks again in place: for the rest by `prefix`, else for all of it
        while nothing has come.
        """
        target, values, options = unfold(fn, args, kwargs)
        _refuse_no_function("run.stream", target)
        spec = streaming.spec_of(
            target, name, every=every, tokens=tokens, timeout=timeout, retry=retry
        )
        return streaming.begin(spec, self._here(spec.step.shape.name), values, options)

    def child(
        self,
        agent: "Agent[..., T]",
        /,
        *args: Any,  # noqa: ANN401 the agent's own
        id: str | None = None,  # noqa: A002 the public word
        **kwargs: Any,  # noqa: ANN401 the agent's own
    ) -> T:
        """Carry out another agent as a child of this run, and give its result.

        The child is a run of its own, with its own timeline; after a crash it goes on where it was.
        A failure is decided by its own rules, and where that ends it, raised as `ChildFailed`. In
        an async agent, `await` it. Without an id it gets one from its place in this run.
        """
        wanted = family.wanted(agent, args, kwargs, id)
        return cast("T", family.child(self._host, self._here(agent.name), wanted))

    def children(
        self,
        calls: Iterable[Sequence[Any]],
        *,
        limit: int = 8,
        return_errors: bool = False,
    ) -> Any:  # noqa: ANN401 a list of what the children give, awaitable in an async agent
        """Carry out many children, `(agent, *args)` each, at most `limit` at once; their results.

        All come to their end; then the first `ChildFailed` is raised, or with `return_errors` each
        stands in its place in the list. In an async agent, `await` it.
        """
        wanted = [family.called(each) for each in calls]
        here = self._here("run.children")
        return family.children(self._host, here, wanted, limit, returns_errors=return_errors)

    def checkpoint(self, label: str | None = None, *, only: Sequence[str] | None = None) -> str:
        """Save now; returns the checkpoint's id, for `store.restore` and `store.diff`.

        When this returns, the state and all before it survive a power cut. `only` names sections
        of the state: then it is a snapshot of those.
        """
        id_, ticket = save(self._session, context.frame.get(), label, only)
        if ticket is not None:
            failpoint.reach("checkpoint.saving")
            self._session.writer.finish(ticket)
            failpoint.reach("checkpoint.saved")
        return id_

    def ask(
        self,
        question: str,
        options: Sequence[str] | None = None,
        expires: float | str | None = None,
        *,
        default: object = NOTHING,
    ) -> Any:  # noqa: ANN401 what the person says
        """Ask a person, for as long as it takes, without holding a process.

        Until somebody answers (`holdfast inbox`, `store.answer`) this raises `Waiting`, which ends
        the process; the next `store.run` or `restart` goes on from here with the recorded answer.
        `options` are the answers that count; after `expires` nobody can answer any more: `default`
        is returned, or `Expired` raised. It waits for nothing, so an async agent calls it without
        `await`.
        """
        wanted = ask_for(question, options, expires, default)
        return ask_person(self._session, context.frame.get(), wanted)

    def critical(
        self, name: str | None = None, *, raises: Iterable[type[BaseException]] = ()
    ) -> "Critical":
        """`with run.critical("transfer"):` does all of it, or takes back what it did.

        A checkpoint is saved before it. If an exception leaves the block, its effects are undone or
        offset, newest first, and listed with what became of each (`effects` of what `as` names);
        the state is put back; the exception goes on. So it is where the code goes on after a
        timeout that left the block. A crash, a question or a doubt inside is no abort: the run goes
        on inside the block. `raises` names exceptions of your own, so that a restart raises them as
        themselves.
        """
        return abort.Critical(self._session, name, raises)

    def budget(self, name: str, limit: float | Decimal) -> Budget:
        """What the run, its branches and its forks may spend under this name in all.

        Spend from it before what costs; it fails closed, and nothing gives it back. The limit is
        the one given here, so that code can raise it; what was spent is in the ledger.
        """
        return Budget(self._session, name, limit)

    @property
    def rollbacks(self) -> list[dict[str, Any]]:
        """What the agent is told of rollbacks of its run, oldest first.

        Each note says where to and why, and which effects were undone, offset, cancelled, or still
        stand because that was impossible or is unknown. They are kept in the state, under
        `runtime.rollbacks`.
        """
        runtime = self.state.get(RUNTIME)
        notes = runtime.get(ROLLBACKS) if isinstance(runtime, dict) else None
        return list(plain(notes)) if isinstance(notes, list) else []

    def usage(self) -> Usage:
        """Tokens the run has used so far, as its answers reported them; None is unknown."""
        return self._session.used

    def now(self) -> dt.datetime:
        """The time, recorded: a replay sees the same."""
        fresh = dt.datetime.fromtimestamp(self._session.clock.now(), dt.UTC)
        return cast("dt.datetime", self._note("run.now", fresh))

    def uuid(self) -> uuid.UUID:
        """A new id, recorded: a replay gets the same."""
        fresh = uuid.UUID(int=self._chance.getrandbits(128), version=4)
        return cast("uuid.UUID", self._note("run.uuid", fresh))

    @property
    def random(self) -> RecordedRandom:
        """Randomness, recorded by its seed: a replay of the turn draws the same numbers."""
        scope = self._session.scope
        if self._random is None or self._random[0] != scope:
            seed = self._note("run.random", self._chance.getrandbits(64))
            self._random = scope, RecordedRandom(cast("int", seed))
        return self._random[1]

    def wrap(self, fn: Callable[P, R]) -> Callable[P, R]:
        """`fn`, carrying the run into whatever thread or event loop calls it."""
        _refuse_no_function("run.wrap", fn)
        frame = context.frame.get()
        if frame is None or frame.session is not self._session:
            frame = Frame(self._session)
        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def awrapped(*args: P.args, **kwargs: P.kwargs) -> object:
                before = context.frame.set(frame)
                try:
                    with guarded(frame.session.guard):
                        return await fn(*args, **kwargs)
                finally:
                    context.frame.reset(before)

            return cast("Callable[P, R]", awrapped)
        here = contextvars.copy_context()
        here.run(context.frame.set, frame)

        @functools.wraps(fn)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            return here.copy().run(fn, *args, **kwargs)

        return wrapped

    def _own(self, name: str) -> Frame:
        return own(self._session, context.frame.get(), name)

    def _note(self, name: str, fresh: object) -> object:
        return self._session.note(self._own(name), name, fresh)

    def _here(self, name: str) -> Frame:
        return within(self._session, context.frame.get(), name)

    def __repr__(self) -> str:
        return f"<Run {self.id!r}, turn {self._session.turn}>"


def _refuse_no_function(taker: str, given: object) -> None:
    if not callable(given):
        msg = f"{taker} takes a function, before it is called, not what it gave: {given!r:.80}"
        raise UsageError(msg)
