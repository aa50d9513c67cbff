"""Invariants of the state: nothing that fails one is published, and none is gone on from."""
# ruff: noqa: ANN401 agents here return whatever the test looks at

import shutil
from typing import Any

import pydantic
import pytest

import holdfast
from holdfast.model.journal import Redone, TurnEnded
from tests.engine.kit import RUN, Crash, Stage, World, reaching


@holdfast.validate
def is_solvent(state: dict[str, Any]) -> bool:
    return bool(state["cash"] >= 0)


@holdfast.validate(section="book")
def adds_up(book: dict[str, int]) -> None:
    assert sum(book.values()) == 0, f"it is off by {sum(book.values())}"


class Ledger(pydantic.BaseModel):
    cash: int = pydantic.Field(ge=0)
    book: dict[str, int] = {}


def changes(state: dict[str, Any]) -> None:
    state["cash"] = 1


CHECKS: dict[str, tuple[Any, str, str]] = {
    "a function that says no": (is_solvent, "is_solvent", "it returned False"),
    "a function that raises": (adds_up, "adds_up", "AssertionError: it is off by 2"),
    "a schema": (Ledger, "Ledger", "cash: Input should be greater than or equal to 0"),
    "a plain function": (lambda state: state["cash"] >= 0, "<lambda>", "it returned False"),
}


def spending(check: Any, world: World, **options: Any) -> holdfast.Agent[..., Any]:
    """An agent whose state is wrong at the end of turn 2, until it is fixed."""

    @holdfast.agent(validate=[check], **options)
    def agent(run: holdfast.Run) -> Any:
        run.state.update(cash=10, book={"a": 1, "b": -1})
        for turn in run.turns():
            run.call(world.ask, f"ask {turn}")
            run.state["turn"] = turn
            if turn == 2 and not world.dies_at:
                run.state["cash"] = -1
                run.state["book"]["a"] = 3
            if turn == 4:
                return "done"
        raise AssertionError

    return agent


@pytest.mark.parametrize("case", CHECKS)
def test_a_turn_that_ends_with_an_invalid_state_is_not_published(
    stage: Stage, world: World, case: str
) -> None:
    check, name, why = CHECKS[case]
    agent = spending(check, world)

    error = stage.fault(agent)

    assert isinstance(error, holdfast.InvalidState)
    assert (RUN, "at the end of turn 2") == (error.run, error.when)
    assert name in error.validator
    assert error.why.startswith(why)
    assert [0, 1] == [entry.turn for entry in stage.journal() if isinstance(entry, TurnEnded)]
    assert holdfast.Status.FAILED is stage.info().status

    world.dies_at = "fixed"
    assert "done" == stage.restart(agent)
    assert [] == world.repeated


def test_with_a_cadence_the_checkpoints_are_checked(stage: Stage, world: World) -> None:
    error = stage.fault(spending(is_solvent, world, checkpoint=holdfast.every(turns=5)))

    assert isinstance(error, holdfast.InvalidState)
    assert "at the end of the run" == error.when


def test_an_invalid_checkpoint_is_refused_and_the_agent_may_mend_the_state(stage: Stage) -> None:
    @holdfast.agent(validate=is_solvent)
    def agent(run: holdfast.Run) -> Any:
        run.state["cash"] = -5
        try:
            run.checkpoint("bad")
        except holdfast.InvalidState as error:
            assert "at run.checkpoint" == error.when  # noqa: PT017 the agent catches it
            run.state["cash"] = 5
        return run.checkpoint("good")

    point = stage.live(agent)

    with stage.open() as store:
        assert ["good"] == [each.label for each in store.checkpoints(RUN)]
        assert {"cash": 5} == store.restore(point)[1]


def test_a_validator_that_changes_the_state_is_an_error_of_its_own(
    stage: Stage, world: World
) -> None:
    error = stage.fault(spending(changes, world))

    assert isinstance(error, holdfast.ChangedInCall)
    assert "changes" in error.function


async def asynchronous(state: Any) -> None: ...


@pytest.mark.parametrize("wrong", [dict, 7, [7], asynchronous])
def test_what_cannot_be_a_validator_is_refused_where_it_is_declared(wrong: Any) -> None:
    with pytest.raises(holdfast.UsageError, match="validator"):
        holdfast.agent(validate=wrong)(lambda _: None)


def growing(world: World, check: Any, **options: Any) -> holdfast.Agent[..., Any]:
    @holdfast.effect
    def pay(turn: int) -> str:
        return world.ask(f"pay {turn}")

    @holdfast.agent(validate=check, **options)
    def agent(run: holdfast.Run) -> Any:
        run.state["seen"] = []
        for turn in run.turns():
            run.state["seen"].append(run.call(world.ask, f"ask {turn}"))
            if turn == PAYS:
                pay(turn)
            if turn == 4:
                return list(run.state["seen"])
        raise AssertionError

    return agent


