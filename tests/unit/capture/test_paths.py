"""Paths are read as people write them, and shown so that they can be read again."""

import datetime as dt
import enum
import math
import uuid
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from holdfast.capture.paths import Step, parse, pick, put, show
from holdfast.cli.text import line
from holdfast.errors import UsageError

STATE = {"messages": [{"role": "a"}, {"role": "b"}, {"role": "c"}], "odd key": {"x": 1}}


@dataclass
class Quote:
    cents: int

    @property
    def euros(self) -> float:
        return self.cents / 100

    def doubled(self) -> int:
        return 2 * self.cents


KINDS: dict[object, Any] = {
    "text": "abcdef",
    "raw": b"\x01\x02",
    "quote": Quote(150),
    "vectors": np.arange(6).reshape(2, 3),
    "nothing": np.float64(0.5),
    None: "none",
    (1, 2): {True: "yes", 1.5: "more"},
    7: "seven",
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("messages[0].role", "a"),
        ("messages[-1]", {"role": "c"}),
        ("messages[-2:].role", ["b", "c"]),
        ("messages[:1]", [{"role": "a"}]),
        ('["odd key"].x', 1),
        ("['odd key']", {"x": 1}),
        ("", STATE),
    ],
)
def test_a_path_picks_what_stands_there(path: str, expected: object) -> None:
    assert expected == pick(STATE, parse(path))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("messages[::2].role", ["a", "c"]),
        ("messages[::-1].role", ["c", "b", "a"]),
        ("messages[5:]", []),
        ("state.messages[0].role", "a"),
        ('state["odd key"]', {"x": 1}),
        ("state", STATE),
    ],
)
def test_a_path_may_be_copied_from_an_error_and_may_count_in_steps(
    path: str, expected: object
) -> None:
    assert expected == pick(STATE, parse(path))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("text[:3]", "abc"),
        ("text[-1]", "f"),
        ("raw[1]", 2),
        ("quote.cents", 150),
        ("quote.euros", 1.5),
        ("vectors[1][0]", 3),
        ("vectors[0][1:]", [1, 2]),
        ("[None]", "none"),
        ("[7]", "seven"),
        ("[(1, 2)][True]", "yes"),
        ("[(1, 2)][1.5]", "more"),
    ],
)
def test_a_path_goes_into_text_objects_arrays_and_keys_of_any_kind(
    path: str, expected: object
) -> None:
    assert expected == pick(KINDS, parse(path))


@pytest.mark.parametrize(
    "path", ["quote.doubled", "quote.__class__", "text.upper", "vectors[2]", "nothing[0]", "[1]"]
)
def test_a_path_leads_to_values_only(path: str) -> None:
    with pytest.raises(UsageError, match="there is nothing at "):
        pick(KINDS, parse(path))


def test_a_section_that_is_called_state_is_found() -> None:
    assert 1 == pick({"state": {"x": 1}}, parse("state.x"))


@pytest.mark.parametrize(
    "path",
    [
        "messages[",
        "messages[a]",
        "a..b",
        "messages[1",
        "messages[-:]",
        "messages[::0]",
        "messages[1:2:3:4]",
        "messages[{}]",
        f"messages[{'9' * 5000}]",
        "a b",
        r'["\N{no such name}"]',
    ],
)
def test_a_path_that_makes_no_sense_is_refused_with_its_place(path: str) -> None:
    with pytest.raises(UsageError, match="cannot be read from"):
        parse(path)


@pytest.mark.parametrize(
    ("path", "offered"),
    [
        ("mesages", "'messages', 'odd key'"),
        ("messages[7]", "3 items"),
        ("messages[0].role.x", "str of 1 characters"),
        ("messages[1:].rule", r"nothing at messages\[1:\]\.rule; there is: 'role'"),
        ("messages[0].role[0:1].x", r"nothing at messages\[0\]\.role\[0:1\]\.x"),
    ],
)
def test_a_path_to_nothing_says_what_there_is(path: str, offered: str) -> None:
    with pytest.raises(UsageError, match=offered):
        pick(STATE, parse(path))


@pytest.mark.parametrize(
    "steps",
    [
        ["a", 3, "b"],
        ['we"ird', 0],
        ["with space", "x"],
        ["back\\slash", -1],
        ["a", None, True, 1.5, (1, "x"), b"raw"],
        ["a", slice(1, None, None), "b", slice(None, -1, 2)],
    ],
)
def test_a_shown_path_is_read_as_itself(steps: list[Step]) -> None:
    assert steps == parse(show(steps))


class Suit(enum.Flag):
    HEARTS = 1
    SPADES = 2


ODD_KEYS: list[Hashable] = [
    "a.b", "की", "a·b", "ﬁ", "日本", "", "[0]", "a]b", 'a"]["b', "it's", "new\nline", "back\\\n",
    "tab\t", "two  spaces", "\\n", "\\x41", "turned\u202e", "\ud800", "no\xa0break",
    "1", 1, -1, 1.5, 10**30, None, math.inf, -math.inf, (1, "a]"), (1, (2,)),
    dt.UTC,
    b"x]'", frozenset({1}), dt.date(2026, 1, 1), uuid.UUID(int=3), Decimal("1.23"),
    (uuid.UUID(int=4), 2), Suit.HEARTS, (1, Suit.HEARTS), Suit.HEARTS | Suit.SPADES,
    complex(0, math.inf),
]  # fmt: skip


@pytest.mark.parametrize("key", ODD_KEYS, ids=repr)
def test_a_key_of_any_kind_is_found_and_set_by_the_path_that_is_shown(key: Hashable) -> None:
    state: dict[str, Any] = {"d": {each: f"of {each!r}" for each in ODD_KEYS}}
    path = show(("d", key))

    assert f"of {key!r}" == pick(state, parse(path))
    assert path == show(parse(path))
    put(state, parse(path), "new")
    assert "new" == state["d"][key]
    assert len(ODD_KEYS) == len(state["d"])


@pytest.mark.parametrize("key", ["new\nline", "tab\t", "two   spaces", "\x1b[31m", "no\xa0break"])
def test_a_shown_key_is_the_same_after_it_stood_in_a_table(key: str) -> None:
    assert [key] == parse(line(show([key])))


@pytest.mark.parametrize(
    ("path", "key"),
    [
        (r'["a\nb"]', "a\nb"),
        (r"['\x41\u00e9\101\'']", "AéA'"),
        (r"['\N{BULLET}']", "•"),
        (r'["\d"]', r"\d"),
    ],
)
def test_a_key_between_quotes_is_read_as_python_reads_it(path: str, key: str) -> None:
    assert [key] == parse(path)


@pytest.mark.parametrize("path", ["d[UUID('00')]", "d.x[nan]", "[datetime.date(2026, 1, 2)]"])
def test_a_key_that_is_written_so_and_is_not_there_says_what_there_is(path: str) -> None:
    state = {"d": {uuid.UUID(int=3): 1, "x": [1]}}

    for asked in (lambda: pick(state, parse(path)), lambda: put(state, parse(path), 1)):
        with pytest.raises(UsageError, match=r"there is nothing at .*; there is: "):
            asked()
