import functools
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import errors
from holdfast.capture.state import State
from holdfast.capture.tracked import track


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ('state["x"]', lambda x: x.update(new=1)),
        ('state["x"]', lambda x: x.update(n=2)),
        ('state["x"]', lambda x: x.update(n=True)),
        ('state["x"]', lambda x: x.update(n=x.pop("n"))),
        ('state["x"]["list"]', lambda x: x["list"].append(1)),
        ('state["x"]["list"]', lambda x: x["list"].reverse()),
        ('state["x"]', lambda x: x.update(list=list(x["list"]))),
    ],
    ids=["a key", "a value", "a type", "the order", "deep", "moved", "an equal list"],
)
def test_a_change_through_the_object_that_was_put_in_is_an_error(
    path: str, change: Callable[[dict[str, Any]], None]
) -> None:
    held: dict[str, Any] = {"n": 1, "list": [1, 2]}
    state = State()
    state.base()
    state.root["x"] = held
    state.delta()
    change(held)

    for save in (state.delta, state.base):
        with pytest.raises(errors.ChangedOutside) as raised:
            save()
        assert path == raised.value.path


def test_a_change_before_the_first_save_is_found_though_the_name_is_gone() -> None:
    state = State()
    state.base()
    held = [1]
    state.root["x"] = held
    held.append(2)
    del held

    with pytest.raises(errors.ChangedOutside):
        state.delta()


@pytest.mark.parametrize("is_held", [True, False])
def test_only_what_somebody_else_may_hold_is_watched(is_held: bool) -> None:
    state = State({"m": []})
    state.base()
    message = {"content": "x"}

    if is_held:
        state.root["m"].append(message)
    else:
        state.root["m"].append({"content": "x"})
    message["content"] = "changed"

    if is_held:
        with pytest.raises(errors.ChangedOutside):
            state.delta()
    else:
        assert state.delta() is not None


@pytest.mark.parametrize(
    "append",
    [
        lambda m, x: m.append(x),
        lambda m, x: m.append(*[x]),
        lambda m, x: list(map(m.append, [x])),
        lambda m, x: functools.partial(m.append, x)(),
        lambda m, x: type(m).append(m, x),
    ],
    ids=["plainly", "unpacked", "mapped", "partial", "unbound"],
)
def test_an_appended_dict_is_watched_however_it_was_handed_over(
    append: Callable[[Any, Any], object],
) -> None:
    state = State({"m": []})
    state.base()
    holder = [{"content": "x"}]

    append(state.root["m"], holder[0])
    holder[0]["content"] = "changed"

    with pytest.raises(errors.ChangedOutside):
        state.delta()


def test_setting_the_same_value_again_is_no_change() -> None:
    held = {"text": str(12345)}
    state = State({"x": held})
    state.base()

    held["text"] = str(12345)

    assert state.delta() is None


def test_the_same_object_put_in_twice_is_one_container() -> None:
    held: dict[str, list[int]] = {"list": []}
    state = State()

    state.root["a"], state.root["b"] = held, [held]
    state.root["c"] = held["list"]

    assert state.root["a"] is state.root["b"][0]
    assert state.root["a"]["list"] is state.root["c"]


def test_an_object_put_into_an_answer_and_into_the_state_is_one_container() -> None:
    held: list[int] = []
    state = State()
    reply = track({"n": 1})

    reply["x"] = held
    state.root["y"] = held
    state.root["reply"] = reply

    assert state.root["reply"]["x"] is state.root["y"]


def test_a_change_of_what_was_put_into_an_answer_is_found_once_that_is_in_the_state() -> None:
    held: list[int] = []
    state = State()
    state.base()
    reply = track({"n": 1})
    reply["x"] = held
    state.root["reply"] = reply
    held.append(1)

    with pytest.raises(errors.ChangedOutside, match=r'state\["reply"\]\["x"\]'):
        state.delta()


class Marked:
    """A leaf that can be referred to weakly."""


def test_an_original_that_nobody_holds_is_let_go_at_the_next_save() -> None:
    leaf = Marked()
    gone = weakref.ref(leaf)
    state = State({"n": 1})
    state.base()
    outer = {"inner": [leaf]}
    state.root["x"] = outer
    del leaf, outer
    del state.root["x"]["inner"][0]
    assert gone() is not None

    state.delta()

    assert gone() is None


def test_originals_of_answers_are_let_go_when_there_are_many() -> None:
    leaves = [Marked() for _ in range(2000)]
    gone = [weakref.ref(leaf) for leaf in leaves]

    while leaves:
        track({})["x"] = [leaves.pop()]

    assert sum(leaf() is not None for leaf in gone) < 600


def test_a_watched_original_in_a_part_that_was_taken_out_stops_nothing() -> None:
    held: list[int] = []
    state = State({"x": held})
    state.base()
    taken = state.root.pop("x")
    held.append(1)

    assert state.delta() is not None
    state.root["x"] = taken
    with pytest.raises(errors.ChangedOutside):
        state.delta()
