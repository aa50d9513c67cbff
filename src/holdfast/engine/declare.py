"""`@agent`, `@step`, `@effect`: what the user says, as values, on ordinary functions."""

import functools
import inspect
import secrets
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from holdfast.engine import agents, context, tools
from holdfast.engine.agents import Agent
from holdfast.engine.approve import rule
from holdfast.engine.call import StepSpec, UsageFn, ask
from holdfast.engine.depend import Declared, tools_after
from holdfast.engine.drive import Recorded as Waiting
from holdfast.engine.drive import adrive, drive
from holdfast.engine.effect import EffectSpec, perform
from holdfast.engine.handlers import arranged, takes_key
from holdfast.engine.logs import log
from holdfast.engine.patience import limit_of, retry_of
from holdfast.engine.question import KEY, Shape, name_of, signature_of
from holdfast.engine.run import Run
from holdfast.engine.session import Frame
from holdfast.engine.validate import Check, validators
from holdfast.errors import NestedCall, NotDone, NotInRun, UsageError
from holdfast.model.cadence import Cadence, Snapshots, pace_of
from holdfast.model.limits import SLA, Retry
from holdfast.policy.classify import Rule
from holdfast.store.codec import values
from holdfast.store.codec.script import imported

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


class Recorded(Protocol[P, R_co]):
    """A step or effect: call it as before; `bare` calls it without a record, on purpose."""

    @property
    def bare(self) -> Callable[P, R_co]: ...  # noqa: D102 said above

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...  # noqa: D102 said above

    @overload
    def __get__(self, instance: None, owner: type, /) -> "Recorded[P, R_co]": ...
    @overload
    def __get__(
        self: "Recorded[Concatenate[S, Q], R_co]", instance: S, owner: type | None = None, /
    ) -> Callable[Q, R_co]: ...


@overload
def agent(fn: Callable[Concatenate[Run, P], R], /) -> Agent[P, R]: ...
@overload
def agent(
    *,
    version: str | None = None,
    checkpoint: Cadence | str | None = None,
    snapshot: Snapshots | None = None,
    durability: str | None = None,
    sla: SLA | None = None,
    optional: str | Iterable[str] = (),
    validate: Check | Iterable[Check] = (),
    classify: Rule | Iterable[Rule] = (),
) -> Callable[[Callable[Concatenate[Run, P], R]], Agent[P, R]]: ...
def agent(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    version: str | None = None,
    checkpoint: Cadence | str | None = None,
    snapshot: Snapshots | None = None,
    durability: str | None = None,
    sla: SLA | None = None,
    optional: str | Iterable[str] = (),
    validate: Check | Iterable[Check] = (),
    classify: Rule | Iterable[Rule] = (),
) -> Any:
    """Declare an agent: a function that takes a `Run` first.

    `version` is recorded with its runs, `checkpoint` says when to make checkpoints
    (`holdfast.every(turns=5) | holdfast.before_irreversible()`), `snapshot` gives sections of the
    state a cadence of their own, `durability` says which answers are waited for ("durable",
    "bounded", "async"), `sla` is the promise its runs are held to, `optional` names the
    sections of the state that a restart may go on without, `validate` what its states must pass.
    `classify` are rules that are asked first what kind of failure an exception is: the word for it,
    or None.
    """
    rules = (classify,) if callable(classify) else tuple(classify)
    _check_version(version)
    _check_promise(sla, rules)
    pace = pace_of(checkpoint, snapshot, durability)

    def declare(fn: Callable[..., Any]) -> Agent[..., Any]:
        _check_function("agent", fn)
        made: Agent[..., Any] = Agent(
            fn,
            version=version,
            pace=pace,
            sla=sla,
            optional=optional,
            validate=validators(validate),
            rules=rules,
        )
        values.learn(fn)
        agents.declare(made)
        return made

    return declare if fn is None else declare(fn)


@overload
def step(fn: Callable[P, R], /) -> Recorded[P, R]: ...
@overload
def step(
    *,
    usage: UsageFn | None = None,
    raises: type[BaseException] | Iterable[type[BaseException]] = (),
    ignore: str | Iterable[str] = (),
    timeout: float | str | None = None,
    retry: Retry | None = None,
) -> Callable[[Callable[P, R]], Recorded[P, R]]: ...
def step(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    usage: UsageFn | None = None,
    raises: type[BaseException] | Iterable[type[BaseException]] = (),
    ignore: str | Iterable[str] = (),
    timeout: float | str | None = None,
    retry: Retry | None = None,
) -> Any:
    """Declare a step: a call that may safely be asked again, and is if its answer is not known.

    `usage` reads tokens and model from the answer, `raises` names exceptions that a replay
    raises as themselves, `ignore` names arguments that do not belong to the question.
    After `timeout` the call is given up with `CallTimedOut`; `retry` asks again in place.
    """
    limit_s, again = limit_of(timeout), retry_of(retry)
    named = _classes("raises", raises)

    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        _check_function("step", fn)
        spec = StepSpec(
            fn=fn,
            shape=Shape(name_of(fn), fn, _names(ignore)),
            raises=named,
            usage=usage,
            limit_s=limit_s,
            retry=again,
        )
        tools.mention(spec.shape.name)
        return _recorded("step", fn, functools.partial(ask, spec))

    return declare if fn is None else declare(fn)


