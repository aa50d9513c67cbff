"""What stands between a run and the user's functions: nothing, unless a drill is on."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from holdfast.engine.session import Frame

Between: TypeAlias = Callable[[Frame, Callable[..., Any], tuple[Any, ...], Mapping[str, Any]], Any]
"""Calls a function of the user's, or does something else in its place.

An asynchronous function gives a coroutine, which is awaited.
"""

_between: list[Between] = []


def put(between: Between) -> None:
    """Have every call of a step, effect or probe of this process go through `between`."""
    _between[:] = [between]


def take_away() -> None:
    """Let calls go straight again."""
    _between.clear()


def call(
    frame: Frame, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:  # noqa: ANN401 the user's own type
    """Call the user's function as it was asked for."""
    if _between:
        return _between[0](frame, fn, args, kwargs)
    return fn(*args, **kwargs)
