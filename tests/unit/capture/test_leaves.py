from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

import msgspec
import numpy as np
import pytest

from holdfast.capture.fixed import is_fixed
from holdfast.capture.leaves import within
from holdfast.capture.state import State
from holdfast.capture.tracked import track
from holdfast.store.codec import values


@values.register(name="test_leaves.Note")
@dataclass
class Note:
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    of: object


class FrozenStruct(msgspec.Struct, frozen=True):
    of: object


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize(
    ("fixed", "value"),
    [
        (True, "text"),
        (True, (1, ("a", None))),
        (True, frozenset({1})),
        (True, Decimal(1)),
        (True, datetime(2026, 11, 16, tzinfo=UTC)),
        (True, PurePosixPath("x")),
        (True, Colour.RED),
        (True, Frozen((1, 2))),
        (True, FrozenStruct("x")),
        (True, np.float64(1.5)),
        (False, (1, [])),
        (False, {1}),
        (False, bytearray()),
        (False, Frozen([])),
        (False, FrozenStruct({})),
        (False, Note()),
        (False, np.zeros(2)),
        pytest.param(False, object(), id="object"),
    ],
    ids=repr,
)
def test_a_leaf_is_fixed_only_if_nothing_in_it_can_change(fixed: bool, value: object) -> None:
    assert fixed == is_fixed(value)


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "set": (lambda: {1}, lambda leaf: leaf.add(2)),
    "bytearray": (lambda: bytearray(b"a"), lambda leaf: leaf.append(1)),
    "dataclass": (Note, lambda leaf: leaf.tags.append("x")),
    "array": (lambda: np.zeros(3), lambda leaf: leaf.__setitem__(1, 7.0)),
    "list in a tuple": (lambda: ([],), lambda leaf: leaf[0].append(1)),
}


@pytest.mark.parametrize(("make", "change"), CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("is_loose_first", [True, False])
def test_a_leaf_changed_in_place_is_in_the_next_delta(
    make: Callable[[], Any], change: Callable[[Any], object], is_loose_first: bool
) -> None:
    leaf = make()
    state = State({"list": [0, 1, 2]})
    base = state.base()
    holder = {"leaf": leaf, "other": 1}
    state.root["list"].insert(1, track(holder) if is_loose_first else holder)
    state.root["list"].append(leaf)
    first = state.delta()
    assert state.delta() is None

    change(leaf)
    second = state.delta()
    root = State.restore(base, [data for data in (first, second) if data], {}.get).root

    assert state.delta() is None
    assert values.canonical(leaf) == values.canonical(root["list"][1]["leaf"])
    assert root["list"][1]["leaf"] is root["list"][-1]


def test_a_changed_leaf_does_not_rewrite_what_stands_beside_it() -> None:
    note = Note()
    state = State({"notes": [Note(["x" * 500]), note, Note(["y" * 500])], "text": "z" * 500})
    state.base()

    note.tags.append("new")
    delta = state.delta()

    assert delta is not None
    assert b"new" in delta
    assert len(delta) < 150


def test_a_leaf_changed_while_one_of_its_holders_is_out_is_right_when_that_comes_back() -> None:
    note = Note()
    state = State({"in": {"note": note}, "out": {"other": 1, "note": note}})
    saves = [state.base()]
    out = state.root.pop("out")
    out["other"] = object()  # so that the part that is out cannot be saved
    note.tags.append("new")
    saves.append(state.delta() or b"")
    del out["other"]
    state.root["out"] = out
    saves.append(state.delta() or b"")

    root = State.restore(saves[0], saves[1:], {}.get).root
    assert ["new"] == root["in"]["note"].tags
    assert root["in"]["note"] is root["out"]["note"]


def test_a_leaf_that_left_the_state_is_no_longer_looked_at() -> None:
    note = Note()
    state = State({"note": note})
    state.base()
    del state.root["note"]
    state.delta()

    note.tags.append(object())  # type: ignore[arg-type]

    assert state.delta() is None


def test_everything_inside_a_leaf_is_found_unless_it_is_not_asked_for() -> None:
    note = Note(["a", "b"])

    assert {"a", "b"} <= {item for item in within(note) if isinstance(item, str)}
    assert [note.tags] == [item for item in within(note, but={str}) if isinstance(item, list | str)]


def test_equal_copies_of_objects_are_what_those_were_that_are_gone() -> None:
    state = State({"notes": [Note(["x" * 1000, f"{n}"]) for n in range(20)]})
    saves = [state.base()]

    state.root["notes"] = [Note([*note.tags]) for note in state.root["notes"]]
    saves.append(state.delta() or b"")

    assert len(saves[1]) < 200
    first, kept = state.root["notes"][0], state.root["notes"][1]
    state.root["notes"][1:3] = [Note([*kept.tags]), kept]  # Now there are two of them.
    first.tags.append("changed")
    saves.append(state.delta() or b"")
    kept.tags.append("changed")
    saves.append(state.delta() or b"")
    again = State.restore(saves[0], saves[1:], {}.get).root["notes"]
    assert [note.tags for note in state.root["notes"]] == [note.tags for note in again]
    assert len({id(note) for note in again}) == len(again)


def test_an_object_stays_itself_when_its_equal_goes() -> None:
    one, two = Note(["equal"]), Note(["equal"])
    state = State({"one": one, "two": two})
    saves = [state.base()]

    state.root["two"] = one
    saves.append(state.delta() or b"")

    root = State.restore(saves[0], saves[1:], {}.get).root
    assert root["one"] is root["two"]
    assert root["one"] == one
