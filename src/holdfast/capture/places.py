"""Where what a save wrote can be read again: the place of its bytes, and a number in them."""

from collections.abc import Iterable, Iterator
from itertools import chain
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
    version, *document = wire.unpack(data)
    if version != wire.VERSION:
        msg = f"it is of version {version!r}"
        raise ValueError(msg)
    written: list[Any] = []
    is_base = len(document) == 1
    for value in document if is_base else chain.from_iterable(map(_inside, document[3::3])):
        _walk(value, written)
    return written


def _inside(body: Value) -> Iterator[Any]:
    """Give the values in the body of a container."""
    kind = type(body)
    if kind is dict:
        yield from body.values()
    elif kind is list:
        yield from body
    else:
        yield from wire.unpack(body.data)[1::2]


def _walk(value: Value, written: list[Any]) -> None:
    kind = type(value)
    if kind in BASIC:
        return
    if kind is not Ext or value.code == wire.PAIRS:
        written.append(value)
        for inner in _inside(value):
            _walk(inner, written)
    else:
        written.extend([None] * _numbers(value))


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
