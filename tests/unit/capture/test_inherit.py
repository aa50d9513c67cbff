"""An equal copy in the place of what is stored is a container of its own, and not stored again."""

import copy
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from holdfast.capture.check import first_difference
from holdfast.capture.digest import digest
from holdfast.capture.document import document
from holdfast.capture.inherit import DIRTY_MAX
from holdfast.capture.state import State
from holdfast.capture.tracked import plain
from holdfast.errors import NotStorable

MESSAGE_BYTES = 1000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Log:
    """A state and its saves, which later ones may name."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.state = State(content)
        self.saves: list[bytes] = []
        self._keep(self.state.base())

    def _keep(self, save: bytes) -> None:
        self.saves.append(save)
        self.state.locate((len(self.saves), 0))

    def turn(self) -> int:
        """End a turn: how many bytes it takes; what is read again is what is there."""
        save = self.state.delta() or b""
        if save:
            self._keep(save)
            places = [(at + 1, 0) for at in range(len(self.saves))]
            again = State.restore(
                self.saves[0], self.saves[1:], lambda at: self.saves[at[0] - 1], places=places
            )
            assert plain(self.state.root) == plain(again.root)
            assert digest(self.state.root) == digest(again.root)
        return len(save)


def messages(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "n": n, "text": f"{n} " * (MESSAGE_BYTES // 4)} for n in range(count)]


def by_json(value: object) -> Any:  # noqa: ANN401 what it was
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("copied", [copy.deepcopy, by_json])
def test_a_conversation_that_comes_back_whole_from_a_library_costs_what_is_new_in_it(
    copied: Callable[[object], Any],
) -> None:
    log = Log({"messages": messages(50)})
    root = log.state.root

    for _ in range(5):
        root["messages"] = [*copied(root["messages"]), *messages(1)]
        assert log.turn() < MESSAGE_BYTES + 500


def test_messages_with_times_and_ids_in_them_are_stored_once_too() -> None:
    dated = [
        each | {"at": datetime(2026, 1, 1, each["n"], tzinfo=UTC), "id": UUID(int=each["n"])}
        for each in messages(20)
    ]
    log = Log({"messages": dated})

    log.state.root["messages"] = copy.deepcopy(log.state.root["messages"])

    assert log.turn() < 500


def test_a_slice_that_is_set_to_equal_items_costs_little() -> None:
    log = Log({"messages": messages(50)})
    root = log.state.root

    root["messages"][:] = by_json(root["messages"])
    assert log.turn() < 500

    root["messages"][10:12] = by_json(root["messages"][10:12])
    assert log.turn() < 100


def test_what_was_inserted_and_changed_is_all_that_is_stored() -> None:
    log = Log({"messages": messages(20), "deep": {"a": {"b": messages(5)}}})
    root = log.state.root
    new = by_json(root["messages"])
    new.insert(0, {"system": "first"})
    new[7]["text"] = "changed"
    root["messages"] = new
    again = by_json(root["deep"])
    again["a"]["c"] = 1
    root["deep"] = again

    assert log.turn() < 15 * MESSAGE_BYTES // 2


def test_the_copy_is_a_container_of_its_own() -> None:
    log = Log({"messages": messages(3)})
    root, old = log.state.root, log.state.root["messages"]
    root["messages"] = by_json(old)
    log.turn()

    old[0]["text"] = "no part of the state any more"
    assert log.turn() < 200
    assert "0 " == root["messages"][0]["text"][:2]
    root["messages"][1]["text"] = "changed"

    assert log.turn() > 0
    assert "1 " == old[1]["text"][:2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([{"n": 1}], [{"n": True}]),
        ([{"n": 1}], [{"n": 1.0}]),
        ([{"n": 0.0}], [{"n": -0.0}]),
        ([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]),
        ([{"a": [1]}], [{"a": [1, 1]}]),
        ([{1: "a"}], [{True: "a"}]),
        ([{"at": NOON}], [{"at": NOON.astimezone(timezone(timedelta(hours=1)))}]),
        ([{"at": NOON}], [{"at": NOON.replace(fold=1)}]),
        ([{"n": Decimal("1.0")}], [{"n": Decimal("1.00")}]),
    ],
)
def test_what_is_equal_but_not_the_same_is_stored(before: object, after: object) -> None:
    log = Log({"it": before})

    log.state.root["it"] = after

    assert log.turn() > 0
    assert repr(after) == repr(plain(log.state.root)["it"])


def test_what_was_shared_and_what_was_not_stay_so() -> None:
    shared = {"text": "x" * MESSAGE_BYTES}
    first, second = [shared, shared], [dict(shared), dict(shared)]
    for before, after in ((first, second), (second, first)):
        log = Log({"it": before})
        log.state.root["it"] = after
        log.turn()

        one, two = log.state.root["it"]
        assert (after is first) == (one is two)
        one["text"] = "changed"
        log.turn()


@pytest.mark.parametrize("count", [3, 40])
def test_a_change_in_an_equal_copy_shows_in_the_digest_of_all_that_holds_it(count: int) -> None:
    log = Log({"chat": {"messages": messages(count), "tags": ["t"]}})
    root = log.state.root
    log.turn()
    digest(root)
    root["chat"] = copy.deepcopy(root["chat"])

    root["chat"]["messages"].append({"role": "assistant"})

    assert digest(plain(root)) == digest(root)
    assert digest(plain(root["chat"])) == digest(root["chat"])


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[-50:],
        lambda lines: [*lines, "one more"],
        lambda lines: [lines[0], "summary", *lines[40:]],
        lambda lines: [line for line in lines if line != lines[30]],
        lambda lines: json.loads(json.dumps(lines)),
    ],
    ids=["the newest", "one more", "a summary", "without one", "a copy"],
)
def test_a_list_of_texts_in_the_place_of_another_costs_what_is_not_the_same(
    change: Callable[[list[str]], list[str]],
) -> None:
    state = State({"log": [f"line {n} " + "x" * 100 for n in range(60)]})
    saves = [state.base()]

    for turn in range(3):
        state.root["log"].append(f"turn {turn}")
        state.root["log"] = change(state.root["log"])
        delta = state.delta()
        assert delta is not None
        assert len(delta) < 100
        saves.append(delta)

    found = State.restore(saves[0], saves[1:], lambda _: None)
    assert first_difference(state.root, found.root) is None


def test_a_list_that_comes_back_after_another_took_its_place_is_one_of_its_own() -> None:
    state = State({"log": ["a", "b"], "other": {}})
    base = state.base()

    before = state.root["log"]
    state.root["log"] = [*before, "c"]
    state.root["other"]["log"] = before
    before.append("d")
    delta = state.delta()

    assert delta is not None
    found = State.restore(base, [delta], lambda _: None).root
    assert {"log": ["a", "b", "c"], "other": {"log": ["a", "b", "d"]}} == found
    assert first_difference(state.root, found) is None


@pytest.mark.parametrize("beside", [0, DIRTY_MAX + 1])
def test_a_changed_list_that_gets_its_place_back_is_written_once(beside: int) -> None:
    others = {n: [n] for n in range(beside)}
    state = State({"log": [str(n) for n in range(40)], "others": others})
    base = state.base()

    for other in state.root["others"].values():
        other.append(0)
    before = state.root["log"]
    before.insert(3, "one")
    before.insert(30, "far from it")
    state.root["log"] = before[:]
    state.root["log"] = before
    delta = state.delta()

    assert delta is not None
    found = State.restore(base, [delta], lambda _: None).root
    assert first_difference(state.root, found) is None


@pytest.mark.parametrize("seed", range(40))
def test_lists_that_take_each_others_places_come_back_as_they_are(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 a seed
    state = State({name: [f"{name}{n}" for n in range(5)] for name in "abc"}, check=True)
    saves, held = [state.base()], [state.root["a"]]

    for turn in range(30):
        for _ in range(chance.randrange(4)):
            one, two = chance.choices("abc", k=2)
            items = state.root[two]
            match chance.randrange(6):
                case 0:
                    state.root[one] = items[chance.randrange(3) :]
                case 1:
                    state.root[one] = [*items[:20], f"more {turn}"]
                case 2:
                    held.append(items)
                case 3:
                    state.root[one] = chance.choice(held)
                case 4:
                    items.insert(chance.randrange(3), turn)
                case _:
                    state.root[one] = [items, *items[:3]] if len(items) < 5 else [*items]
        try:
            delta = state.base() if chance.random() < 0.1 else state.delta()
        except NotStorable:  # One of them contains itself.
            return
        if delta is None:
            continue
        saves = [delta] if is_base(delta) else [*saves, delta]
        found = State.restore(saves[0], saves[1:], lambda _: None)
        assert first_difference(state.root, found.root) is None


def is_base(save: bytes) -> bool:
    return len(document(save)) == 2
