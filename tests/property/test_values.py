"""What is read is what was written, for every value; and no bytes do anything but be refused."""

import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import struct
import uuid
import zoneinfo
from typing import Any, NamedTuple

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import errors
from holdfast.store.codec import values


@values.register
class Suit(enum.Enum):
    HEARTS = "h"
    SPADES = "s"


@values.register
@dataclasses.dataclass(frozen=True)
class Card:
    suit: Any
    rank: Any


@values.register
class Hand(NamedTuple):
    left: Any
    right: Any


@values.register
class Table(msgspec.Struct):
    seats: Any
    note: Any = msgspec.UNSET


def contents(value: Any) -> object:  # noqa: ANN401, C901, PLR0911 -- a line per kind
    """`value` as types and exact contents, so that == compares what must not differ."""
    kind = type(value)
    match value:
        case float():
            return kind, struct.pack(">d", value)
        case complex():
            return kind, struct.pack(">dd", value.real, value.imag)
        case decimal.Decimal():
            return kind, str(value)
        case dt.datetime() | dt.time():
            return kind, repr(value), str(value.tzinfo)
        case np.ndarray() | np.generic():
            return kind, value.dtype.str, value.shape, value.tobytes()
        case Card():
            return kind, contents(value.suit), contents(value.rank)
        case Table():
            return kind, contents(value.seats), contents(value.note)
        case list() | tuple():
            return kind, [contents(item) for item in value]
        case dict():
            return kind, [(contents(key), contents(item)) for key, item in value.items()]
        case set() | frozenset():
            return kind, sorted(repr(contents(item)) for item in value)
        case _:
            return kind, value


zones = st.none() | st.timezones() | st.builds(
    dt.timezone,
    st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23)),
    st.text(max_size=5),
)  # fmt: skip
folds = st.integers(0, 1)
hashable_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.builds(lambda when, fold: when.replace(fold=fold), st.datetimes(timezones=zones), folds)
    | st.builds(lambda when, zone: when.replace(tzinfo=zone), st.times(), zones)
    | st.dates()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.complex_numbers()
    | st.builds(range, st.integers(), st.integers(), st.integers(1))
    | st.builds(pathlib.PurePosixPath, st.text(st.characters(exclude_characters="\0")))
    | st.builds(pathlib.PureWindowsPath, st.text(st.characters(exclude_characters="\0")))
    | st.sampled_from(Suit)
)
numpy_leaves = st.builds(
    lambda kind, items: np.array(items, kind),
    st.sampled_from(["<i8", ">i4", "<f8", "?", "<c8"]),
    st.lists(st.integers(-100, 100), max_size=5),
) | st.builds(np.float64, st.floats())
hashables = st.recursive(
    hashable_leaves,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.builds(Card, inner, inner)
        | st.builds(Hand, inner, inner)
    ),
    max_leaves=5,
)
anything = st.recursive(
    hashables | st.binary().map(bytearray) | st.decimals() | numpy_leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
        | st.dictionaries(hashables, inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.sets(hashables, max_size=3)
        | st.builds(Table, inner, inner)
    ),
    max_leaves=20,
)


@settings(max_examples=500)
@given(anything)
def test_every_value_comes_back_equal_and_of_the_same_type(value: object) -> None:
    assert contents(value) == contents(values.decode(values.encode(value)))


@settings(max_examples=300)
@given(st.data(), st.lists(anything, min_size=1, max_size=3))
def test_sharing_comes_back_as_it_was(data: st.DataObject, parts: list[object]) -> None:
    boxes = [[part] for part in parts]
    picks = data.draw(st.lists(st.sampled_from(boxes), max_size=6))
    value = [picks, {"again": tuple(picks)}]

    back: Any = values.decode(values.encode(value))

    assert contents(value) == contents(back)
    flat = [*back[0], *back[1]["again"]]
    originals = [*picks, *picks]
    for index, box in enumerate(originals):
        for other in range(index):
            assert (box is originals[other]) == (flat[index] is flat[other])