@overload
def effect(fn: Callable[P, R], /) -> Recorded[P, R]: ...
@overload
def effect(
    *,
    undo: Callable[..., Any] | None = None,
    offset: Callable[..., Any] | None = None,
    probe: Callable[..., Any] | None = None,
    key: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    after: Declared | Iterable[Declared] = (),
    idempotent: bool = False,
    not_done: type[BaseException] | Iterable[type[BaseException]] = (),
    approve: bool | Callable[..., bool] = False,
    approve_within: float | str | None = None,
    timeout: float | str | None = None,
    retry: Retry | None = None,
) -> Callable[[Callable[P, R]], Recorded[P, R]]: ...
def effect(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    undo: Callable[..., Any] | None = None,
    offset: Callable[..., Any] | None = None,
    probe: Callable[..., Any] | None = None,
    key: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    after: Declared | Iterable[Declared] = (),
    idempotent: bool = False,
    not_done: type[BaseException] | Iterable[type[BaseException]] = (),
    approve: bool | Callable[..., bool] = False,
    approve_within: float | str | None = None,
    timeout: float | str | None = None,
    retry: Retry | None = None,
) -> Any:
    """Declare an effect: a call that changes the world, and is done once.

    `probe` asks the world whether it happened (the outcome, or None), `idempotent` says that it
    may be repeated under the same `idempotency_key`, `not_done` names exceptions that prove that
    nothing happened, `key` the arguments that say what it is about, `ignore` those that do not
    belong to its intent; `undo` reverses it on a rollback, `offset` compensates for it. `after`
    names effects that it stands on: it is taken back before them, and they stay while it stands.
    `approve` has a person allow it first, always or where it returns True of the arguments; the
    approval is good for these arguments, once, and for `approve_within` from the question on.
    `retry` makes it again in place only once it is known not to have happened, or if it is
    idempotent; `timeout` needs an asynchronous or idempotent one, since a thread cannot be stopped.
    """
    limit_s, again = limit_of(timeout), retry_of(retry)
    declined = _classes("not_done", not_done)

    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        _check_function("effect", fn)
        shape = Shape(name_of(fn), fn, _names(ignore))
        shape.check("key", frozenset(_names(key)))
        if limit_s is not None and not idempotent:
            _refuse_unstoppable(shape, fn)
        _check_handlers(shape, fn, undo=undo, offset=offset, probe=probe)
        spec = EffectSpec(
            fn=fn,
            shape=shape,
            module=imported(fn),
            key=_names(key),
            undo=undo,
            offset=offset,
            probe=probe,
            is_idempotent=idempotent,
            not_done=declined,
            approve=rule(shape.name, approve, approve_within),
            limit_s=limit_s,
            retry=again,
            after=tools_after(after, imported(fn)),
            returns_none=getattr(fn, "__annotations__", {}).get("return", "") in (None, "None"),
        )
        tools.declare(spec)
        return _recorded("effect", fn, functools.partial(perform, spec))

    return declare if fn is None else declare(fn)


def _refuse_unstoppable(shape: Shape, fn: Callable[..., Any]) -> None:
    if not inspect.iscoroutinefunction(fn):
        msg = (
            f"effect {shape.name}: a synchronous call cannot be stopped, so after timeout= it "
            "might still happen; use the timeout of its client, or make it idempotent or async"
        )
        raise UsageError(msg)


def _check_handlers(
    shape: Shape, fn: Callable[..., Any], **handlers: Callable[..., Any] | None
) -> None:
    """Refuse at the line that declares it what could only fail on the day it is needed."""
    for option, handler in handlers.items():
        if handler is not None:
            signature_of(f"{option}= of {shape.name}", handler)
            _check_given(option, shape, handler)
    if inspect.iscoroutinefunction(handlers["probe"]) and not inspect.iscoroutinefunction(fn):
        msg = (
            f"probe= of {shape.name} is asynchronous and the effect is not, so nobody could wait "
            "for it; make it an ordinary function"
        )
        raise UsageError(msg)


