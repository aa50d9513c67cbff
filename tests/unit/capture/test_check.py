import dataclasses
import heapq
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import errors
from holdfast.capture.state import State
from holdfast.capture.tracked import track
from holdfast.store.codec import values

BYPASSES: dict[str, Callable[[Any], object]] = {
    "heappush": lambda root: heapq.heappush(root["heap"], 0),
    "heapreplace": lambda root: heapq.heapreplace(root["heap"], 9),
    "list.append": lambda root: list.append(root["heap"], 5),
    "list.append of a dict": lambda root: list.append(root["heap"], {}),
    "dict.update": lambda root: dict.update(root["deep"][0], n=2),
    "dict order": lambda root: dict.__setitem__(root, "a", dict.pop(root, "a")),
}


@pytest.mark.parametrize("bypass", BYPASSES.values(), ids=BYPASSES)
def test_checking_finds_what_goes_around_the_methods(bypass: Callable[[Any], object]) -> None:
    state = State({"a": 1, "heap": [1, 2, 3], "deep": [{"n": 1}]}, check=True)
    state.base()
    bypass(state.root)

    for _ in range(2):
        with pytest.raises(errors.ChangedOutside):
            state.delta()


def test_a_plain_dict_put_in_around_the_methods_stops_a_base() -> None:
    state = State({"list": []})
    list.append(state.root["list"], {})

    with pytest.raises(errors.ChangedOutside, match=r'state\["list"\]'):
        state.base()


@values.register(name="tests.Plan")
@dataclasses.dataclass
class Plan:
    tasks: list[Any]


SHARED: dict[str, Callable[[list[Any]], dict[str, Any]]] = {
    "in two objects": lambda one: {"a": Plan(one), "b": [Plan(one)]},
    "in a tuple": lambda one: {"a": Plan(one), "b": (one,)},
    "an object in another": lambda one: {"a": (plan := Plan(one)), "b": Plan([plan])},
}


@pytest.mark.parametrize("made", SHARED.values(), ids=SHARED)
def test_checking_finds_what_two_values_share_since_a_restart_would_make_two_of_it(
    made: Callable[[list[Any]], dict[str, Any]],
) -> None:
    state = State(check=True)
    state.base()
    state.root.update(made([1]))

    with pytest.raises(errors.NotStorable, match=r'state\["b"\].* stands in state\["a"\] too'):
        state.delta()
    state.root["b"] = Plan([1])
    assert state.delta() is not None


def test_checking_lets_one_object_stand_in_two_places_and_share_what_cannot_change() -> None:
    state = State(check=True)
    state.base()
    plan, word = Plan([(1, "kelp")]), ("kelp", frozenset({1}))
    state.root.update(a=plan, b=[plan], c=Plan([word]), d=(word, [2]))

    assert state.delta() is not None


def test_checking_goes_on_after_an_error() -> None:
    state = State({"heap": [1, 2]}, check=True)
    state.base()
    list.append(state.root["heap"], 3)
    with pytest.raises(errors.ChangedOutside):
        state.delta()
    list.pop(state.root["heap"])
    state.root["heap"].append(4)

    assert state.delta() is not None
    assert state.delta() is None


def test_checking_reads_answers_by_their_source_if_it_can() -> None:
    answers = {(1,): {"text": "x" * 1000}}
    named = State(check=True, answer=answers.__getitem__)
    by_value = State(check=True)
    sizes = []

    for state in (named, by_value):
        state.base()
        state.root["reply"] = track(answers[1,], (1,))
        sizes.append(len(state.delta() or b""))

    assert sizes[0] < 100 < sizes[1]


def test_an_answer_changed_behind_its_back_is_found() -> None:
    answers = {(1,): {"heap": [1]}}
    state = State(check=True, answer=answers.__getitem__)
    state.base()
    reply = track(answers[1,], (1,))
    heapq.heappush(reply["heap"], 0)
    state.root["reply"] = reply

    with pytest.raises(errors.ChangedOutside, match=r'state\["reply"\]\["heap"\]'):
        state.delta()


def test_without_checking_a_changed_length_is_still_written_whole() -> None:
    state = State({"heap": [3, 4]})
    base = state.base()
    state.root["heap"].append(5)
    heapq.heappush(state.root["heap"], 1)
    delta = state.delta()

    assert delta is not None
    assert [1, 3, 5, 4] == State.restore(base, [delta], {}.get).root["heap"]


def test_without_checking_a_dict_of_another_length_than_noted_is_an_error() -> None:
    state = State({"d": {"a": 1}})
    state.base()
    state.root["d"]["b"] = 2
    dict.__setitem__(state.root["d"], "c", 3)

    with pytest.raises(errors.ChangedOutside, match=r'state\["d"\]'):
        state.delta()
