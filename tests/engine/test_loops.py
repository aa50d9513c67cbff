"""Several loops in one agent: a restart in any phase skips what is over and redoes nothing."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from tests.engine.kit import Crash, Stage, World, moments

PHASES = [
    "plan",
    *(f"research {n}" for n in range(3)),
    "outline",
    "style",
    *(f"write {n}" for n in range(3)),
    "review",
    *(f"polish {n}" for n in range(2)),
    "publish",
]


def author(world: World, size: int = 3) -> holdfast.Agent[[], Any]:  # noqa: C901 as below
    """An agent of three loops with steps before, between and after them."""
    words = random.Random(7)  # noqa: S311 the same text each time, hard to compress
    texts = {phase: words.randbytes(size).hex() for phase in PHASES}

    @holdfast.step
    def ask(what: str) -> dict[str, Any]:
        world.ask(what)
        return {"what": what, "text": texts[what]}

    def polish(run: holdfast.Run) -> Iterator[int]:
        for _ in run.turns():
            n = run.state["polished"] = run.state.get("polished", -1) + 1
            yield n
            if n == 1:
                return

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        state = run.state
        log = state.setdefault("log", [])
        log.append(ask("plan"))
        for _ in run.turns():
            n = state["n"] = state.get("n", -1) + 1
            log.append(ask(f"research {n}"))
            if n == 2:
                break
        assert 4 == len(log)
        log += [ask("outline"), ask("style")]
        state["left"] = 3
        for _ in run.turns():
            log.append(ask(f"write {3 - state['left']}"))
            state["left"] -= 1
            if not state["left"]:
                break
        assert 9 == len(log)
        assert 0 == state["left"]
        log.append(ask("review"))
        for n in polish(run):
            log.append(ask(f"polish {n}"))
        log.append(ask("publish"))
        return [[entry["what"] for entry in log], [entry["text"] for entry in log]]

    return agent


@pytest.mark.parametrize("phase", PHASES)
def test_a_restart_in_any_phase_asks_only_what_was_cut_off(
    stage: Stage, world: World, phase: str
) -> None:
    agent = author(world)
    world.dies_at = phase
    stage.die(agent)
    world.dies_at = None

    whats, _ = stage.live(agent)

    assert PHASES == whats
    assert [phase] == world.repeated
    assert len(PHASES) + 1 == len(world.asked)


@pytest.mark.parametrize("size", [3, 6_000, 12_000, 25_000])
def test_killed_before_every_call_in_turn_it_still_comes_to_its_end(
    stage: Stage, world: World, size: int
) -> None:
    agent = author(world, size)
    for phase in PHASES:
        world.dies_at = phase
        stage.die(agent)
    world.dies_at = None

    whats, texts = stage.live(agent)

    assert PHASES == whats
    assert [2 * size] * len(PHASES) == [len(text) for text in texts]
    assert PHASES == sorted(set(world.asked), key=PHASES.index)
    assert 2 * len(PHASES) == len(world.asked)


@pytest.mark.parametrize("size", [3, 9_000])
def test_killed_at_any_crash_point_of_any_loop_it_comes_to_the_same_end(
    stage: Stage, world: World, size: int
) -> None:
    agent = author(world, size)
    taken = list(moments(stage, agent, outside=lambda: list(world.asked)))
    expected = stage.live(agent)

    for _, at, asked in taken:
        world.asked = asked
        assert expected == at.live(agent)
        assert len(world.repeated) <= 1


def test_an_error_that_leaves_a_loop_inside_a_helper_leaves_that_loop(
    stage: Stage, world: World
) -> None:
    class Enough(Exception):
        """The phase is over."""

    @holdfast.step
    def ask(what: str) -> str:
        return world.ask(what)

    def phase(run: holdfast.Run, name: str) -> None:
        for _ in run.turns():
            run.state[name] = run.state.get(name, 0) + 1
            ask(f"{name} {run.state[name]}")
            if run.state[name] == 2:
                raise Enough

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        caught: list[Exception] = []
        for name in ("a", "b"):
            try:
                phase(run, name)
            except Enough as enough:
                caught.append(enough)
            ask(f"after {name}")
        return run.state

    for what in ("a 2", "after a", "b 1", "b 2", "after b"):
        world.dies_at = what
        stage.die(agent)
    world.dies_at = None

    assert {"a": 2, "b": 2} == stage.live(agent)
    assert ["a 2", "after a", "after b", "b 1", "b 2"] == world.repeated
    assert 6 + 5 == len(world.asked)


def test_what_a_failed_life_did_to_the_state_in_its_open_turn_is_void(
    stage: Stage, world: World
) -> None:
    life = 0

    @holdfast.step
    def ask(turn: int) -> str:
        if life == 0:
            raise ValueError
        return world.ask(f"ask {turn}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        for turn in run.turns():
            if life == 0:
                run.state["junk"] = [{"of": "the failed life"}]
            run.state.setdefault("good", []).append({"turn": turn})
            ask(turn)
            if turn == 3:
                return run.state
        raise AssertionError

    stage.fault(agent)
    life, world.dies_at = 1, "ask 2"
    with pytest.raises(Crash):
        stage.restart(agent)
    world.dies_at = None

    assert {"good": [{"turn": turn} for turn in range(4)]} == stage.live(agent)
