"""Where what a save wrote can be read again: the place of its bytes, and a number in them."""

from collections.abc import Iterable, Iterator
from itertools import accumulate, chain
from typing import Any, NamedTuple

from msgspec.msgpack import Ext

from holdfast.capture import wire
from holdfast.capture.fixed import Value
from holdfast.store.backends.base import Name
from holdfast.store.codec.saved import bodies, inside, parts

At = tuple[int, int]
"""A row and the index of an entry in it."""

ANSWERED = -1
"""Stands for the ordinal where an answer is named."""

NAMED_LEAVES = frozenset({wire.LEAF_AT, wire.FIXED_AT})


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


class Needs(NamedTuple):
    """What a save names: items of lists, which may be ready, and other containers."""

    names: set[Name]
    others: set[Name]

    def rows_without(self, ready: Iterable[Name] = ()) -> set[int]:
        """Give the rows that have to be read where some names are `ready`."""
        rows = {row for _, row, _, _ in self.others.union(self.names.difference(ready))}
        rows.discard(wire.BESIDE[0])
        return rows

    def holding(self) -> set[tuple[At, int]]:
        """Give the containers of saves that hold others, which may stand elsewhere again."""
        return {
            ((row, index), ordinal)
            for count, row, index, ordinal in self.names | self.others
            if count > 1 and ordinal >= 0
        }


def named_in(data: bytes, ordinal: int | None = None) -> Needs:
    """Give what a save names, or one container that it wrote."""
    names: set[Name] = set()
    others: set[Name] = set()
    for item in _items(bodies(wire.unpack(data)) if ordinal is None else [parts(data)[ordinal]]):
        if item.code == wire.STORED:
            counts, steps, indexes, ordinals = wire.unpack(item.data)
            names.update(zip(counts, accumulate(steps), indexes, ordinals, strict=True))
        elif item.code == wire.ANSWER:
            count, source, *_ = wire.unpack(item.data)
            row, index, *number = source
            others.add((count, row, index, *(number or (ANSWERED,))))
        elif item.code in NAMED_LEAVES:
            row, index, _ = wire.unpack(item.data)
            others.add((1, row, index, ANSWERED))
    return Needs(names, others)


def names_leaves(data: bytes) -> bool:
    """Say whether a save names leaves that stand elsewhere."""
    return any(item.code in NAMED_LEAVES for item in _items(bodies(wire.unpack(data))))


def _items(tops: Iterable[Value]) -> Iterator[Ext]:
    """Give the items in containers that stand for something else."""
    stack = list(chain.from_iterable(map(inside, tops)))
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind is dict or kind is list or (kind is Ext and value.code == wire.PAIRS):
            stack.extend(inside(value))
        elif kind is Ext:
            yield value
