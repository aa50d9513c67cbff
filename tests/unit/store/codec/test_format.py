"""The bytes themselves: what a version has written is read for ever, so they must not change."""

import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import uuid
import zoneinfo

import msgspec
import numpy as np
import pytest

from holdfast.store.codec import values


@dataclasses.dataclass
class Point:
    x: int


class Suit(enum.Enum):
    ACES = 1


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


values.register(Point, name="p", version=2)
values.register(Suit, name="s")
values.register(Rights, name="f")

SHARED = [1]
GOLDEN = [
    ({"a": [1, None]}, "0081a1619201c0"),
    (2**64, "01c70901010000000000000000"),
    (-(2**64), "01c70901ff0000000000000000"),
    ("\ud800", "01c70302eda080"),
    (
        dt.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=zoneinfo.ZoneInfo("UTC"), fold=1),
        "01c70f0399cd07e805060708090a01a3555443",
    ),
    (dt.date(2024, 5, 6), "01c7060493cd07e80506"),
    (dt.time(1, 2, 3, 4), "01c70705960102030400c0"),
    (dt.timedelta(-1, 2, 3), "01d60693ff0203"),
    (decimal.Decimal("-1.50"), "01c705072d312e3530"),
    (uuid.UUID(int=1), "01d80800000000000000000000000000000001"),
    (complex(1, -0.0), "01d8093ff00000000000008000000000000000"),
    (range(1, 300, 2), "01c70b0a93c40101c402012cc40102"),
    (pathlib.PurePosixPath("a/b"), "01c7140b92ad50757265506f73697850617468c403612f62"),
    (dt.timezone(dt.timedelta(hours=1), "CET"), "01c70b0c9400cd0e1000c403434554"),
    (msgspec.UNSET, "01c7000d"),
    (np.float32(1), "01c70b0e92a33c6634c4040000803f"),
    ((1, "a"), "0293c7002001a161"),
    ({1: 2}, "0293c700210102"),
    ({7}, "0292c7002207"),
    (frozenset({7}), "0292c7002307"),
    (bytearray(b"ab"), "0292c70024c4026162"),
    (Point(3), "0294c70025a1700281a17803"),
    (Suit.ACES, "0294c70025a1730181a46e616d65a441434553"),
    (Rights.READ | Rights.WRITE, "0294c70025a1660181a576616c756503"),
    (np.array([[1, 2]], ">i2"), "0293c70026c40892a33e6932920102c40400010002"),
    ([SHARED, SHARED], "02929101d63000000001"),
]


@pytest.mark.parametrize(("value", "stored"), GOLDEN, ids=range(len(GOLDEN)))
def test_the_stored_form_is_fixed(value: object, stored: str) -> None:
    assert stored == values.encode(value).hex()
    assert repr(value) == repr(values.decode(bytes.fromhex(stored)))


@pytest.mark.parametrize(
    ("value", "bytes_"),
    [
        ({"b": 1, "é": 2, "aa": 3, "a": 4}, "84a16104a2616103a16201a2c3a902"),
        ({2: "x", 1: "y"}, "95c7002101a17902a178"),
        ({"b", "a", 3}, "94c7002203a161a162"),
        ([SHARED, SHARED], "9291019101"),
        (Point(3), "94c70025a1700081a17803"),
    ],
)
def test_the_canonical_form_is_fixed(value: object, bytes_: str) -> None:
    assert bytes_ == values.canonical(value).hex()
