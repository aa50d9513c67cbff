"""Checking mode: what C code does to the state around its methods is an error, not a loss."""
# ruff: noqa: ANN401 agents here return whatever the test looks at

import heapq
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.engine.kit import RUN, Crash, World, text

BYPASSES: dict[str, Callable[[Any], object]] = {
    "heapq": lambda state: heapq.heappush(state["queue"], 0),
    "list.append": lambda state: list.append(state["queue"], 7),
    "dict.update": lambda state: dict.update(state["facts"], a=2),
    "list.append into an answer": lambda state: list.append(state["answer"]["parts"], 1),
}


def agent_with(bypass: Callable[[Any], object], world: World, when: int) -> Any:
    @holdfast.step
    def chat(turn: int) -> dict[str, Any]:
        return {"content": world.ask(f"chat {turn}"), "parts": [{"n": turn}]}

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        run.state.update(queue=[1, 2], facts={"a": 1})
        for turn in run.turns():
            run.state["answer"] = chat(turn)
            if turn == when:
                bypass(run.state)
            else:
                run.state["queue"].append(10 + turn)
            if turn == 4:
                return "done"
        raise AssertionError

    return agent


@pytest.mark.parametrize("bypass", BYPASSES)
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_bypass_is_found_at_the_end_of_its_turn(
    tmp_path: Path, world: World, bypass: str, *, is_restarted: bool
) -> None:
    agent = agent_with(BYPASSES[bypass], world, when=2)
    if is_restarted:
        world.dies_at = "chat 1"
        with holdfast.open(tmp_path, check=True) as store, pytest.raises(Crash):
            store.run(agent, id=RUN)
        world.dies_at = None

    with holdfast.open(tmp_path, check=True) as store:
        with pytest.raises(holdfast.ChangedOutside, match="around its methods") as refused:
            store.run(agent, id=RUN)
        assert 1 == store.restore(RUN)[0].turn
    assert refused.value.path.startswith('state["')


def test_the_variable_turns_checking_on_for_programs_that_open_their_store_themselves(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_with(BYPASSES["heapq"], world, when=2)
    with holdfast.open(tmp_path / "without") as store:
        assert "done" == store.run(agent)  # Not seen: this is what the check is for.

    monkeypatch.setenv("HOLDFAST_CHECK", "1")
    with (
        holdfast.open(tmp_path / "with") as store,
        pytest.raises(holdfast.ChangedOutside, match=r'state\["queue"\]'),
    ):
        store.run(agent)


def test_an_agent_that_does_no_such_thing_runs_checked_through_crashes_and_bases(
    tmp_path: Path, world: World
) -> None:
    @holdfast.step
    def chat(turn: int) -> dict[str, Any]:
        world.ask(f"chat {turn}")
        return {"content": text(turn, 3000), "parts": [{"n": turn}]}

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        run.state["messages"] = []
        for turn in run.turns():
            messages = run.state["messages"]
            messages.append({"role": "user", "content": text(("user", turn), 3000)})
            messages.append(chat(turn))
            if turn % 7 == 0:
                run.checkpoint()
                run.state["messages"] = messages[-9:]
            if turn == 40:
                return len(run.state["messages"])
        raise AssertionError

    for turn in (3, 20, 39):
        world.dies_at = f"chat {turn}"
        with holdfast.open(tmp_path, check=True) as store, pytest.raises(Crash):
            store.run(agent, id=RUN)
    world.dies_at = None

    with holdfast.open(tmp_path, check=True) as store:
        assert 19 == store.run(agent, id=RUN)
