"""Leaves are stored once: saves name where their bytes stand."""

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.capture import known
from holdfast.capture.document import needs
from holdfast.capture.look import read
from holdfast.capture.renumber import renumber
from holdfast.capture.state import State
from holdfast.store.codec import values

LONG = "a text that is long enough to be worth a name; " * 4


@values.register(name="test_known.Message")
@dataclass
class Message:
    text: str


@values.register(name="test_known.Letter")
@dataclass(frozen=True)
class Letter:
    text: str


class Journal:
    """Saves by place, and answers."""

    def __init__(self) -> None:
        self.saves: dict[tuple[int, int], bytes] = {}
        self.answers: dict[tuple[int, int], Any] = {}

    def keep(self, state: State, save: bytes | None) -> tuple[bytes, tuple[int, int]]:
        assert save is not None
        at = 100 + len(self.saves), 0
        self.saves[at] = save
        state.locate(at)
        return save, at

    def get(self, at: tuple[int, ...]) -> object:
        place = at[0], at[1]
        if place in self.saves:
            return self.saves[place]
        value = self.answers[place]
        return values.encode(value) if len(at) == 3 else value

    def restored(self, *saves: tuple[bytes, tuple[int, int]]) -> State:
        first, *rest = [save for save, _ in saves]
        return State.restore(first, rest, self.get, places=[at for _, at in saves])


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.mark.parametrize("kind", [Message, Letter])
def test_a_leaf_is_written_once_and_named_by_every_base_after_that(
    journal: Journal, kind: type
) -> None:
    state = State({"messages": [kind(LONG + "1"), {"said": kind(LONG + "2")}]})
    first = journal.keep(state, state.base())
    state.root["messages"].append(kind(LONG + "3"))
    change = journal.keep(state, state.delta())

    second = journal.keep(state, state.base())

    assert len(first[0]) > 2 * len(LONG) > len(LONG) > len(second[0])
    assert {first[1][0], change[1][0]} == needs(second[0]).rows_without()
    assert state.root == journal.restored(second).root
    assert state.root == read(second[0], [], journal.get, places=[second[1]])[0]


@pytest.mark.parametrize("kind", [Message, Letter])
def test_an_answer_that_is_a_leaf_is_named(journal: Journal, kind: type) -> None:
    state = State({"messages": []})
    base = journal.keep(state, state.base())
    answer = journal.answers[7, 1] = kind(LONG)
    state.answered(values.encode(answer), (7, 1))
    state.root["messages"].extend([answer, kind(LONG)])

    change = journal.keep(state, state.delta())

    assert len(change[0]) < len(LONG)
    assert {7} == needs(change[0]).rows_without()
    messages = journal.restored(base, change).root["messages"]
    assert [answer, answer] == messages
    assert messages[0] is not messages[1]


def test_a_leaf_that_changed_is_another_one(journal: Journal) -> None:
    state = State({"message": Message(LONG)})
    journal.keep(state, state.base())
    state.root["message"].text += "!"

    base = journal.keep(state, state.base())

    assert len(base[0]) > len(LONG)
    assert Message(LONG + "!") == journal.restored(base).root["message"]


def test_what_is_named_before_a_restart_is_named_after_it(journal: Journal) -> None:
    state = State({"messages": [Message(LONG + "1"), Letter(LONG + "2")]})
    journal.keep(state, state.base())
    again = journal.restored(journal.keep(state, state.base()))

    third = journal.keep(again, again.base())

    assert len(third[0]) < len(LONG)
    assert state.root == journal.restored(third).root


def test_a_leaf_in_a_container_that_is_named_whole_keeps_its_own_bytes(journal: Journal) -> None:
    made = [{"by": LONG, "said": Letter(LONG + number)} for number in "12"]
    state = State({"first": Letter(LONG), "list": made})
    journal.keep(state, state.base())
    again = journal.restored(journal.keep(state, state.base()))
    again.root["list"][1]["read"] = True

    base = journal.keep(again, again.base())

    assert [made[0], made[1] | {"read": True}] == journal.restored(base).root["list"]


def test_what_holds_a_named_leaf_is_written_again_also_after_a_restart(journal: Journal) -> None:
    state = State({"list": []})
    base = journal.keep(state, state.base())
    journal.answers[7, 0] = Letter(LONG)
    state.answered(values.encode(Letter(LONG)), (7, 0))
    state.root["list"].append({"by": "somebody with a name", "said": Letter(LONG), "in": LONG})
    again = journal.restored(base, journal.keep(state, state.delta()))

    save = again.base()

    assert 7 in needs(save).rows_without()


def test_small_leaves_and_large_ones_are_not_named(journal: Journal) -> None:
    assert not known.is_worth_naming(values.encode(Message("short")))
    assert known.is_worth_naming(values.encode(Message(LONG)))
    assert not known.is_worth_naming(values.encode(Message("x" * 70_000)))
    state = State({"message": Message("short")})
    journal.keep(state, state.base())
    assert set() == needs(state.base()).rows_without()


def test_a_state_of_an_older_store_names_no_leaf(journal: Journal) -> None:
    state = State({"message": Message(LONG)}, names_leaves=False)
    journal.keep(state, state.base())

    assert set() == needs(state.base()).rows_without()


def test_what_names_leaves_can_be_moved(journal: Journal) -> None:
    state = State({"messages": [Message(LONG + "1"), Letter(LONG + "2")]})
    journal.keep(state, state.base())

    assert {1100} == needs(renumber(state.base(), lambda row: row + 1000)).rows_without()


def test_leaves_that_nobody_holds_any_more_are_forgotten(journal: Journal) -> None:
    state = State({"message": Message(LONG)})
    journal.keep(state, state.base())
    del state.root["message"]
    journal.keep(state, state.base())
    state.root["message"] = Message(LONG)

    assert set() == needs(state.base()).rows_without()
