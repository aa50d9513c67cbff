"""What a save wrote is named by later saves, as long as it is as it was written."""

# ruff: noqa: ANN401 states hold anything

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import errors
from holdfast.capture.state import State
from holdfast.capture.tracked import track
from holdfast.store.backends.memory import MemoryObjects
from holdfast.store.chain import Hashed
from holdfast.store.chunks import CHUNK_BYTES_MIN, Chunks
from holdfast.store.codec.saved import parts

LONG = "x" * 200


class Journal:
    """Keeps saves in rows of one entry each, and gives them back."""

    def __init__(self, *, aside: Chunks | None = None) -> None:
        self.aside = aside
        self.state = State(aside=aside)
        self.rows: list[Any] = []
        self.begin = 0
        self.base()

    def base(self) -> bytes:
        self.begin = len(self.rows)
        return self._keep(self.state.base())

    def delta(self) -> bytes:
        delta = self.state.delta()
        assert delta is not None
        return self._keep(delta)

    def answer(self, value: Any) -> Any:
        self.rows.append(value)
        return track(value, (len(self.rows) - 1, 0))

    def _keep(self, save: bytes) -> bytes:
        self.rows.append(save)
        self.state.locate((len(self.rows) - 1, 0))
        return save

    def restored(self) -> State:
        at = [n for n in range(self.begin, len(self.rows)) if isinstance(self.rows[n], bytes)]
        return State.restore(
            self.rows[at[0]],
            [self.rows[n] for n in at[1:]],
            lambda place: self.rows[place[0]],
            places=[(n, 0) for n in at],
            aside=self.aside,
        )


def test_a_base_names_what_a_delta_wrote() -> None:
    journal = Journal()
    journal.state.root["m"] = [{"content": LONG + str(n)} for n in range(50)]
    journal.delta()
    journal.state.root["m"].append({"content": "last " + LONG})
    journal.delta()

    base = journal.base()

    assert len(base) < 51 * 5
    assert journal.state.root == journal.restored().root


def test_a_base_names_what_the_delta_right_before_it_wrote() -> None:
    state = State()
    rows: list[bytes] = [state.base()]
    state.locate((7, 0))
    state.root["m"] = [{"content": LONG}]
    rows.append(state.delta() or b"")
    base = state.base(is_beside=True)
    rows.append(base)
    state.locate((7, 1))
    state.locate((7, 2))
    last = state.base()

    for save, at in ((base, (7, 2)), (last, (7, 3))):
        found = State.restore(save, [], lambda place: rows[place[1]], places=[at])
        assert len(save) < 60
        assert {"m": [{"content": LONG}]} == found.root


def test_containers_from_many_rows_cost_a_few_bytes_each() -> None:
    journal = Journal()
    m = journal.state.root.setdefault("m", [])
    for n in range(100):
        m.append({"content": LONG + str(n)})
        m.append(journal.answer({"content": LONG}))
        journal.delta()

    base = journal.base()

    assert len(base) < 200 * 5
    assert journal.state.root == journal.restored().root


@pytest.mark.parametrize(
    "change",
    [
        lambda item: item.update(content="changed"),
        lambda item: item["in"].append(1),
        lambda item: item["in"][0].pop("deep"),
    ],
    ids=["itself", "inside", "deep inside"],
)
def test_what_was_changed_since_is_written_again(change: Callable[[Any], object]) -> None:
    journal = Journal()
    journal.state.root["item"] = {"content": LONG, "in": [{"deep": LONG}]}
    journal.delta()

    change(journal.state.root["item"])
    journal.delta()
    journal.base()

    assert journal.state.root == journal.restored().root


def test_a_change_between_the_save_and_its_place_is_seen() -> None:
    journal = Journal()
    state = journal.state
    state.root["item"] = {"content": LONG, "n": [0]}
    first = state.delta()
    state.root["item"]["n"].append(1)
    second = state.delta()

    for save in (first, second):
        journal.rows.append(save)
        state.locate((len(journal.rows) - 1, 0))
    journal.base()

    assert {"item": {"content": LONG, "n": [0, 1]}} == journal.restored().root


def test_nothing_is_named_by_a_save_that_stands_nowhere() -> None:
    state = State({"item": {"content": LONG}})
    state.base()
    again = state.base()
    state.locate(None)
    state.locate(None)

    assert len(again) > len(LONG)
    assert len(state.base()) > len(LONG)


