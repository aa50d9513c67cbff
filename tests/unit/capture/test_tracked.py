import bisect
import copy
import json
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec
import pydantic
import pytest

from holdfast.capture.state import State
from holdfast.capture.tracked import TrackedDict, TrackedList, plain, track

Value: TypeAlias = Any

LIST_CHANGES: dict[str, Callable[[list[Any]], object]] = {
    "append": lambda x: x.append({"n": 1}),
    "extend": lambda x: x.extend([7, [8]]),
    "extend by itself": lambda x: x.extend(x),
    "extend by a generator": lambda x: x.extend(n for n in range(3)),
    "insert in front": lambda x: x.insert(0, "first"),
    "insert far beyond": lambda x: x.insert(99, "last"),
    "insert before the last": lambda x: x.insert(-1, []),
    "pop": lambda x: x.pop(),
    "pop first": lambda x: x.pop(0),
    "pop by negative index": lambda x: x.pop(-2),
    "remove": lambda x: x.remove(3),
    "clear": lambda x: x.clear(),
    "sort": lambda x: x.sort(key=str),
    "sort backwards": lambda x: x.sort(key=str, reverse=True),
    "reverse": lambda x: x.reverse(),
    "set an item": lambda x: x.__setitem__(-1, {"k": []}),
    "set a slice": lambda x: x.__setitem__(slice(1, 3), ["a", "b", "c"]),
    "set an empty slice": lambda x: x.__setitem__(slice(2, 1), ["new"]),
    "set every other item": lambda x: x.__setitem__(slice(None, None, 2), ["p", "q", "r"]),
    "set no item backwards": lambda x: x.__setitem__(slice(-9, 5, -2), []),
    "set backwards": lambda x: x.__setitem__(slice(None, None, -2), ["p", "q", "r"]),
    "delete an item": lambda x: x.__delitem__(2),
    "delete a slice": lambda x: x.__delitem__(slice(0, 2)),
    "delete every other item": lambda x: x.__delitem__(slice(None, None, 2)),
    "delete backwards": lambda x: x.__delitem__(slice(3, 0, -2)),
    "delete nothing": lambda x: x.__delitem__(slice(3, 3)),
    "+=": lambda x: x.__iadd__((1, 2)),
    "*= 3": lambda x: x.__imul__(3),
    "*= 0": lambda x: x.__imul__(0),
    "insort": lambda x: bisect.insort(x, 2, key=str),
    "shuffle": lambda x: random.Random(5).shuffle(x),  # noqa: S311
    "begin anew": lambda x: x.__init__([1]),  # type: ignore[misc]
}
LIST_ERRORS: dict[str, Callable[[list[Any]], object]] = {
    "pop beyond": lambda x: x.pop(9),
    "remove what is not there": lambda x: x.remove("none"),
    "set beyond": lambda x: x.__setitem__(9, 1),
    "set by text": lambda x: x.__setitem__("a", 1),  # type: ignore[call-overload]
    "set too few": lambda x: x.__setitem__(slice(None, None, 2), [1]),
    "set no iterable": lambda x: x.__setitem__(slice(1), 5),  # type: ignore[call-overload]
    "delete beyond": lambda x: x.__delitem__(9),
    "sort what cannot be compared": lambda x: x.sort(),
    "multiply by text": lambda x: x.__imul__("a"),  # type: ignore[arg-type]
}
DICT_CHANGES: dict[str, Callable[[dict[Any, Any]], object]] = {
    "set": lambda x: x.__setitem__("new", {"n": []}),
    "overwrite": lambda x: x.__setitem__("a", [1]),
    "overwrite by an equal key": lambda x: x.__setitem__(True, "yes"),
    "delete": lambda x: x.__delitem__("a"),
    "delete and set again": lambda x: x.__setitem__("a", x.pop("a")),
    "pop": lambda x: x.pop("b"),
    "pop what is not there": lambda x: x.pop("none", 5),
    "popitem": lambda x: x.popitem(),
    "clear": lambda x: x.clear(),
    "update": lambda x: x.update({"a": 1, "z": {}}, y=2),
    "update by pairs": lambda x: x.update([("q", 1), ("a", 2), ("q", 3)]),
    "setdefault": lambda x: x.setdefault("new", []),
    "setdefault of what is there": lambda x: x.setdefault("a", []),
    "|=": lambda x: x.__ior__({"b": 5, "r": [6]}),
}
DICT_ERRORS: dict[str, Callable[[dict[Any, Any]], object]] = {
    "delete what is not there": lambda x: x.__delitem__("none"),
    "pop what is not there": lambda x: x.pop("none"),
    "set by a list": lambda x: x.__setitem__([], 1),
    "update by a number": lambda x: x.update(5),  # type: ignore[call-overload]
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    ".copy()": lambda x: x.copy(),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),  # noqa: S301 our own bytes
    "[:] and |": lambda x: x[:] if isinstance(x, list) else x | {},
    "+ and | from the right": lambda x: [] + x if isinstance(x, list) else {} | x,  # noqa: RUF005
    "* and **": lambda x: x * 1 if isinstance(x, list) else {**x},
}


