"""Any value as JSON that every reader takes."""

import dataclasses
import datetime as dt
import decimal
import enum
import json
import uuid
from pathlib import PurePosixPath

import msgspec
import numpy as np
import pydantic
import pytest

from holdfast.cli.values import to_json
from holdfast.errors import UsageError


class Colour(enum.StrEnum):
    RED = "r"


@dataclasses.dataclass
class Order:
    id: str
    lines: tuple[int, ...]


class Point(msgspec.Struct):
    x: int


class Model(pydantic.BaseModel):
    when: dt.date


@pytest.mark.parametrize(
    ("value", "json_"),
    [
        (None, None),
        (True, True),
        (10**30, 10**30),
        ("é\n", "é\n"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (Colour.RED, "r"),
        ({1: "a", (2, 3): "b", None: Colour.RED}, {"1": "a", "[2, 3]": "b", "null": "r"}),
        (
            {1: "a", "1": "b", "[1]": "c", (2,): "d", frozenset({2}): "e", None: "f", "None": "g"},
            {
                "[[1]]": "a",
                "1": "b",
                "[1]": "c",
                "[2]": "d",
                "[frozenset({2})]": "e",
                "null": "f",
                "None": "g",
            },
        ),
        ({3, 1, 2}, [1, 2, 3]),
        (range(3), [0, 1, 2]),
        (b"\x00\xff", "AP8="),
        (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), "2026-01-02T03:04:00+00:00"),
        (dt.timedelta(minutes=1), 60.0),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (PurePosixPath("a/b"), "a/b"),
        (1 + 2j, "(1+2j)"),
        (Order("o", (1, 2)), {"id": "o", "lines": [1, 2]}),
        (Point(x=1), {"x": 1}),
        (Model(when=dt.date(2026, 1, 2)), {"when": "2026-01-02"}),
        (np.arange(3), [0, 1, 2]),
        (np.float64(0.5), 0.5),
        (np.int8(3), 3),
    ],
)
def test_a_value_becomes_what_json_has(value: object, json_: object) -> None:
    assert json_ == json.loads(to_json(value))


def test_a_lone_surrogate_is_still_json() -> None:
    text = to_json("\udc80").encode("utf-8", "backslashreplace").decode()

    assert "\udc80" == json.loads(text)


def test_what_steers_a_terminal_is_escaped_and_stays_the_same_value() -> None:
    value = {"\x9b31m": "\x1b[31m \u202eabc\u2066 \x7f é 😀"}

    shown = to_json(value)

    assert value == json.loads(shown)
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_what_is_nested_too_deep_to_be_printed_says_how_to_see_a_part() -> None:
    value: list[object] = []
    for _ in range(5000):
        value = [value]

    with pytest.raises(UsageError, match="`show --path` prints a part"):
        to_json(value)
