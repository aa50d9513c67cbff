"""Effects with arguments of a class that was migrated since: they are known again, and not done."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.model.journal import Intended
from holdfast.store.codec.registry import Registry
from holdfast.store.codec.values import registry
from tests.engine.kit import RUN, Stage, World

NAME = "migrated order"


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a program of its own, and knows no classes yet."""
    monkeypatch.setattr(registry, "__dict__", vars(Registry()))


def last_year() -> Callable[[int], Any]:
    """An order of so many euros, as it was in version 1."""
    cls = dataclasses.make_dataclass("Order", [("euros", int)])
    holdfast.register(cls, name=NAME)
    return cls


def today() -> Callable[[int], Any]:
    """The same order in version 2."""
    cls = dataclasses.make_dataclass("Order", [("cents", int)])
    holdfast.register(cls, name=NAME, version=2)
    holdfast.migrate(NAME, from_=1, to=2)(lambda fields: {"cents": 100 * fields["euros"]})
    return lambda euros: cls(100 * euros)


def shopping(
    world: World, order: Callable[[int], Any], orders: list[int], *, asks: bool = False
) -> holdfast.Agent[[], list[str]]:
    """An agent that buys in its second turn; the world dies at one of its orders, or after them."""

    @holdfast.step
    def judge(_order: object) -> str:
        return world.ask("judge")

    @holdfast.effect(key="number")
    def buy(number: int, what: object) -> str:
        del what
        return world.ask(f"buy {number}")

    @holdfast.effect(key="number", idempotent=True)
    def reserve(number: int, what: object) -> str:
        del what
        return world.ask(f"reserve {number}")

    @holdfast.agent
    def shopper(run: holdfast.Run) -> list[str]:
        for turn in run.turns():
            if turn == 1:
                if asks:
                    judge(order(0))
                bought = [buy(n, [{"order": order(n)}]) for n in orders]
                bought.append(reserve(1, order(1)))
                world.ask("the end")
                return bought
        raise AssertionError

    return shopper


def test_an_unfinished_turn_goes_on_with_the_effects_it_did_before_a_migration(
    stage: Stage, world: World
) -> None:
    world.dies_at = "the end"
    stage.die(shopping(world, last_year(), [5, 6, 5]))
    world.dies_at = None

    bought = stage.live(shopping(world, today(), [5, 6, 5]))

    assert ["buy 5#1", "buy 6#1", "buy 5#2", "reserve 1#1"] == bought
    assert ["buy 5", "buy 6", "buy 5", "reserve 1"] == [w for w in world.asked if w != "the end"]


def test_an_effect_in_doubt_before_a_migration_is_repeated_under_its_own_key(
    stage: Stage, world: World
) -> None:
    world.dies_at = "reserve 1"
    stage.die(shopping(world, last_year(), [5]))
    world.dies_at = None

    assert ["buy 5#1", "reserve 1#2"] == stage.live(shopping(world, today(), [5]))
    meant = [entry for entry in stage.journal() if isinstance(entry, Intended)]
    assert ["buy", "reserve", "reserve"] == [each.call.name.split(".")[-1] for each in meant]
    assert meant[1].key == meant[2].key


def test_a_turn_run_anew_does_not_do_again_what_it_did_before_a_migration(
    stage: Stage, world: World
) -> None:
    world.dies_at = "the end"
    stage.die(shopping(world, last_year(), [5, 5], asks=True))
    world.dies_at = None
    agent = shopping(world, today(), [5, 5], asks=True)
    with pytest.raises(holdfast.Diverged):  # What a step was asked is not kept.
        stage.live(agent)

    assert ["buy 5#1", "buy 5#2", "reserve 1#1"] == stage.restart(agent, redo_turn=True)
    assert ["buy 5", "buy 5"] == [what for what in world.asked if what.startswith("buy")]


def test_a_fork_gets_the_outcome_of_what_was_done_before_a_migration(
    stage: Stage, world: World
) -> None:
    stage.live(shopping(world, last_year(), [5, 6]))
    agent = shopping(world, today(), [6, 5, 7])

    with stage.open() as store:
        fork = store.fork(RUN, at=0)
        bought = store.restart(fork.id, agent=agent)

    assert ["buy 6#1", "buy 5#1", "buy 7#1", "reserve 1#1"] == bought