def shuffled(value: Any, order: Any) -> Any:  # noqa: ANN401
    """The same content with every dict in another order and nothing shared."""
    match value:
        case list():
            return [shuffled(item, order) for item in value]
        case dict():
            pairs = [(key, shuffled(item, order)) for key, item in value.items()]
            order.shuffle(pairs)
            return dict(pairs)
        case Table():
            return Table(shuffled(value.seats, order), shuffled(value.note, order))
        case _ if type(value) is tuple:
            return tuple(shuffled(item, order) for item in value)
        case _:
            return value


@settings(max_examples=300)
@given(anything, st.randoms(use_true_random=False))
def test_canonical_bytes_do_not_depend_on_order_or_sharing(value: object, order: Any) -> None:  # noqa: ANN401
    twice = values.canonical([value, value])

    assert values.canonical(value) == values.canonical(shuffled(value, order))
    assert twice == values.canonical([value, shuffled(value, order)])
    assert values.canonical(value) == values.canonical(values.decode(values.encode(value)))


few = st.sampled_from(
    [0, 1, True, False, 1.0, 0.0, -0.0, "1", b"1", None, 2**64, decimal.Decimal(1), Suit.HEARTS]
)
small = st.recursive(
    few,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.sampled_from(["a", "b", 1, True, 1.0]), inner, max_size=2)
        | st.sets(few, max_size=2)
        | st.builds(Table, inner)
    ),
    max_leaves=4,
)


def unordered(value: Any) -> object:  # noqa: ANN401
    """`contents` with dicts sorted, to say when two values count as one."""
    if type(value) is dict:
        pairs = [(repr(unordered(key)), unordered(item)) for key, item in value.items()]
        return dict, sorted(pairs, key=lambda pair: pair[0])
    if type(value) in (list, tuple):
        return type(value), [unordered(item) for item in value]
    if type(value) is Table:
        return Table, unordered(value.seats)
    return contents(value)


@settings(max_examples=1000)
@given(small, small)
def test_canonical_bytes_are_equal_exactly_for_equal_contents(one: object, other: object) -> None:
    same = unordered(one) == unordered(other)

    assert same == (values.canonical(one) == values.canonical(other))


def read(data: bytes) -> None:
    """Decode, and let only the two errors through that a reader must expect."""
    try:
        value = values.decode(data)
    except (errors.Damaged, errors.NotStorable):
        return
    repr(value)


@settings(max_examples=1000)
@given(st.integers(0, 4), st.binary())
def test_foreign_bytes_are_refused_or_read(form: int, body: bytes) -> None:
    read(bytes([form]) + body)
    read(body)


@settings(max_examples=500)
@given(anything, st.data())
def test_changed_bytes_are_refused_or_read(value: object, data: st.DataObject) -> None:
    stored = bytearray(values.encode([value, (value,)]))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(stored) - 1))
        stored[place] = data.draw(st.integers(0, 255))

    read(bytes(stored))
    read(bytes(stored[: data.draw(st.integers(0, len(stored)))]))


items = st.builds(
    msgspec.msgpack.Ext,
    st.integers(0, 49),
    st.just(b"")
    | st.binary(max_size=16)
    | st.builds(msgspec.msgpack.encode, st.lists(st.integers(0, 99))),
)
names = st.sampled_from([f"{__name__}:{cls.__name__}" for cls in (Suit, Card, Hand, Table)])
trees = st.recursive(
    items | st.none() | st.integers(0, 9) | names | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=1000)
@given(st.integers(0, 3), trees)
def test_hostile_trees_are_refused_or_read(form: int, tree: object) -> None:
    read(bytes([form]) + msgspec.msgpack.encode(tree))


def test_the_helpers_see_what_must_not_differ() -> None:
    pairs = [
        (1, True),
        (0.0, -0.0),
        ([1], (1,)),
        (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
        (dt.time(1, tzinfo=dt.UTC), dt.time(1, tzinfo=zoneinfo.ZoneInfo("UTC"))),
        (Hand(1, 2), (1, 2)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (uuid.UUID(int=1), 1),
    ]

    for one, other in pairs:
        assert contents(one) != contents(other)
