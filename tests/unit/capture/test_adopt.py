import pytest

from holdfast import errors
from holdfast.capture.digest import digest
from holdfast.capture.state import State
from holdfast.capture.tracked import plain, track


def saved(state: State) -> list[bytes]:
    return [state.base()]


def restored(saves: list[bytes]) -> State:
    return State.restore(saves[0], saves[1:], {}.get)


def test_what_was_taken_before_is_live_after() -> None:
    saves = saved(State({"messages": [{"n": 1}], "n": 5}))
    state = State()
    messages = state.root.setdefault("messages", [])
    state.root["n"] = 0

    state.adopt(restored(saves))
    messages.append({"n": 2})
    delta = state.delta()

    assert messages is state.root["messages"]
    assert {"messages": [{"n": 1}, {"n": 2}], "n": 5} == state.root
    assert delta is not None
    assert len(delta) < 20
    assert state.root == restored([*saves, delta]).root


def test_only_the_same_kind_at_the_same_path_keeps_its_identity() -> None:
    state = State({"a": {"x": [1], "y": {}}, "list": [[1], {}]})
    a, x, y = state.root["a"], state.root["a"]["x"], state.root["a"]["y"]
    first, second = state.root["list"]

    state.adopt(restored(saved(State({"list": [[2], [3]], "a": {"x": [4], "y": [5]}}))))

    assert {"list": [[2], [3]], "a": {"x": [4], "y": [5]}} == state.root
    assert ["list", "a"] == list(state.root)
    assert state.root["a"] is a
    assert a["x"] is x
    assert a["y"] is not y
    assert state.root["list"][0] is first
    assert state.root["list"][1] is not second


def test_a_container_without_a_place_raises_when_it_is_changed_or_put_in() -> None:
    state = State({"gone": {"deep": [1]}})
    gone, deep = state.root["gone"], state.root["gone"]["deep"]
    state.adopt(restored(saved(State({"other": 1}))))

    for change in (lambda: gone.update(n=1), deep.clear, lambda: deep.append(2)):
        with pytest.raises(errors.UsageError, match="has no place"):
            change()
    with pytest.raises(errors.UsageError, match="has no place"):
        state.root["again"] = [gone]

    assert {"other": 1} == state.root
    state.root["again"] = plain(gone)
    assert {"other": 1, "again": {"deep": [1]}} == state.root


def test_sharing_comes_with_the_restored_state() -> None:
    shared: list[int] = []
    saves = saved(State({"a": shared, "b": shared, "leaf": {1}}))
    state = State({"a": [], "b": []})
    a = state.root["a"]

    state.adopt(restored(saves))
    state.root["b"].append(1)
    state.root["leaf"].add(2)
    delta = state.delta()

    assert state.root["a"] is state.root["b"] is a
    assert delta is not None
    found = restored([*saves, delta]).root
    assert {"a": [1], "b": [1], "leaf": {1, 2}} == found
    assert found["a"] is found["b"]


def test_nothing_of_the_state_before_is_reported() -> None:
    state = State({"a": [1], "s": {1}})
    state.base()
    state.root["a"].append(2)
    state.root["b"] = object()

    state.adopt(restored(saved(State({"a": []}))))

    assert state.delta() is None


def test_digests_are_those_of_the_new_content() -> None:
    content = {"a": {str(n): [n] for n in range(50)}, "b": [[n] for n in range(50)]}
    state = State({"a": {"0": [7]}, "b": [[1]] * 40})
    digest(state.root)

    state.adopt(restored(saved(State(content))))
    assert digest(content) == digest(state.root)
    state.root["a"]["0"].append(1)
    content["a"]["0"].append(1)  # type: ignore[index]

    assert digest(content) == digest(state.root)


def test_an_answer_whose_part_was_replaced_is_no_longer_named() -> None:
    answers = {(1,): {"message": {"n": 1}}}
    state = State()
    reply = track(answers[1,], (1,))
    state.root["m"] = reply["message"]
    state.adopt(restored(saved(State({"m": {"n": 2}}))))
    del state.root["m"]
    base = state.base()
    state.root["whole"] = reply
    delta = state.delta()

    assert delta is not None
    found = State.restore(base, [delta], answers.get)
    assert {"whole": {"message": {"n": 2}}} == found.root


def test_the_digest_of_a_part_that_was_taken_out_is_right_too() -> None:
    state = State({"a": {"n": 1}, "out": {}})
    out = state.root.pop("out")
    out["a"] = state.root["a"]
    digest(out)

    state.adopt(restored(saved(State({"a": {"n": 2}}))))

    assert digest({"a": {"n": 2}}) == digest(out)


def test_an_object_put_in_before_is_still_watched_if_it_kept_its_place() -> None:
    held, lost = [1], [2]
    state = State({"a": held, "lost": lost})
    state.adopt(restored(saved(State({"a": [5]}))))

    lost.append(1)
    assert state.delta() is None
    held.append(1)
    with pytest.raises(errors.ChangedOutside, match=r'state\["a"\]'):
        state.delta()


def test_the_state_that_was_adopted_is_used_up() -> None:
    other = restored(saved(State({"a": [1]})))
    root = other.root
    State({"a": []}).adopt(other)

    with pytest.raises(errors.UsageError, match="has no place"):
        root["b"] = 1
