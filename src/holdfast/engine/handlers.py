"""Calling a probe, undo or offset with what was recorded of its effect."""

import inspect
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.engine.line import is_loop_running
from holdfast.engine.question import KEY, name_of
from holdfast.errors import NotDone
from holdfast.ondemand import OnDemand

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")

NOTHING = object()
"""There is no outcome to be handed over."""


def call(
    fn: Callable[..., Any], bound: Mapping[str, Any], key: str, outcome: object = NOTHING
) -> Any:  # noqa: ANN401 the user's own
    """Call a handler: the outcome first, if there is one, then the arguments by their names.

    One that names them otherwise gets them in their order. It is awaited if it is asynchronous.
    `NotDone` where it cannot take them: it was not even called.
    """
    first: tuple[object, ...] = () if outcome is NOTHING else (outcome,)
    signature = inspect.signature(fn)
    parameters = signature.parameters
    more: dict[str, Any] = {KEY: key} if takes_key(fn) else {}
    kinds = {each.kind for each in parameters.values()}
    names = [
        name
        for name, each in list(parameters.items())[len(first) :]
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) and name != KEY
    ]
    if inspect.Parameter.VAR_KEYWORD in kinds:
        more = {**bound, **more}
    elif set(names) & set(bound) or not names:
        more = {**{name: bound[name] for name in names if name in bound}, **more}
    else:
        first = (*first, *bound.values())
    try:
        signature.bind(*first, **more)
    except TypeError as error:
        msg = f"{name_of(fn)} does not take the outcome and the recorded arguments ({error})"
        raise NotDone(msg) from error
    given = fn(*first, **more)
    return _awaited(given) if inspect.iscoroutine(given) else given


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
