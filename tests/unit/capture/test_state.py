import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from holdfast import errors
from holdfast.capture.check import first_difference
from holdfast.capture.state import State
from holdfast.capture.tracked import plain, track

Value: TypeAlias = Any


def no_answer(source: object) -> object:
    raise AssertionError(f"no answer {source} was to be read")


def restored(*saves: bytes | None, answer: Callable[[Any], object] = no_answer) -> State:
    base, *deltas = [data for data in saves if data is not None]
    return State.restore(base, deltas, answer)


def test_a_base_gives_the_whole_state_back() -> None:
    content = {"messages": [{"role": "user"}], "n": 1, 2: (3, "x"), "big": 2**80, "odd": "\ud800"}
    state = State(content)

    found = restored(state.base())

    assert content == plain(found.root)
    assert list(content) == list(found.root)
    assert found.delta() is None


def test_a_turn_without_a_change_has_no_delta() -> None:
    state = State({"a": [1], "s": {1, 2}})
    state.base()

    state.root["a"].append(2)
    state.root["a"].sort()

    assert state.delta() is not None
    assert state.delta() is None


def test_key_order_comes_back_as_python_has_it() -> None:
    state = State({"a": 1, "b": 2, "c": 3})
    base = state.base()

    state.root["d"] = 4
    state.root["a"] = state.root.pop("a")
    state.root["b"] = 5

    assert ["b", "c", "d", "a"] == list(restored(base, state.delta()).root)


def test_a_delta_holds_what_changed_and_not_what_exists() -> None:
    state = State({"messages": ["x" * 1000] * 1000, **{f"k{n}": n for n in range(50)}})
    state.base()

    state.root["messages"].append("new")
    state.root["k7"] = 8
    delta = state.delta()

    assert delta is not None
    assert len(delta) < 40


def test_two_appended_answers_and_two_numbers_are_less_than_100_bytes() -> None:
    state = State({"messages": [{"content": "x"}] * 10_000, "a": 1, "b": 2})
    base = state.base()
    answers = {(70_000 + n, 0): {"message": {"content": str(n) * 1000}} for n in range(2)}

    for source, answer in answers.items():
        state.root["messages"].append(track(answer, source)["message"])
    state.root["a"], state.root["b"] = 3, 4
    delta = state.delta()

    assert delta is not None
    assert len(delta) < 100
    assert first_difference(state.root, restored(base, delta, answer=answers.get).root) is None


@pytest.mark.parametrize(
    "numbers", [[1, -(2**63), 2**64 - 1], [1, 2**64], [-(2**63) - 1], [0.5, None, True], [1, "a"]]
)
def test_numbers_beside_what_needs_care_come_back_as_they_are(numbers: list[Any]) -> None:
    state = State({"numbers": numbers, "beside": "half a character \ud800"})

    copy = restored(state.base())

    assert first_difference(copy.root, state.root) is None
    assert list(map(type, copy.root["numbers"])) == list(map(type, numbers))


def test_a_sort_writes_only_what_moved() -> None:
    state = State({"m": [*range(1000), 2000, 1500, *range(3000, 4000)]})
    state.base()

    state.root["m"].sort()
    delta = state.delta()

    assert delta is not None
    assert len(delta) < 40


def newest_first(items: list[Any]) -> None:
    items.insert(0, "new")
    items.pop()


def both_ends(items: list[Any]) -> None:
    items[3] = "a"
    items[-3] = "b"
    items.append("c")


def many_places(items: list[Any]) -> None:
    for at in range(0, 10_000, 1000):
        items[at] = "other"


@pytest.mark.parametrize("change", [newest_first, both_ends, many_places])
def test_changes_at_both_ends_of_a_long_list_cost_what_changed(
    change: Callable[[list[Any]], None],
) -> None:
    state = State({"m": [f"line {n}" for n in range(10_000)]})
    base = state.base()

    change(state.root["m"])
    delta = state.delta()

    assert delta is not None
    assert len(delta) < 200
    assert first_difference(state.root, restored(base, delta).root) is None


def test_a_kept_part_of_a_list_costs_a_few_bytes_an_item() -> None:
    state = State({"m": [{"content": "x" * 1000, "tags": [n]} for n in range(100)]})
    base = state.base()

    state.root["m"] = state.root["m"][-50:]
    delta = state.delta()

    assert delta is not None
    assert len(delta) < 100
    assert first_difference(state.root, restored(base, delta).root) is None