def a_list() -> list[Any]:
    return [1, {"two": 2}, 3, [4, [5]], "six"]


def a_dict() -> dict[Any, Any]:
    return {"a": {"x": 1}, "b": [1, 2], 1: "one", "c": None}


def saved(value: Value) -> tuple[State, Any]:
    state = State({"value": value})
    state.base()
    return state, state.root["value"]


@pytest.mark.parametrize("change", LIST_CHANGES.values(), ids=LIST_CHANGES)
def test_a_tracked_list_changes_as_a_list_does_and_the_delta_says_so(
    change: Callable[[list[Any]], object],
) -> None:
    expected = a_list()
    state = State({"value": a_list()})
    base = state.base()

    change(expected)
    change(state.root["value"])
    delta = state.delta()

    assert expected == state.root["value"]
    restored = State.restore(base, [delta] if delta else [], {}.__getitem__)
    assert expected == restored.root["value"]


@pytest.mark.parametrize("change", DICT_CHANGES.values(), ids=DICT_CHANGES)
def test_a_tracked_dict_changes_as_a_dict_does_and_the_delta_says_so(
    change: Callable[[dict[Any, Any]], object],
) -> None:
    expected = a_dict()
    state = State({"value": a_dict()})
    base = state.base()

    assert change(expected) == change(state.root["value"])
    delta = state.delta()

    assert list(expected.items()) == list(state.root["value"].items())
    restored = State.restore(base, [delta] if delta else [], {}.__getitem__)
    assert list(expected.items()) == list(restored.root["value"].items())


@pytest.mark.parametrize("change", LIST_ERRORS.values(), ids=LIST_ERRORS)
def test_a_tracked_list_refuses_what_a_list_refuses(change: Callable[[list[Any]], object]) -> None:
    expected = a_list()
    state, value = saved(a_list())

    with pytest.raises(Exception) as raised:  # noqa: PT011 whatever a list raises
        change(expected)
    with pytest.raises(raised.type):
        change(value)

    assert expected == value
    assert state.delta() is None


@pytest.mark.parametrize("change", DICT_ERRORS.values(), ids=DICT_ERRORS)
def test_a_tracked_dict_refuses_what_a_dict_refuses(
    change: Callable[[dict[Any, Any]], object],
) -> None:
    expected = a_dict()
    state, value = saved(a_dict())

    with pytest.raises(Exception) as raised:  # noqa: PT011 whatever a dict raises
        change(expected)
    with pytest.raises(raised.type):
        change(value)

    assert expected == value
    assert state.delta() is None


