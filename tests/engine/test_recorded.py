"""Clock, chance, new ids, undecorated calls and checkpoints: recorded, and the same on a replay."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import datetime as dt
import json
import random
from typing import Any

import pytest

import holdfast
from holdfast.model.journal import Saved
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Crash, Stage, World, moments


def test_readings_are_the_same_on_a_replay_and_fresh_otherwise(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(text: str) -> str:
        return world.ask(text)

    seen: list[list[Any]] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        read = [run.now(), run.uuid(), run.uuid(), run.random(), run.random.randint(0, 10**9)]
        seen.append(read)
        chat(str(read))
        if len(seen) == 1:
            raise Crash
        return [*read, run.now(), run.uuid(), run.random()]

    stage.die(agent)
    result = stage.live(agent)

    assert seen[0] == seen[1] == result[:5]
    assert 1 == len(world.asked)
    assert seen[0][1] != seen[0][2]
    assert dt.UTC == seen[0][0].tzinfo
    other = stage.live(agent, id="other")
    assert set(map(repr, result[:5])).isdisjoint(map(repr, other[:5]))


def test_readings_in_a_turn_are_the_same_when_the_turn_is_replayed(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def chat(turn: int, numbers: list[float]) -> str:
        return world.ask(f"chat {turn}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[float]:
        run.state["all"] = []
        before = run.random.random()
        for turn in run.turns():
            numbers = [run.random.random() for _ in range(3)]
            chat(turn, [before, *numbers])
            if world.dies_at == f"after {turn}":
                raise Crash
            run.state["all"].extend(numbers)
            if turn == 2:
                break
        return [*run.state["all"], run.random.random()]

    for turn in range(3):
        world.dies_at = f"after {turn}"
        stage.die(agent)
    world.dies_at = None
    result = stage.live(agent)

    assert ["chat 0", "chat 1", "chat 2"] == world.asked
    assert 10 == len(set(result))


def test_chance_and_clock_come_in_from_outside(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        return [run.now(), run.uuid(), run.random()]

    def live(name: str, seed: int) -> list[Any]:
        path, chance = stage.path / name, random.Random(seed)  # noqa: S311 it is to repeat
        with holdfast.open(path, clock=ManualClock(now=1_000.0), chance=chance) as store:
            return store.run(agent, id="a")

    one, again, other = live("a", 1), live("b", 1), live("c", 2)

    assert one == again
    assert one[1:] != other[1:]
    assert dt.datetime(1970, 1, 1, 0, 16, 40, tzinfo=dt.UTC) == one[0]


def test_a_clock_that_is_set_back_breaks_nothing(stage: Stage, world: World) -> None:
    clock = ManualClock()
    stage.clock = clock

    @holdfast.step
    def chat(turn: int) -> str:
        clock.set(clock.now() - 86_400)
        return world.ask(f"chat {turn}")

    @holdfast.effect
    def pay(turn: int) -> str:
        clock.set(clock.now() - 86_400)
        return world.ask(f"pay {turn}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        run.state["said"] = []
        times = [run.now()]
        for turn in run.turns():
            run.state["said"] += [chat(turn), pay(turn)]
            times.append(run.now())
            if turn == 3:
                return list(run.state["said"])
            if turn == 2 and world.dies_at:
                raise Crash
        raise AssertionError

    world.dies_at = "somewhere"
    stage.die(agent)
    world.dies_at = None
    clock.set(0.0)
    result = stage.live(agent)

    assert [f"{what} {turn}#1" for turn in range(4) for what in ("chat", "pay")] == result
    assert result == stage.live(agent)
    info = stage.info()
    assert holdfast.Status.FINISHED is info.status
    assert info.ended is not None
    assert info.ended < info.created


def test_readings_belong_to_the_agents_own_code(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        def inside(what: str) -> None:
            if what == "now":
                run.now()
            elif what == "uuid":
                run.uuid()
            elif what == "random":
                run.random()
            else:
                run.checkpoint()

        said = []
        for what in ("now", "uuid", "random", "checkpoint"):
            with pytest.raises(holdfast.NestedCall) as caught:
                run.call(inside, what)
            said.append(str(caught.value))
        return said

    said = stage.live(agent)

    for name, text in zip(("now", "uuid", "random", "checkpoint"), said, strict=True):
        assert f"run.{name}" in text
        assert "inside" in text


def test_an_undecorated_function_is_recorded_as_a_step(stage: Stage, world: World) -> None:
    def search(text: str, *, limit: int = 3) -> list[str]:
        return [world.ask(text)] * limit

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        found = [run.call(search, "kelp", limit=2), run.call(len, "four")]
        if world.dies_at:
            raise Crash
        return found

    world.dies_at = "later"
    stage.die(agent)
    world.dies_at = None

    assert [["kelp#1", "kelp#1"], 4] == stage.live(agent)
    assert ["kelp"] == world.asked


def test_a_checkpoint_makes_what_came_before_durable(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        run.state["n"] = [1]
        drawn = run.uuid()
        run.checkpoint(label="half way")
        run.state["n"].append(2)
        run.checkpoint()
        return [drawn, holdfast.plain(run.state)]

    lives = {name: at.live(agent) for name, at, _ in moments(stage, agent, outside=lambda: None)}
    result = stage.live(agent)

    saved = [e for e in stage.journal() if isinstance(e, Saved)]
    assert ["half way", None] == [e.mark.label for e in saved]
    with stage.open() as store:
        points = store.checkpoints(RUN)
        assert [{"n": [1]}, {"n": [1, 2]}] == [store.restore(each.id)[1] for each in points]
    assert result == lives["checkpoint.saved"]
    assert all({"n": [1, 2]} == state for _, state in lives.values())


def test_plain_gives_ordinary_containers_all_the_way_down(stage: Stage) -> None:
    @holdfast.step
    def chat() -> dict[str, Any]:
        return {"content": [{"type": "text"}]}

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        run.state["m"] = [{"a": [1, (2, [3])]}]
        run.state["m"].append(chat())
        plain = holdfast.plain(run.state["m"])
        plain[0]["a"].append("not in the state")
        kinds = [plain, plain[0], plain[0]["a"], plain[1], plain[1]["content"][0], chat()]
        assert [{"a": [1, (2, [3])]}, {"content": [{"type": "text"}]}] == run.state["m"]
        assert json.dumps(run.state["m"][1]) == json.dumps(holdfast.plain(run.state["m"][1]))
        return [type(each).__name__ for each in kinds]

    *kinds, answer = stage.live(agent)

    assert ["list", "dict", "list", "dict", "dict"] == kinds
    assert "dict" != answer


def test_current_says_which_run_turn_and_call_this_is(stage: Stage) -> None:
    def where() -> tuple[Any, ...]:
        here = holdfast.current()
        return here.run_id, here.turn, here.function, here.idempotency_key is not None

    @holdfast.step
    def chat() -> tuple[Any, ...]:
        return where()

    @holdfast.effect
    def pay() -> tuple[Any, ...]:
        return where()

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        seen = [where()]
        for _ in run.turns():
            return [*seen, where(), chat(), pay()]
        raise AssertionError

    before, inside, step, effect = stage.live(agent, id="r")

    assert ("r", None, None, False) == before
    assert ("r", 0, None, False) == inside
    assert ("r", 0, chat.__qualname__, False) == step  # type: ignore[attr-defined]
    assert ("r", 0, pay.__qualname__, True) == effect  # type: ignore[attr-defined]
    with pytest.raises(holdfast.UsageError, match="outside a run"):
        holdfast.current()