def _check_given(option: str, shape: Shape, handler: Callable[..., Any]) -> None:
    """Refuse a handler that cannot take what the effect is called with."""
    is_probe = option == "probe"
    sample, first = shape.sample(is_live=is_probe), () if is_probe else (None,)
    if sample is None:
        return
    try:
        arranged(handler, sample, "", first)
    except NotDone as error:
        names = ", ".join(("the outcome",) * len(first) + tuple(sample.named))
        msg = f"{option}= of {shape.name}: {error}; it is given {names}, and idempotency_key"
        raise UsageError(f"{msg} if it takes that") from None


def _check_version(version: object) -> None:
    """It is written down with every run, and a run whose version is no text could not be read."""
    if version is not None and not (isinstance(version, str) and version.isprintable()):
        raise UsageError(f"version= takes a text, such as '2.1', not {version!r:.80}")


def _check_promise(sla: object, rules: tuple[Rule, ...]) -> None:
    if sla is not None and not isinstance(sla, SLA):
        msg = f"sla= takes a promise, such as holdfast.SLA(max_recovery='30s'), not {sla!r:.80}"
        raise UsageError(msg)
    try:
        if sla is not None:
            sla.check()
    except ValueError as error:
        raise UsageError(f"sla=: {error}") from None
    for each in rules:
        if not callable(each):
            msg = f"classify= takes functions from an exception to a word, not {each!r}"
            raise UsageError(msg)


def _recorded(
    kind: str, fn: Callable[..., Any], begin: Callable[..., Waiting]
) -> Callable[..., Any]:
    """The function that stands in for the user's: recorded inside a run, plain outside."""
    values.learn(fn)
    is_effect = kind == "effect"
    is_keyed = is_effect and takes_key(fn)
    name = name_of(fn)

    def outside(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 the user's own type
        _allow_outside(name, is_effect=is_effect)
        if is_keyed:
            kwargs.setdefault(KEY, secrets.token_hex(16))
        return fn(*args, **kwargs)

    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def acall(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 the user's own types
            here = context.frame.get()
            if here is None:
                return await outside(args, kwargs)
            _allow_inside(name, here, is_effect=is_effect)
            return await adrive(begin(here, args, kwargs))

        made: Callable[..., Any] = acall
    else:

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 the user's own types
            here = context.frame.get()
            if here is None:
                return outside(args, kwargs)
            _allow_inside(name, here, is_effect=is_effect)
            return drive(begin(here, args, kwargs))

        made = call
    made.bare = fn  # type: ignore[attr-defined]  # a function's attribute, typed by Recorded
    return made


def _allow_inside(name: str, here: Frame, *, is_effect: bool) -> None:
    if here.inside is not None and (is_effect or here.is_effect):
        kind = "effect" if is_effect else "step"
        outer = "effect" if here.is_effect else "step"
        raise NestedCall(f"{kind} {name}", f"{outer} {here.function}")


def _allow_outside(name: str, *, is_effect: bool) -> None:
    if context.is_any_active():
        if is_effect:
            raise NotInRun(name)
        log.warning(
            "step %s was called from a thread that belongs to no run; its answer is not recorded "
            "(carry the run there with run.wrap)",
            name,
        )


def _check_function(kind: str, fn: Callable[..., Any]) -> None:
    """Refuse at its line what is no function, or one that is something else already."""
    if isinstance(fn, (staticmethod, classmethod)):
        above = type(fn).__name__
        raise UsageError(f"@{kind} takes the function itself; write @{above} above it, not below")
    if not callable(fn):
        msg = f"@{kind} takes a function, not {type(fn).__name__}"
        raise UsageError(msg)
    if isinstance(fn, Agent) or (kind != "step" and _is_recorded(fn)):
        was = "an agent" if isinstance(fn, Agent) else "a step or effect"
        raise UsageError(f"{name_of(fn)} is {was} already; take one of the two decorators away")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        stream = f", or record it undecorated as it comes: run.stream({name_of(fn)}, ...)"
        so = "" if kind != "step" else stream
        msg = f"{kind} {name_of(fn)} is a generator; return the whole answer instead{so}"
        raise UsageError(msg)


def _is_recorded(fn: Callable[..., Any]) -> bool:
    """Whether this is what `_recorded` made, not a wrapper that copied its attributes."""
    bare = getattr(fn, "bare", None)
    return bare is not None and getattr(fn, "__wrapped__", None) is bare


def _names(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _classes(
    option: str, given: type[BaseException] | Iterable[type[BaseException]]
) -> tuple[type[BaseException], ...]:
    """Classes of exceptions, one or several."""
    found: tuple[object, ...] = (given,) if isinstance(given, type) else tuple(given)
    for each in found:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise UsageError(f"{option}= takes classes of exceptions, not {each!r:.80}")
    return cast("tuple[type[BaseException], ...]", found)
