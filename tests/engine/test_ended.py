"""The state of a run that has ended can be read, and refuses changes that nothing would save."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from tests.engine.kit import Crash, Stage

CONTENT = {"items": [{"n": 1}, 2], "facts": {"k": [3]}}
CHANGES: dict[str, Callable[[Any], object]] = {
    "append": lambda state: state["items"].append(1),
    "extend": lambda state: state["items"].extend([1]),
    "sort": lambda state: state["items"].sort(key=str),
    "del": lambda state: state["items"].__delitem__(0),
    "deep": lambda state: state["items"][0].update(n=2),
    "setdefault": lambda state: state.setdefault("new", []),
    "|=": lambda state: state["facts"].__ior__({"k": 4}),
    "clear": lambda state: state.clear(),
}


def ended(stage: Stage, how: str) -> Any:  # noqa: ANN401 a state
    """The state of a run that returned, raised or was called off."""
    kept: list[Any] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        run.state.update(copy.deepcopy(CONTENT))
        kept.append(run.state)
        for turn in run.turns():
            if turn == 1 and how == "raised":
                raise ValueError
            if turn == 1 and how == "called off":
                raise Crash
            if turn == 2:
                return

    try:
        stage.live(agent)
    except (holdfast.RunFailed, ValueError, Crash):
        assert how != "returned"
    return kept[0]


@pytest.mark.parametrize("how", ["returned", "raised", "called off"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_after_the_end_is_refused(stage: Stage, how: str, change: str) -> None:
    state = ended(stage, how)

    with pytest.raises(holdfast.UsageError, match=r"run-1 has ended here.*holdfast\.plain"):
        CHANGES[change](state)

    assert state == CONTENT


def test_what_has_ended_can_be_read_and_copied(stage: Stage) -> None:
    state = ended(stage, "returned")

    assert CONTENT == json.loads(json.dumps(state)) == copy.deepcopy(state)
    mine = holdfast.plain(state)
    mine["items"].append(3)

    assert [{"n": 1}, 2] == state["items"]
    assert [{"n": 1}, 2, 3] == mine["items"] == state["items"] + [3]


def test_an_ended_state_is_an_argument_like_any_other(stage: Stage) -> None:
    state = ended(stage, "returned")

    @holdfast.step
    def count(values: dict[str, Any]) -> int:
        return len(values)

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:  # noqa: ARG001 it needs none of it
        return count(state)

    assert 2 == stage.live(agent, id="other")
