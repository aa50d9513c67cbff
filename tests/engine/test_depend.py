"""Effects are taken back in the order in which they stand on each other."""
# ruff: noqa: ARG001 handlers take what they are given

from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from tests.engine.kit import RUN, Stage

log: list[str] = []
fails: set[str] = set()
calls: list[Callable[[], Any]] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    for each in (log, fails, calls):
        each.clear()


def undo(name: str) -> Callable[..., None]:
    def handler(outcome: object, customer: str) -> None:
        if name in fails:
            raise holdfast.NotDone(f"{name} cannot be undone now")
        log.append(f"undo {name} {customer}")

    return handler


@holdfast.effect(undo=undo("account"), key="customer")
def account(customer: str) -> str:
    return customer


@holdfast.effect(undo=undo("order"), key="customer", after=account)
def order(customer: str) -> str:
    return customer


@holdfast.effect(undo=undo("ship"), key="customer", after=["order", f"{__name__}:charge"])
def ship(customer: str) -> str:
    return customer


@holdfast.effect(undo=undo("charge"), key="customer")
def charge(customer: str) -> str:
    return customer


@holdfast.effect(key="customer", after=account)
def greet(customer: str) -> str:
    return customer


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def clerk(run: holdfast.Run) -> int:
    for turn in run.turns():
        for call in calls if turn == 1 else ():
            call()
        if turn == 2:
            return turn
    raise AssertionError


def roll_back(stage: Stage) -> dict[str, str]:
    with stage.open() as store:
        done = store.plan_rollback(RUN, to=0).apply()
    return {each.effect.split("(")[0]: each.how for each in done.effects}


def test_what_stands_on_another_is_taken_back_before_it_whenever_it_was_done(stage: Stage) -> None:
    calls[:] = [
        lambda: account("ann"),
        lambda: order("ann"),
        lambda: ship("ann"),
        lambda: charge("ann"),
    ]
    stage.live(clerk)

    with stage.open() as store:
        plan = store.plan_rollback(RUN, to=0)
        text = str(plan)
    roll_back(stage)

    assert ["ship", "charge", "order", "account"] == [e.effect.split("(")[0] for e in plan.effects]
    assert "charge(customer='ann')" in text
    assert "will be undone, after ship(customer='ann'), which stands on it" in text
    assert [f"undo {name} ann" for name in ("ship", "charge", "order", "account")] == log


def test_an_effect_stays_while_one_stands_on_it_whose_undo_failed(stage: Stage) -> None:
    calls[:] = [lambda: account("ann"), lambda: order("ann"), lambda: charge("ann")]
    stage.live(clerk)
    fails.add("order")

    with stage.open() as store:
        done = store.plan_rollback(RUN, to=0).apply()

    hows = {each.effect.split("(")[0]: (each.how, each.why) for each in done.effects}
    assert "undone" == hows["charge"][0]
    assert "impossible" == hows["order"][0]
    assert "impossible" == hows["account"][0]
    assert "an effect stands on it and could not be taken back" in hows["account"][1]
    assert ["undo charge ann"] == log


def test_an_effect_stays_from_the_start_where_one_stands_on_it_that_cannot_be_undone(
    stage: Stage,
) -> None:
    calls[:] = [lambda: account("ann"), lambda: greet("ann")]
    stage.live(clerk)

    with stage.open() as store:
        plan = store.plan_rollback(RUN, to=0)

    assert ["impossible", "impossible"] == [each.how for each in plan.effects]
    assert "greet(customer='ann') stands on it and stays" == plan.effects[1].why


def test_effects_about_different_things_do_not_stand_on_each_other(stage: Stage) -> None:
    calls[:] = [lambda: account("ann"), lambda: account("bob"), lambda: greet("bob")]
    stage.live(clerk)

    with stage.open() as store:
        effects = store.plan_rollback(RUN, to=0).effects

    assert [("greet", "impossible"), ("account", "impossible"), ("account", "undo")] == [
        (each.effect.split("(")[0], each.how) for each in effects
    ]


def test_a_rollback_that_was_cut_off_keeps_its_order(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls[:] = [lambda: account("ann"), lambda: order("ann")]
    stage.live(clerk)
    fails.add("order")
    monkeypatch.setattr("holdfast.engine.rollback.Rollbacks._settle", _killed)
    with pytest.raises(KeyboardInterrupt):
        roll_back(stage)
    monkeypatch.undo()

    assert {"order": "impossible", "account": "impossible"} == roll_back(stage)
    assert [] == log


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("wrong", [3, "", len])
def test_what_names_no_effect_is_refused_where_it_is_written(wrong: Any) -> None:  # noqa: ANN401 anything
    with pytest.raises(holdfast.UsageError, match="after= takes effects"):

        @holdfast.effect(after=[wrong])
        def lost() -> None: ...