def test_one_object_at_two_places_stays_one_after_a_restore() -> None:
    state = State({"a": {"n": [1]}})
    base = state.base()
    state.root["b"] = [state.root["a"]]
    first = state.delta()
    state.root["c"] = state.root["new"] = {"leaf": {1}}
    state.root["leaf"] = state.root["c"]["leaf"]

    root = restored(base, first, state.delta()).root

    assert root["a"] is root["b"][0]
    assert root["c"] is root["new"]
    assert root["c"]["leaf"] is root["leaf"]


def test_a_part_that_was_taken_out_and_changed_comes_back_as_it_is() -> None:
    state = State({"a": {"n": [1]}})
    base = state.base()
    kept = state.root.pop("a")
    first = state.delta()
    kept["n"].append(2)
    second = state.delta()
    state.root["again"] = kept

    assert {"again": {"n": [1, 2]}} == restored(base, first, second, state.delta()).root


def test_a_part_that_was_out_during_a_base_comes_back_by_value() -> None:
    state = State({"a": {"n": [1]}, "b": []})
    state.base()
    kept = state.root.pop("a")
    base = state.base()
    kept["n"].append(2)
    state.root["b"].append(kept)

    assert {"b": [{"n": [1, 2]}]} == restored(base, state.delta()).root


def test_a_restored_state_goes_on_where_the_deltas_ended() -> None:
    state = State({"a": [1], "s": {1}})
    base = state.base()
    state.root["b"] = {"x": state.root["a"]}
    first = state.delta()

    again = restored(base, first)
    again.root["b"]["x"].append(2)
    again.root["s"].add(2)
    second = again.delta()

    expected = {"a": [1, 2], "s": {1, 2}, "b": {"x": [1, 2]}}
    assert expected == restored(base, first, second).root


# Answers.


def test_an_answer_is_written_by_its_source_until_it_is_changed() -> None:
    answer = {"choices": [{"message": {"content": "x" * 1000, "tags": ["t"]}}]}
    state = State({"m": []})
    state.base()
    sizes = []

    for change in (
        lambda _: None,
        lambda reply: reply["choices"][0]["message"]["tags"].append("u"),
        lambda reply: reply.update(seen=True),
    ):
        reply = track(answer, (1, 2))
        change(reply)
        state.root["m"].append(reply["choices"][0]["message"])
        sizes.append(len(state.delta() or b""))

    assert sizes[0] < 60
    assert sizes[1] > 1000
    assert sizes[2] < 60


def test_a_change_inside_an_answer_is_seen_by_all_that_hold_it() -> None:
    answers = {(1,): {"a": {"b": {"c": [1]}}}}
    state = State()
    base = state.base()

    reply = track(answers[1,], (1,))
    reply["a"]["b"]["c"].append(2)
    state.root["reply"] = reply

    found = restored(base, state.delta(), answer=answers.get)
    assert {"reply": {"a": {"b": {"c": [1, 2]}}}} == found.root


def test_an_answer_with_a_leaf_that_may_change_is_written_by_value() -> None:
    state = State()
    base = state.base()

    reply = track({"tags": {"x"}, "more": {"n": 1}}, (1,))
    reply["tags"].add("y")
    state.root["reply"] = reply

    assert {"tags": {"x", "y"}, "more": {"n": 1}} == restored(
        base, state.delta(), answer={(1,): {"tags": {"x"}, "more": {"n": 1}}}.get
    ).root["reply"]


def test_an_answer_of_which_a_part_is_saved_already_refers_to_that_part() -> None:
    answers = {(1,): {"a": {"n": 1}, "b": [2]}}
    state = State()
    base = state.base()

    reply = track(answers[1,], (1,))
    state.root["part"] = reply["a"]
    first = state.delta()
    state.root["whole"] = reply
    root = restored(base, first, state.delta(), answer=answers.get).root

    assert root["whole"] == answers[1,]
    assert root["whole"]["a"] is root["part"]


