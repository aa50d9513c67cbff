"""What a base or a delta of the state holds, without making a state of it; see `capture/wire`."""

from collections.abc import Iterable
from types import NoneType
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.msgpack import Ext

Value: TypeAlias = Any
"""A value of a save: basic, a container, or an item that stands for something else."""

VERSION: Final = 1

NODES: Final = 1
PAIRS: Final = 2
ANSWER: Final = 3
FIXED: Final = 4
LEAF: Final = 5
STORED: Final = 6
LEAF_AT: Final = 7
FIXED_AT: Final = 8

_LEAVES: Final = frozenset({FIXED, LEAF})

BASIC: Final = frozenset({str, int, float, bool, NoneType, bytes})
"""The types that are written as they are, without the codec."""

unpack: Final = msgspec.msgpack.Decoder().decode


def parts(data: bytes) -> list[Any]:
    """Give the containers that a save wrote, in the order of their numbers.

    None stands for what has a number but was not written there: leaves, and what it named.
    """
    document = unpack(data)
    if document[0] != VERSION:
        msg = f"it is of version {document[0]!r}"
        raise ValueError(msg)
    written: list[Any] = []
    elsewhere: list[Ext] = []
    for body in bodies(document):
        _walk_in(body, written, elsewhere)
    return written


def leaves(data: bytes) -> list[bytes]:
    """Give the bytes of the leaves that a save wrote, in the order in which they stand there."""
    found: list[bytes] = []
    stack = bodies(unpack(data))[::-1]
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind is Ext and value.code in _LEAVES:
            found.append(bytes(value.data))
        elif kind is dict or kind is list or (kind is Ext and value.code == PAIRS):
            held = inside(value)
            if not BASIC.issuperset(map(type, held)):
                stack.extend(reversed(list(held)))
    return found


def bodies(document: list[Any]) -> list[Any]:
    """Give what holds the values of a save: a base as a list of one, or the bodies of a delta."""
    is_base = len(document) == 2  # noqa: PLR2004 version and root
    return [document[1:]] if is_base else document[4::3]


def inside(body: Value) -> Iterable[Any]:
    """Give the values in the body of a container."""
    kind = type(body)
    if kind is dict:
        return body.values()  # type: ignore[no-any-return]  # msgpack says Any
    return body if kind is list else unpack(body.data)[1::2]  # type: ignore[no-any-return]  # msgpack says Any


def _walk_in(body: Value, written: list[Any], elsewhere: list[Ext]) -> None:
    """Note the containers in a body; items whose numbers come first wait in `elsewhere`."""
    found = inside(body)
    if BASIC.issuperset(map(type, found)):
        return
    for value in found:
        kind = type(value)
        if kind in BASIC:
            continue
        if kind is Ext and value.code != PAIRS:
            elsewhere.append(value)
            continue
        if elsewhere:
            written.extend([None] * sum(map(_numbers, elsewhere)))
            elsewhere.clear()
        written.append(value)
        _walk_in(value, written, elsewhere)


def _numbers(item: Ext) -> int:
    """Give how many nodes an item stands for that were not met before."""
    if item.code == ANSWER:
        return int(unpack(item.data)[0])
    if item.code == STORED:
        return sum(unpack(item.data)[0])
    return int(item.code in (LEAF, LEAF_AT))
