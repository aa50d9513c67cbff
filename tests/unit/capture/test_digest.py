from collections.abc import Callable
from typing import Any

import pytest

from holdfast import errors
from holdfast.capture.digest import digest
from holdfast.capture.state import State
from holdfast.capture.tracked import plain, track

DIFFERENT: list[Any] = [
    None, False, True, 0, 1, 1.0, -0.0, 0.0, "1", b"1", [], {}, [[]], [{}], {"": []}, [1], ["1"],
    {"1": None}, {1: None}, {True: None}, {1.0: None}, (1,), frozenset({1}), {1}, 2**64, "\ud800",
    [1, 2], [2, 1], [[1], 2], {"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": "b"}, ["a", "b"],
    list(range(33)), list(range(32)), [list(range(32)), 32], {str(n): n for n in range(33)},
]  # fmt: skip


def test_different_values_have_different_digests() -> None:
    assert len(DIFFERENT) == len({digest(value) for value in DIFFERENT})


@pytest.mark.parametrize("value", DIFFERENT, ids=range(len(DIFFERENT)))
def test_plain_and_tracked_have_the_same_digest(value: object) -> None:
    state = State({"x": value, "y": [value]})

    for _ in range(2):
        assert digest(value) == digest(track(value)) == digest(state.root["x"])
        assert digest([value]) == digest(state.root["y"])


@pytest.mark.parametrize("count", [5, 32, 33, 500])
def test_the_order_of_a_dict_does_not_count(count: int) -> None:
    pairs = [(f"k{n}", n) for n in range(count)] + [(count, "x")]

    assert digest(dict(pairs)) == digest(dict(reversed(pairs)))


def test_two_values_that_are_nan_by_the_same_bits_are_the_same() -> None:
    assert digest([float("nan")]) == digest([float("nan")])


CHANGES: dict[str, Callable[[Any], object]] = {
    "append": lambda root: root["list"].append([1]),
    "pop": lambda root: root["list"].pop(),
    "pop first": lambda root: root["list"].pop(0),
    "set": lambda root: root["list"].__setitem__(40, "x"),
    "shrink": lambda root: root["list"].__delitem__(slice(20, None)),
    "clear": lambda root: root["list"].clear(),
    "sort": lambda root: root["list"].sort(key=str, reverse=True),
    "deep, at the end": lambda root: root["list"][-1].append(1),
    "deep, in the middle": lambda root: root["list"][35].append(1),
    "deep, at two places": lambda root: root["twice"][0].append(1),
    "leaf in place": lambda root: root["leaves"][3].add("new"),
    "leaf in a dict": lambda root: root["dict"]["leaf"].add("new"),
    "key": lambda root: root["dict"].__setitem__("new", 1),
    "value": lambda root: root["dict"].__setitem__("k7", 1),
    "delete": lambda root: root["dict"].__delitem__("k7"),
    "many keys": lambda root: root["dict"].update({f"x{n}": n for n in range(200)}),
    "deep in a dict": lambda root: root["dict"]["deep"].append(1),
    "another type of key": lambda root: (root["dict"].pop(1), root["dict"].update({True: 1})),
    "small": lambda root: root["small"]["x"].append(1),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_remembered_digest_is_never_stale(change: Callable[[Any], object]) -> None:
    twice: list[int] = []
    content = {
        "list": [[n] for n in range(70)],
        "dict": {f"k{n}": n for n in range(60)} | {1: 1, "deep": [], "leaf": {1}},
        "twice": [twice, *range(80), twice],
        "leaves": [{n} for n in range(40)],
        "small": {"x": []},
    }
    state = State(content)
    before = digest(state.root)
    assert digest(content) == before

    change(state.root)
    after = digest(state.root)
    assert digest(plain(state.root)) == after != before

    state.root["list"].extend([1, 2])
    assert digest(plain(state.root)) == digest(state.root) != after


def test_a_value_without_a_digest_is_named() -> None:
    for value in ({"a": [1, object()]}, track({"a": [1, object()]})):
        with pytest.raises(errors.NotStorable, match=r'messages\["a"\]\[1\]: object'):
            digest(value, path="messages")
    with pytest.raises(errors.NotStorable, match="key"):
        digest({"a": {object(): 1}}, path="key")


def test_a_value_that_contains_itself_has_no_digest() -> None:
    itself: list[Any] = []
    itself.append(itself)

    with pytest.raises(errors.NotStorable, match="contains itself"):
        digest(itself)
