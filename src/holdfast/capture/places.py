"""Where what a save wrote can be read again: the place of its bytes, and a number in them."""

from collections.abc import Iterable
from itertools import accumulate, chain
from typing import Any, NamedTuple

from msgspec.msgpack import Ext

from holdfast.capture import wire
from holdfast.capture.fixed import BASIC, Value

At = tuple[int, int]
"""A row and the index of an entry in it."""


class Place:
    """Where one save stands; nothing can be named by it before that is known."""

    __slots__ = ("at",)

    def __init__(self, at: At | None = None) -> None:
        self.at = at


class Named(NamedTuple):
    """A container by what holds it: an answer and the keys down to it, or a save and a number."""

    source: Any  # the token of an answer, or row, index and ordinal
    keys: list[object]


def name(source: Value) -> Named | None:
    """Give the name of a container whose `hf_source` this is; None while it has none yet."""
    above, last = source
    if type(above) is Place:
        return None if above.at is None else Named((*above.at, last), [])
    keys: list[object] = []
    while above is not None:
        keys.append(last)
        above, last = above
    keys.reverse()
    return Named(last, keys)


def stands_at(source: Value) -> tuple[int, ...] | None:
    """Give row and index, and the ordinal in a save, of what stands there by itself; else None."""
    above, last = source
    if above is None:
        return last if len(last) > 1 else None
    return (*above.at, last) if type(above) is Place and above.at is not None else None


def source_of(token: Value, keys: Iterable[object]) -> Value:
    """Give the `hf_source` of what stands under `keys` in the answer that `token` names."""
    source: Value = (None, token)
    for key in keys:
        source = (source, key)
    return source


def parts(data: bytes) -> list[Any]:
    """Give the containers that a save wrote, in the order of their numbers.

    None stands for what has a number but was not written there: leaves, and what it named.
    """
    document = wire.unpack(data)
    if document[0] != wire.VERSION:
        msg = f"it is of version {document[0]!r}"
        raise ValueError(msg)
    written: list[Any] = []
    elsewhere: list[Ext] = []
    for body in _bodies(document):
        _walk_in(body, written, elsewhere)
    return written


def rows_named(data: bytes) -> set[int]:
    """Give the rows that a save names."""
    rows: set[int] = set()
    stack = list(chain.from_iterable(map(_inside, _bodies(wire.unpack(data)))))
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind is not Ext:
            if kind is dict or kind is list:
                stack.extend(_inside(value))
        elif value.code == wire.STORED:
            rows.update(accumulate(wire.unpack(value.data)[1]))
        elif value.code == wire.ANSWER:
            rows.add(wire.unpack(value.data)[1][0])
        elif value.code == wire.PAIRS:
            stack.extend(_inside(value))
    rows.discard(wire.BESIDE[0])
    return rows


def _bodies(document: list[Any]) -> list[Any]:
    """Give what holds the values of a save: a base as a list of one, or the bodies of a delta."""
    is_base = len(document) == 2  # noqa: PLR2004 version and root
    return [document[1:]] if is_base else document[4::3]


def _inside(body: Value) -> Iterable[Any]:
    """Give the values in the body of a container."""
    kind = type(body)
    if kind is dict:
        return body.values()  # type: ignore[no-any-return]
    return body if kind is list else wire.unpack(body.data)[1::2]  # type: ignore[no-any-return]


def _walk_in(body: Value, written: list[Any], elsewhere: list[Ext]) -> None:
    """Note the containers in a body; items whose numbers come first wait in `elsewhere`."""
    inside = _inside(body)
    if BASIC.issuperset(map(type, inside)):
        return
    for value in inside:
        kind = type(value)
        if kind in BASIC:
            continue
        if kind is Ext and value.code != wire.PAIRS:
            elsewhere.append(value)
            continue
        if elsewhere:
            written.extend([None] * sum(map(_numbers, elsewhere)))
            elsewhere.clear()
        written.append(value)
        _walk_in(value, written, elsewhere)


def _numbers(item: Ext) -> int:
    """Give how many nodes an item stands for that were not met before."""
    match item.code:
        case wire.ANSWER:
            return int(wire.unpack(item.data)[0])
        case wire.STORED:
            return sum(wire.unpack(item.data)[0])
        case wire.LEAF:
            return 1
        case _:
            return 0