def test_what_an_iterator_gave_before_it_failed_stays() -> None:
    def items() -> Iterator[tuple[str, int]]:
        yield "one", 1
        raise RuntimeError("cut off")

    tracked_list, tracked_dict = TrackedList(), TrackedDict()
    with pytest.raises(RuntimeError, match="cut off"):
        tracked_list.extend(items())
    with pytest.raises(RuntimeError, match="cut off"):
        tracked_dict.update(items())

    assert [("one", 1)] == tracked_list
    assert {"one": 1} == tracked_dict


def test_what_is_put_in_is_tracked_all_the_way_down() -> None:
    root = State().root

    messages = root.setdefault("messages", [])
    messages.append({"parts": [{"text": "x"}]})

    assert messages is root["messages"]
    assert type(messages) is TrackedList
    assert type(root["messages"][0]["parts"][0]) is TrackedDict


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("make", [a_list, a_dict])
def test_copies_are_plain(
    copied: Callable[[Any], Any], make: Callable[[], list[Any] | dict[Any, Any]]
) -> None:
    _, value = saved(make())

    found = copied(value)

    assert type(make()) is type(found)
    assert make() == found


def test_a_shallow_copy_holds_the_same_live_items() -> None:
    _, value = saved(a_list())

    assert value[1:][0] is value[1]
    assert (value + [])[3] is value[3]  # noqa: RUF005


@pytest.mark.parametrize("copied", [copy.deepcopy, plain])
def test_a_deep_copy_is_plain_below_too_and_keeps_what_is_shared(
    copied: Callable[[Any], Any],
) -> None:
    shared: list[int] = []
    _, value = saved({"x": shared, "y": [shared]})

    found = copied(value)
    found["x"].append(1)

    assert {"x": [1], "y": [[1]]} == found
    assert type(found["y"]) is list
    assert {"x": [], "y": [[]]} == value


def test_plain_looks_into_plain_containers_and_tuples_and_keeps_other_objects() -> None:
    _, value = saved([1])
    an_object, a_tuple = object(), (1, (2,))

    found = plain({"list": [value], "pair": (value, an_object), "tuple": a_tuple})

    assert type(found["list"][0]) is list
    assert found["pair"][0] is found["list"][0]
    assert found["pair"][1] is an_object
    assert found["tuple"] is a_tuple


class Message(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    role: str
    parts: list[dict[str, int]]


def test_json_msgspec_and_pydantic_take_tracked_containers_as_plain_ones() -> None:
    content: dict[str, Any] = {"role": "user", "parts": [{"n": 1}]}
    _, value = saved(content)

    assert json.dumps(content) == json.dumps(value)
    assert msgspec.json.encode(content) == msgspec.json.encode(value)
    assert msgspec.msgpack.encode(content) == msgspec.msgpack.encode(value)
    assert Message(**content) == Message.model_validate(value)
    assert type(Message.model_validate(value).parts) is list
    assert content == value
    assert {**content} == {**value}
    assert repr(content) == repr(value)


def test_an_already_tracked_container_is_put_in_as_it_is() -> None:
    root = State({"a": [1]}).root

    root["b"] = root["a"]
    root["b"].append(2)

    assert root["a"] is root["b"]
    assert {"a": [1, 2], "b": [1, 2]} == root


def test_track_copies_and_keeps_what_is_shared() -> None:
    shared = {"n": 1}
    value = {"one": shared, "two": [shared], "leaf": (1, [2])}

    found = track(value)

    assert value == found
    assert found["one"] is found["two"][0]
    assert found["one"] is not shared
    assert found["leaf"] is value["leaf"]


def test_a_new_tracked_container_takes_what_a_plain_one_takes() -> None:
    assert {"a": 1, "b": [2]} == TrackedDict([("a", 1)], b=[2])
    assert {1: None, 2: None} == TrackedDict.fromkeys([1, 2])
    assert ["x", {"y": 1}] == TrackedList(("x", {"y": 1}))