def test_a_part_that_refers_to_others_is_not_named_but_what_is_in_it_is() -> None:
    journal = Journal()
    root = journal.state.root
    root["a"] = {"content": LONG}
    journal.delta()
    root["b"] = {"also": root["a"], "own": {"content": LONG + "own"}}
    journal.delta()

    base = journal.base()

    found = journal.restored().root
    assert len(base) < 100
    assert root == found
    assert found["b"]["also"] is found["a"]


def test_a_leaf_that_may_change_is_never_part_of_what_is_named() -> None:
    journal = Journal()
    root = journal.state.root
    root["a"] = {"content": LONG, "tags": {"x"}}
    journal.delta()
    root["a"]["tags"].add("y")

    journal.base()

    assert {"a": {"content": LONG, "tags": {"x", "y"}}} == journal.restored().root


def test_what_comes_back_after_a_base_is_named_too() -> None:
    journal = Journal()
    root = journal.state.root
    root["a"] = {"content": LONG}
    journal.delta()
    taken = root.pop("a")
    journal.delta()
    journal.base()

    root["again"] = taken

    assert len(journal.delta()) < 60
    assert {"again": {"content": LONG}} == journal.restored().root


def test_a_restored_state_names_what_it_was_restored_from() -> None:
    journal = Journal()
    root = journal.state.root
    root["m"] = [{"content": LONG, "in": [LONG, {"n": 1}]}, journal.answer({"choices": [LONG]})]
    root["part"] = journal.answer({"choices": [{"content": LONG}]})["choices"][0]
    journal.delta()
    journal.base()
    root["m"].append({"content": LONG})
    journal.delta()

    early = State({"m": []})
    early.adopt(journal.restored())
    journal.state = early
    base = journal.base()

    assert len(base) < 120
    assert root == journal.restored().root


def test_an_ordinal_that_names_no_container_is_damage() -> None:
    journal = Journal()
    journal.state.root["m"] = [{"content": LONG}]
    journal.delta()
    journal.base()
    journal.rows[1] = journal.rows[0]

    with pytest.raises(errors.Damaged):
        journal.restored()


def test_parts_are_counted_as_the_save_counted_them() -> None:
    journal = Journal()
    root = journal.state.root
    root["m"] = [{1: [2]}, journal.answer({"a": {}}), {"s": {3}}, {"t": (1,)}]
    written = parts(journal.delta())

    # The list, the dict with a number for a key, the list in it; the answer with two containers;
    # the dict with the set, the set; the last dict.
    assert 8 == len(written)
    assert [3, 4, 6] == [n for n, part in enumerate(written) if part is None]


# Large leaves.


def large(of: str) -> str:
    return of * CHUNK_BYTES_MIN


@pytest.mark.parametrize(
    "leaf",
    [large("a"), large("ä"), large("b").encode(), (large("c"), 1), bytearray(100_000)],
    ids=["text", "long characters", "bytes", "tuple", "changeable"],
)
def test_a_large_leaf_is_put_aside_and_comes_back(leaf: object) -> None:
    objects = MemoryObjects()
    journal = Journal(aside=Chunks(objects, Hashed(bytes(16))))

    journal.state.root["deep"] = {"leaf": leaf, 1: ["small"]}
    delta = journal.delta()
    again = State.restore(*[journal.rows[0], [delta], lambda _: None], aside=journal.aside)
    base = journal.base()

    assert len(delta) < 200
    assert len(base) < 200
    assert 1 == len(list(objects.ids()))
    assert type(leaf) is type(again.root["deep"]["leaf"])
    assert journal.state.root == again.root == journal.restored().root


def test_many_small_leaves_stay_where_they_are() -> None:
    objects = MemoryObjects()
    journal = Journal(aside=Chunks(objects, Hashed(bytes(16))))

    journal.state.root["m"] = ["x" * 1000 + str(n) for n in range(100)]

    assert len(journal.delta()) > CHUNK_BYTES_MIN
    assert [] == list(objects.ids())


def test_the_checking_mode_reads_what_was_put_aside() -> None:
    state = State(check=True, aside=Chunks(MemoryObjects(), Hashed(bytes(16))))
    state.base()
    state.root["leaf"] = large("a")

    assert len(state.delta() or b"") < 100
    assert state.delta() is None
