import contextvars
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import errors
from holdfast.capture.state import State
from holdfast.capture.tracked import inside, track

CHANGES: dict[str, Callable[[Any], object]] = {
    "list append": lambda s: s["messages"].append(1),
    "list extend": lambda s: s["messages"].extend(iter([1])),
    "list pop": lambda s: s["messages"].pop(),
    "list insert": lambda s: s["messages"].insert(0, 1),
    "list remove": lambda s: s["messages"].remove(0),
    "list clear": lambda s: s["messages"].clear(),
    "list sort": lambda s: s["messages"].sort(),
    "list reverse": lambda s: s["messages"].reverse(),
    "list setitem": lambda s: s["messages"].__setitem__(0, 1),
    "list setitem slice": lambda s: s["messages"].__setitem__(slice(1), [1]),
    "list delitem": lambda s: s["messages"].__delitem__(0),
    "list iadd": lambda s: s["messages"].__iadd__([1]),
    "list imul": lambda s: s["messages"].__imul__(2),
    "dict setitem": lambda s: s.__setitem__("new", 1),
    "dict delitem": lambda s: s.__delitem__("messages"),
    "dict pop": lambda s: s.pop("messages"),
    "dict popitem": lambda s: s.popitem(),
    "dict clear": lambda s: s.clear(),
    "dict update": lambda s: s.update(new=1),
    "dict setdefault": lambda s: s.setdefault("new", 1),
    "dict ior": lambda s: s.__ior__({"new": 1}),
}


def during(function: str, act: Callable[[], object]) -> None:
    def run() -> None:
        inside.set(function)
        act()

    contextvars.copy_context().run(run)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_step_cannot_change_the_state(change: Callable[[Any], object]) -> None:
    state = State({"messages": [0, 1]})

    with pytest.raises(errors.ChangedInCall) as raised:
        during("chat", lambda: change(state.root))

    assert raised.value.function == "chat"
    assert raised.value.path.startswith("state")
    assert {"messages": [0, 1]} == state.root


def test_the_error_names_the_place_that_was_to_change() -> None:
    state = State({"messages": [{}, {"parts": [1]}]})

    with pytest.raises(errors.ChangedInCall, match=r'chat changed state\["messages"\]\[1\]\["par'):
        during("chat", lambda: state.root["messages"][1]["parts"].append(2))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda root: root.__setitem__("total", 1), 'state["total"]'),
        (lambda root: root.pop("messages"), 'state["messages"]'),
        (lambda root: root["messages"].__setitem__(1, 5), 'state["messages"][1]'),
        (lambda root: root.update(total=1), "state"),
    ],
)
def test_the_error_names_the_key_that_was_to_change(
    change: Callable[[Any], object], path: str
) -> None:
    state = State({"messages": [0, 1]})

    with pytest.raises(errors.ChangedInCall) as raised:
        during("chat", lambda: change(state.root))

    assert path == raised.value.path


def test_a_step_cannot_change_an_answer_it_was_given() -> None:
    answer = track({"n": [1]})

    with pytest.raises(errors.ChangedInCall, match="an argument"):
        during("chat", lambda: answer["n"].append(2))


def test_reading_is_free_inside_a_step() -> None:
    state = State({"messages": [1]})

    during("chat", lambda: state.root.setdefault("messages", []))


def test_a_container_of_another_state_is_refused() -> None:
    one, other = State({"x": [1]}), State()

    with pytest.raises(errors.UsageError, match="another run's state"):
        other.root["y"] = {"deep": [one.root["x"]]}

    assert {} == other.root
