"""Calling a probe, undo or offset with what was recorded of its effect."""

import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.engine.line import is_loop_running
from holdfast.engine.question import KEY, Given, Shape, name_of
from holdfast.errors import NotDone
from holdfast.ondemand import OnDemand

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")

NOTHING = object()
"""There is no outcome to be handed over."""

_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (*_PLACED, inspect.Parameter.KEYWORD_ONLY)


def call(
    fn: Callable[..., Any],
    shape: Shape,
    bound: Mapping[str, Any],
    key: str,
    outcome: object = NOTHING,
) -> Any:  # noqa: ANN401 the user's own
    """Call a handler of an effect with what `arranged` says; it is awaited if asynchronous."""
    first: tuple[object, ...] = () if outcome is NOTHING else (outcome,)
    args, kwargs = arranged(fn, shape.spread(bound), key, first)
    given = fn(*args, **kwargs)
    return _awaited(given) if inspect.iscoroutine(given) else given


def arranged(
    fn: Callable[..., Any], given: Given, key: str, first: tuple[object, ...] = ()
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a handler is called with: what comes `first`, then the arguments by their names.

    One that names them otherwise gets them in their order, unless that would hand it an argument
    under the name of another one. `NotDone` where it cannot take them: it was not even called.
    """
    signature = inspect.signature(fn)
    parameters = [*signature.parameters.values()]
    more = {KEY: key} if takes_key(fn) else {}
    names = [each.name for each in parameters[len(first) :] if each.kind in _NAMED]
    names = [name for name in names if name != KEY]
    order = [*given.named]
    is_other = bool(names) and not {*names} & {*order, *given.whole, *given.extra}
    is_ordered = all(order[at : at + 1] == [n] for at, n in enumerate(names) if n in order)
    if is_other and parameters[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        ways = [_in_order]
    else:
        ways = [_by_name, _in_order] if is_ordered else [_by_name]
    why: TypeError | None = None
    for way in ways:
        args, kwargs = way(signature, given, more, first)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            why = why or error
        else:
            return args, kwargs
    what = "the outcome and the recorded arguments" if first else "the recorded arguments"
    msg = f"{name_of(fn)} does not take {what} ({why})"
    raise NotDone(msg) from why


def _in_order(
    signature: inspect.Signature,  # noqa: ARG001 as of the other way
    given: Given,
    more: Mapping[str, Any],
    first: tuple[object, ...],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (*first, *given.named.values(), *given.rest), {**given.extra, **more}


def _by_name(
    signature: inspect.Signature,
    given: Given,
    more: Mapping[str, Any],
    first: tuple[object, ...],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What no parameter names goes to `**kwargs`, else to `*args`, else nowhere."""
    left = {**given.named, **given.extra}
    found = inspect.BoundArguments(signature, OrderedDict(more))
    kinds = {each.kind: each.name for each in signature.parameters.values()}
    begins = [*first]
    for name, each in signature.parameters.items():
        if begins and each.kind in _PLACED:
            found.arguments[name] = begins.pop(0)
        elif each.kind in _NAMED and name in left:
            found.arguments[name] = left.pop(name)
        elif each.kind in _NAMED and name in given.whole:
            found.arguments[name] = given.whole[name]
    if (others := kinds.get(inspect.Parameter.VAR_KEYWORD)) is not None:
        found.arguments[others], left = left, {}
    if (rest := kinds.get(inspect.Parameter.VAR_POSITIONAL)) is not None:
        found.arguments[rest] = (*begins, *left.values(), *given.rest)
    elif begins:
        return first, {**more, **left}  # There is no place for it.
    found.apply_defaults()
    return found.args, found.kwargs


def takes_key(fn: Callable[..., Any]) -> bool:
    """Whether a handler takes the idempotency key."""
    return KEY in inspect.signature(fn).parameters


def _awaited(given: Any) -> Any:  # noqa: ANN401 the user's own
    if not is_loop_running():
        return asyncio.run(given)
    found: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(asyncio.run(given))
        except BaseException as error:  # noqa: BLE001 it rises where it is waited for
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
