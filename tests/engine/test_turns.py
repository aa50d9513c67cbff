"""Turns: a restart lands on the interrupted one, on the state at the end of the one before."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import threading
from typing import Any

import pytest

import holdfast
from holdfast.model.journal import TurnEnded
from tests.engine.kit import Crash, Stage, World, moments


def test_a_restart_lands_on_the_interrupted_turn(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(turn: int) -> str:
        return world.ask(f"chat {turn}")

    turns: list[int] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        run.state["said"] = []
        for turn in run.turns():
            turns.append(turn)
            run.state["said"].append(chat(turn))
            if turn == 4:
                return list(run.state["said"])
        raise AssertionError

    for turn in (0, 2, 2, 3):
        world.dies_at = f"chat {turn}"
        stage.die(agent)
    world.dies_at = None
    result = stage.live(agent)

    assert [0, 0, 1, 2, 2, 2, 3, 3, 4] == turns
    assert ["chat 0#2", "chat 1#1", "chat 2#3", "chat 3#2", "chat 4#1"] == result


def test_locals_do_not_survive_a_restart_and_state_does(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(turn: int) -> str:
        return world.ask(f"chat {turn}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> tuple[int, int]:
        count = 0
        run.state["count"] = 0
        for turn in run.turns():
            chat(turn)
            count += 1  # noqa: SIM113 a local, to see it lost
            run.state["count"] += 1
            if turn == 5:
                return count, run.state["count"]
        raise AssertionError

    world.dies_at = "chat 3"
    stage.die(agent)
    world.dies_at = None

    assert (3, 6) == stage.live(agent)


def test_code_before_the_loop_sees_the_initial_state_and_its_containers_are_live(
    stage: Stage, world: World
) -> None:
    seen: list[Any] = []

    @holdfast.step
    def chat(turn: int, messages: list[Any]) -> dict[str, Any]:
        return {"n": turn, "tools": [world.ask(f"chat {turn}")]}

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        messages = run.state.setdefault("messages", [])
        notes = run.state.setdefault("memory", {}).setdefault("notes", {"turns": []})
        run.state["n"] = 0
        seen.append(holdfast.plain(run.state))
        for turn in run.turns():
            assert messages is run.state["messages"]
            assert notes is run.state["memory"]["notes"]
            messages.append(chat(turn, messages))
            notes["turns"].append(turn)
            run.state["n"] += 1
            if turn == 4:
                return holdfast.plain(run.state)
        raise AssertionError

    for turn in (1, 3, 4):
        world.dies_at = f"chat {turn}"
        stage.die(agent)
    world.dies_at = None
    result = stage.live(agent)

    assert [{"messages": [], "memory": {"notes": {"turns": []}}, "n": 0}] * 4 == seen
    assert [0, 1, 2, 3, 4] == result["memory"]["notes"]["turns"]
    assert [0, 1, 2, 3, 4] == [message["n"] for message in result["messages"]]
    assert 5 == result["n"]


def test_a_container_that_lost_its_place_raises_when_it_is_changed(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def chat(turn: int) -> str:
        return world.ask(f"chat {turn}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        draft = run.state.setdefault("draft", {"text": ""})
        for turn in run.turns():
            chat(turn)
            if turn == 0:
                del run.state["draft"]
            else:
                with pytest.raises(holdfast.UsageError, match="no place"):
                    draft["text"] = "lost"
                return "told"
        raise AssertionError

    world.dies_at = "chat 1"
    stage.die(agent)
    world.dies_at = None

    assert "told" == stage.live(agent)


def test_what_was_recorded_before_the_loop_is_replayed_at_every_restart(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def chat(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        first, then = chat("first"), chat("then")
        for turn in run.turns():
            chat(f"turn {turn}")
            if turn == 3:
                return [first, then]
        raise AssertionError

    for what in ("then", "turn 0", "turn 2", "turn 3"):
        world.dies_at = what
        stage.die(agent)
    world.dies_at = None

    assert ["first#1", "then#2"] == stage.live(agent)
    assert ["then", "turn 0", "turn 2", "turn 3"] == world.repeated


@pytest.mark.parametrize("way", ["return", "break"])
def test_leaving_the_loop_does_not_end_the_turn(stage: Stage, world: World, way: str) -> None:
    @holdfast.step
    def chat(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        for turn in run.turns():
            chat(f"turn {turn}")
            run.state["n"] = turn
            if turn == 1:
                if way == "return":
                    return [turn, chat("last")]
                break
        run.state["after"] = chat("after 1")
        return [run.state["n"], run.state["after"], chat("after 2")]

    lasts = ["last"] if way == "return" else ["after 1", "after 2"]
    for what in ("turn 1", *lasts):
        world.dies_at = what
        stage.die(agent)
    world.dies_at = None
    result = stage.live(agent)

    expected = [1, "last#2"] if way == "return" else [1, "after 1#2", "after 2#2"]
    assert expected == result
    assert sorted(["turn 1", *lasts]) == world.repeated
    assert 1 == stage.kinds().count("TurnEnded")


def test_a_turn_without_calls_is_kept_when_time_passes_or_the_run_is_interrupted(
    stage: Stage,
) -> None:
    is_dying = True

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[int]:
        run.state["turns"] = []
        for turn in run.turns():
            if turn == 10 and is_dying:
                raise Crash
            run.state["turns"].append(turn)
            if turn == 12:
                return list(run.state["turns"])
        raise AssertionError

    stage.die(agent)
    is_dying = False

    assert 10 == stage.kinds().count("TurnEnded")
    assert list(range(13)) == stage.live(agent)


def test_a_turns_end_is_committed_after_a_moment_even_if_nothing_follows(stage: Stage) -> None:
    idle = threading.Event()

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        for turn in run.turns():
            run.state["turn"] = turn
            if turn == 1:
                while "TurnEnded" not in stage.kinds():
                    idle.wait(0.02)
                return turn
        raise AssertionError

    assert 1 == stage.live(agent)


def test_it_is_so_too_where_the_store_had_no_run_for_a_while(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.housekeeper.IDLE_TICKS", 0)
    idle = threading.Event()

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        for turn in run.turns():
            if turn == 1:
                while "TurnEnded" not in stage.kinds(run.id):
                    idle.wait(0.02)
                return turn
        raise AssertionError

    with stage.open() as store:
        for number in range(3):
            assert 1 == store.run(agent, id=f"run-{number}")
            while not store._lives._housekeeper._is_asleep:  # noqa: SLF001 there is no other way to see it
                idle.wait(0.02)


def test_a_cadence_marks_every_nth_turn(stage: Stage) -> None:
    @holdfast.agent(checkpoint=holdfast.every(turns=3))
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            if turn == 7:
                return

    stage.live(agent)

    ends = [e for e in stage.journal() if isinstance(e, TurnEnded)]
    assert [2, 5] == [e.turn for e in ends if e.mark is not None]


def test_an_agent_without_turns_is_replayed_from_its_top(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(n: int) -> str:
        return world.ask(f"chat {n}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        for n in range(4):
            run.state.setdefault("said", []).append(chat(n))
        return run.state

    for n in range(4):
        world.dies_at = f"chat {n}"
        stage.die(agent)
    world.dies_at = None

    assert {"said": [f"chat {n}#2" for n in range(4)]} == stage.live(agent)


def test_killed_at_any_crash_point_the_state_is_that_of_an_undisturbed_run(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def chat(turn: int, messages: list[Any]) -> dict[str, Any]:
        world.ask(f"chat {turn}")
        return {"turn": turn, "parts": [{"text": "x" * turn}, len(messages)]}

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        messages = run.state.setdefault("messages", [])
        run.state["seen"] = {}
        for turn in run.turns():
            reply = chat(turn, messages)
            messages.append(reply)
            reply["parts"].append("changed after it was kept")
            run.state["seen"][turn] = reply["parts"][0]
            if turn % 2:
                del messages[0]
            run.checkpoint()
            if turn == 3:
                break
        run.state["end"] = chat(100, messages)
        return run.state

    found = [
        (at.live(agent), asked)
        for _, at, asked in moments(stage, agent, outside=lambda: list(world.asked))
    ]
    expected = stage.live(agent)

    assert 20 < len(found)
    assert all(expected == result for result, _ in found)


def test_the_loop_belongs_to_the_agents_own_code(stage: Stage) -> None:
    @holdfast.agent
    def nested(run: holdfast.Run) -> None:
        for _ in run.turns():
            for _ in run.turns():
                return

    @holdfast.agent
    def kept(run: holdfast.Run) -> None:
        turns = run.turns()
        for _ in turns:
            break
        for _ in run.turns():
            return

    for number, agent in enumerate((nested, kept)):
        error = stage.fault(agent, id=str(number))

        assert isinstance(error, holdfast.UsageError)
        assert "for turn in run.turns()" in str(error)