def test_a_base_names_answers_unless_they_are_small() -> None:
    answers = {(1,): {"content": "x" * 100}, (2,): {"n": 1}}
    state = State({"long": track(answers[1,], (1,)), "short": track(answers[2,], (2,))})

    base = state.base()

    del answers[2,]
    assert {"long": {"content": "x" * 100}, "short": {"n": 1}} == restored(
        base, answer=answers.get
    ).root
    assert len(base) < 100


def test_an_answer_that_is_not_what_it_was_is_refused() -> None:
    state = State()
    base = state.base()
    state.root["reply"] = track({"a": {}}, (1,))
    delta = state.delta()

    with pytest.raises(errors.Damaged, match="has 1 containers, not 2"):
        restored(base, delta, answer=lambda _: {"a": 1})


# What cannot be saved.


def test_an_unstorable_value_is_named_and_nothing_is_lost() -> None:
    state = State({"m": [{"k": 1}]})
    base = state.base()
    state.root["n"] = [{"fresh": 1}]
    state.root["m"][0]["tool"] = {"socket": object()}

    for _ in range(2):
        with pytest.raises(errors.NotStorable, match=r'state\["m"\]\[0\]\["tool"\]\["socket"\]'):
            state.delta()
    state.root["m"][0]["tool"] = "none"

    assert {"m": [{"k": 1, "tool": "none"}], "n": [{"fresh": 1}]} == restored(
        base, state.delta()
    ).root


def test_a_failed_base_leaves_the_numbering_as_it_was() -> None:
    state = State({"m": [{"k": 1}]})
    base = state.base()
    state.root["bad"] = object()
    with pytest.raises(errors.NotStorable, match=r'state\["bad"\]: object'):
        state.base()
    del state.root["bad"]
    state.root["m"][0]["k"] = 2

    assert {"m": [{"k": 2}]} == restored(base, state.delta()).root


def test_an_unstorable_value_in_a_part_that_was_taken_out_stops_nothing() -> None:
    state = State({"a": {}, "n": 1})
    base = state.base()
    kept = state.root.pop("a")
    kept["bad"] = object()
    state.root["n"] = 2
    first = state.delta()
    kept["bad"] = "good"
    state.root["a"] = kept

    assert {"n": 2} == restored(base, first).root
    assert {"n": 2, "a": {"bad": "good"}} == restored(base, first, state.delta()).root


@pytest.mark.parametrize("key", [float("nan"), (1, float("nan"))], ids=["NaN", "NaN in a tuple"])
def test_a_key_that_could_not_be_found_again_is_refused(key: object) -> None:
    state = State()
    state.base()
    state.root["d"] = {key: 1}

    with pytest.raises(errors.NotStorable, match="no key that is found again"):
        state.delta()


def test_a_key_that_cannot_be_stored_is_named() -> None:
    state = State({"d": {object(): 1}})

    with pytest.raises(errors.NotStorable, match=r'state\["d"\]\[<object'):
        state.base()


def test_an_object_that_holds_a_part_of_the_state_is_refused() -> None:
    state = State({"a": [1]})
    state.base()
    state.root["pair"] = (state.root["a"], 1)

    with pytest.raises(errors.NotStorable, match=r'state\["pair"\]: tuple: .*holdfast.plain'):
        state.delta()


def close_through_saved_nodes(root: Value) -> None:
    root["a"]["b"]["back"] = root["a"]


def close_through_new_nodes(root: Value) -> None:
    root["new"] = {"x": {}}
    root["new"]["x"]["back"] = [root["new"]]


def close_in_a_plain_list(root: Value) -> None:
    itself: list[Any] = [1]
    itself.append([itself])
    root["list"] = itself


def close_in_an_answer(root: Value) -> None:
    reply = track({"x": {}})
    reply["x"]["back"] = reply
    root["reply"] = reply


def close_through_an_answer(root: Value) -> None:
    reply = track({"x": {}})
    reply["x"]["back"] = root["a"]
    root["a"]["b"]["reply"] = reply


@pytest.mark.parametrize(
    "close",
    [
        close_through_saved_nodes,
        close_through_new_nodes,
        close_in_a_plain_list,
        close_in_an_answer,
        close_through_an_answer,
    ],
)
@pytest.mark.parametrize("is_base", [True, False])
def test_a_container_that_contains_itself_is_refused_with_its_path(
    close: Callable[[Any], None], is_base: bool
) -> None:
    state = State({"a": {"b": {}}})
    state.base()
    close(state.root)

    for _ in range(2):
        with pytest.raises(errors.NotStorable, match=r"^state\[.*contains itself"):
            state.base() if is_base else state.delta()


