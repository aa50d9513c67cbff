"""Paths are read as people write them, and shown so that they can be read again."""

import pytest

from holdfast.capture.paths import parse, pick, show
from holdfast.errors import UsageError

STATE = {"messages": [{"role": "a"}, {"role": "b"}, {"role": "c"}], "odd key": {"x": 1}}


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


@pytest.mark.parametrize("path", ["messages[", "messages[a]", "a..b", "messages[1"])
def test_a_path_that_makes_no_sense_is_refused_with_its_place(path: str) -> None:
    with pytest.raises(UsageError, match="cannot be read from"):
        parse(path)


@pytest.mark.parametrize(
    ("path", "offered"),
    [
        ("mesages", "'messages', 'odd key'"),
        ("messages[7]", "3 items"),
        ("messages[0].role.x", "str"),
    ],
)
def test_a_path_to_nothing_says_what_there_is(path: str, offered: str) -> None:
    with pytest.raises(UsageError, match=offered):
        pick(STATE, parse(path))


@pytest.mark.parametrize(
    "steps", [["a", 3, "b"], ['we"ird', 0], ["with space", "x"], ["back\\slash", -1]]
)
def test_a_shown_path_is_read_as_itself(steps: list[str | int]) -> None:
    assert steps == parse(show(steps))
