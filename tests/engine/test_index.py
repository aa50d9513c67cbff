"""The index of effects is damaged: nothing is done again, and it is said."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest

import holdfast
from holdfast.store.marks import SPLIT
from tests.engine.kit import RUN, Stage

TURNS = 4


class Shop:
    """An agent that pays each turn, and what was really paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.fails_at = -1

        @holdfast.effect(key="n")
        def pay(n: int) -> int:
            self.paid.append(n)
            return n

        @holdfast.agent
        def agent(run: holdfast.Run) -> None:
            for turn in run.turns():
                if turn == self.fails_at:
                    raise ValueError
                pay(turn)
                if turn == run.state.get("last", TURNS):
                    return

        self.agent = agent


@pytest.fixture
def shop() -> Shop:
    return Shop()


def harm(stage: Stage, where: str, *values: Any) -> int:  # noqa: ANN401 what SQLite takes
    with closing(sqlite3.connect(stage.path / "store.db")) as link, link:
        return link.execute(f"DELETE FROM effect WHERE {where}", values).rowcount


def roll_back(stage: Stage, **how: Any) -> None:  # noqa: ANN401 as the plan takes it
    with stage.open() as store:
        store.plan_rollback(RUN, to=f"{RUN}@1").apply(**how)


def test_a_rollback_that_the_index_hides_stops_the_run_before_its_first_effect(
    stage: Stage, shop: Shop
) -> None:
    stage.live(shop.agent)
    roll_back(stage)
    assert harm(stage, "intent=?", SPLIT)

    fault = stage.fault(shop.agent)

    assert "the index of effects is damaged" in str(fault)
    assert "holdfast repair" in str(fault)
    assert list(range(TURNS + 1)) == shop.paid


def test_a_rollback_goes_on_after_a_repair_of_the_index(stage: Stage, shop: Shop) -> None:
    stage.live(shop.agent)
    roll_back(stage)
    harm(stage, "intent=?", SPLIT)

    holdfast.plan_repair(stage.path).apply()
    stage.live(shop.agent)

    assert list(range(TURNS + 1)) == shop.paid


def test_a_fork_that_the_index_hides_stops_the_run_it_came_from(stage: Stage, shop: Shop) -> None:
    shop.fails_at = 3
    with pytest.raises(holdfast.RunFailed):
        stage.live(shop.agent)
    shop.fails_at = -1
    with stage.open() as store:
        store.fork(RUN, at=1, new_id="fork")
        store.run(shop.agent, id="fork")
    assert harm(stage, "intent=?", SPLIT)

    with pytest.raises(holdfast.Damaged, match="the index of effects is damaged"):
        stage.restart(shop.agent)

    assert list(range(TURNS + 1)) == shop.paid


def test_children_make_no_line_of_their_own(stage: Stage, shop: Shop) -> None:
    @holdfast.agent
    def parent(run: holdfast.Run) -> None:
        for n in range(3):
            run.child(shop.agent, id=f"child-{n}")

    stage.live(parent)

    assert 3 * list(range(TURNS + 1)) == shop.paid


@pytest.mark.parametrize("mark", ["intent", "scope"])
def test_one_lost_entry_of_an_effect_does_not_let_it_be_done_again(
    stage: Stage, shop: Shop, mark: str
) -> None:
    stage.live(shop.agent)
    roll_back(stage)
    order = "ASC" if mark == "intent" else "DESC"
    lost = f"""(intent, id) IN (SELECT intent, id FROM (SELECT intent, id,
        row_number() OVER (PARTITION BY id ORDER BY intent {order}) AS nth FROM effect
        WHERE intent != ?) WHERE nth = 1)"""
    assert harm(stage, lost, SPLIT)

    stage.live(shop.agent)

    assert list(range(TURNS + 1)) == shop.paid