def test_a_container_may_stand_below_itself_for_a_moment() -> None:
    state = State({"a": {"b": {}}})
    base = state.base()
    a, b = state.root["a"], state.root["a"]["b"]

    b["a"] = a
    state.root["a"] = b
    del a["b"]

    assert {"a": {"a": {}}} == restored(base, state.delta()).root


def test_a_cycle_closed_in_a_part_that_was_taken_out_is_refused_when_it_comes_back() -> None:
    state = State({"a": {"b": {}}, "n": 1})
    base = state.base()
    kept = state.root.pop("a")
    kept["b"]["back"] = kept
    state.root["n"] = 2

    assert {"n": 2} == restored(base, state.delta()).root
    state.root["again"] = [kept]
    with pytest.raises(errors.NotStorable, match="contains itself"):
        state.delta()
    del kept["b"]["back"]
    assert state.delta() is not None


def test_nesting_beyond_the_limit_is_refused() -> None:
    state = State({"deep": {}})
    state.base()
    deep = state.root["deep"]
    for _ in range(150):
        deep["deeper"] = {}
        deep = deep["deeper"]

    with pytest.raises(errors.NotStorable, match="nested deeper than 128"):
        state.delta()


@pytest.mark.parametrize("levels", [129, 500, 50_000])
@pytest.mark.parametrize("kind", [dict, list])
def test_what_is_nested_too_deep_is_refused_where_it_is_put_in(levels: int, kind: type) -> None:
    state = State({"m": [1]})
    deep: Any = kind()
    for _ in range(levels):
        deep = [deep] if kind is list else {"deeper": deep}

    for put in (state.root["m"].append, state.root["m"].extend, state.root.update):
        with pytest.raises(errors.NotStorable, match="nested deeper than 128"):
            put({"deep": deep} if put == state.root.update else [deep])

    assert {"m": [1]} == state.root


def test_damaged_bytes_are_named() -> None:
    state = State({"a": [1]})
    base = state.base()
    state.root["a"].append(2)
    delta = state.delta()
    assert delta is not None

    with pytest.raises(errors.Damaged, match="begins at node 7, where 2 were read"):
        restored(base, delta[:2] + b"\x07" + delta[3:])
    with pytest.raises(errors.Damaged, match="names node 9"):
        restored(base, delta[:3] + b"\x09" + delta[4:])
    with pytest.raises(errors.Damaged, match="more of a list"):
        restored(base, delta[:4] + b"\x05" + delta[5:])
    with pytest.raises(errors.Damaged, match="truncated"):
        restored(base, delta[:-1])
    with pytest.raises(errors.Damaged, match="cannot be read"):
        restored(base, delta[:4] + b"\xc0" + delta[5:])
    with pytest.raises(errors.Damaged, match="no version"):
        restored(b"\x92\x07\x80")
    with pytest.raises(errors.Damaged, match="no base"):
        restored(delta)


# Threads.


def test_changes_from_other_threads_are_never_half_seen() -> None:
    state = State({"lists": [[] for _ in range(4)], "count": {}})
    saves: list[bytes | None] = [state.base()]

    def work(number: int) -> None:
        for n in range(300):
            state.root["lists"][number].append({"n": n})
            with state.lock:
                state.root["count"][number] = n
                state.root["count"][f"same {number}"] = n

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        saves.append(state.delta())
        found = restored(*saves[:50]).root["count"]
        assert all(found.get(n) == found.get(f"same {n}") for n in range(4))
    saves.append(state.delta())

    assert [300] * 4 == [len(items) for items in state.root["lists"]]
    assert first_difference(state.root, restored(*saves).root) is None


# Memory.


def test_what_leaves_the_state_is_let_go_without_the_garbage_collector() -> None:
    state = State({"m": [{"inner": [{}]}, {1, 2}]})
    state.base()
    gone = weakref.ref(state.root["m"][0]["inner"])
    leaf = weakref.ref(state.root["m"][1])
    gc.disable()
    try:
        state.root["m"] = []
        state.delta()

        assert gone() is None
        assert leaf() is None
    finally:
        gc.enable()