PAYS = -1


def stricter(length: int, times: int) -> Any:
    """Refuses states longer than `length`, until it has done so `times` times."""
    left = [times]

    def is_short(state: dict[str, Any]) -> bool:
        if len(state["seen"]) <= length or left[0] <= 0:
            return True
        left[0] -= 1
        return False

    return holdfast.validate(is_short)


def test_a_restored_state_that_fails_goes_back_to_the_newest_that_passes(
    stage: Stage, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.dies_at = "ask 4"
    stage.die(growing(world, []))
    world.dies_at = None

    # Turns 3 and 2 fail, turn 1 passes; what follows is not refused any more.
    result = stage.live(growing(world, stricter(2, times=2)))

    assert ["ask 0#1", "ask 1#1", "ask 2#2", "ask 3#2", "ask 4#2"] == result
    assert ["ask 2", "ask 3", "ask 4"] == world.repeated
    [redone] = [entry for entry in stage.journal() if isinstance(entry, Redone)]
    assert "is_short" in (redone.reason or "")
    assert "goes back to the end of turn 1" in (redone.reason or "")
    assert "goes back to the end of turn 1" in caplog.text
    with stage.open() as store:
        assert 4 == len(store.restore(f"{RUN}@3")[1]["seen"])


def test_with_checkpoints_it_goes_back_to_one_of_those(stage: Stage, world: World) -> None:
    every = holdfast.every(turns=2)
    world.dies_at = "ask 4"
    stage.die(growing(world, [], checkpoint=every))
    world.dies_at = None

    result = stage.live(growing(world, stricter(3, times=1), checkpoint=every))

    assert ["ask 0#1", "ask 1#1", "ask 2#2", "ask 3#2", "ask 4#2"] == result


def test_where_no_point_passes_the_restart_stops(stage: Stage, world: World) -> None:
    world.dies_at = "ask 2"
    stage.die(growing(world, []))
    world.dies_at = None

    error = stage.fault(growing(world, stricter(0, times=99)))

    assert isinstance(error, holdfast.InvalidState)
    assert "no point before it passes" in error.why
    assert [] == [entry for entry in stage.journal() if isinstance(entry, Redone)]


def test_it_does_not_go_back_past_an_effect_by_itself(
    stage: Stage, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.engine.test_validate.PAYS", 2)
    world.dies_at = "ask 4"
    stage.die(growing(world, []))
    world.dies_at = None

    error = stage.fault(growing(world, stricter(2, times=99)))

    assert isinstance(error, holdfast.InvalidState)
    assert "turn 1 passes, but effects or questions stand after it" in error.why
    assert 1 == world.asked.count("pay 2")


def is_clean(state: dict[str, Any]) -> bool:
    return "ask 2#1" not in state["seen"]


def test_killed_anywhere_on_the_way_back_it_comes_to_the_same_end(
    stage: Stage, world: World
) -> None:
    world.dies_at = "ask 4"
    stage.die(growing(world, []))
    world.dies_at = None
    left: list[tuple[str, Stage]] = []

    def photograph(name: str) -> None:
        copy = stage.path.with_name(f"{len(left):03d}-{name}")
        shutil.copytree(stage.path, copy)
        left.append((name, Stage(copy)))

    with reaching(photograph):
        stage.live(growing(world, is_clean))

    assert {"run.branching", "run.branched"} <= {name for name, _ in left}
    for name, at in left:
        seen = at.live(growing(world, is_clean))
        assert (name, 5) == (name, len(seen))
        assert ["ask 0#1", "ask 1#1"] == seen[:2]
        assert "ask 2#1" not in seen


def test_an_async_run_goes_back_too(stage: Stage, world: World) -> None:
    check: list[Any] = []

    def agent() -> Any:
        @holdfast.agent(validate=check)
        async def walker(run: holdfast.Run) -> Any:
            run.state["seen"] = []
            async for turn in run.turns():
                run.state["seen"].append(run.call(world.ask, f"ask {turn}"))
                if turn == 2:
                    return list(run.state["seen"])
            raise AssertionError

        return walker

    world.dies_at = "ask 2"
    with pytest.raises(Crash):
        stage.live(agent())
    world.dies_at = None
    check.append(stricter(1, times=1))

    assert ["ask 0#1", "ask 1#2", "ask 2#2"] == stage.live(agent())
