"""A state that is only looked at, in plain containers, from the bytes of a base and its deltas."""

from collections.abc import Callable, Iterable
from itertools import chain, repeat
from typing import Any

from holdfast import errors
from holdfast.capture.lift import Lift
from holdfast.capture.lost import lost_in
from holdfast.capture.places import At
from holdfast.store.backends.base import Name
from holdfast.store.chunks import Chunks


def read(
    base: bytes,
    deltas: Iterable[bytes],
    answer: Callable[[Any], object],
    *,
    places: Iterable[At | None] = (),
    aside: Chunks | None = None,
    ready: dict[Name, Any] | None = None,
) -> tuple[dict[Any, Any], dict[Any, errors.HoldfastError]]:
    """Give the state after the last of `deltas`, and the sections left out of it, with reasons.

    `answer`, `places`, `aside` and `ready` are as for `State.restore`.
    """
    lift = Lift(answer, aside, goes_on=True, ready=ready)
    standing = chain(places, repeat(None))
    root: dict[Any, Any] = lift.base(base, next(standing))
    for data, at in zip(deltas, standing, strict=False):
        lift.delta(data, at)
    lost = lost_in(root) if lift.has_lost else {}
    for section in lost:
        del root[section]
    return root, lost
