"""An effect in doubt in a run and in its fork is one: one word settles it, one of them does it."""
# ruff: noqa: ARG001 an undo takes what it ignores

import pytest

import holdfast
from tests.engine.kit import RUN, Crash, Stage

FORK = "fork"

done: list[str] = []
undone: list[str] = []
dies: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    for each in (done, undone, dies):
        each.clear()


def refund(outcome: str, order: str) -> None:
    undone.append(outcome)


@holdfast.effect(key="order", undo=refund)
def pay(order: str, idempotency_key: str = "") -> str:
    if "before" in dies:
        raise Crash(order)
    done.append(idempotency_key)
    if "after" in dies:
        raise Crash(order)
    return f"paid {order}"


@holdfast.agent
def payer(run: holdfast.Run) -> str:
    for turn in run.turns():
        if turn == 1:
            return pay("KELP")
    raise AssertionError


def in_doubt_twice(stage: Stage) -> str:
    """A run that was cut off before it paid, and its fork, both in doubt; the key of the effect."""
    dies[:] = ["before"]
    stage.die(payer)
    dies.clear()
    with stage.open() as store:
        store.fork(RUN, at=0, new_id=FORK)
    assert isinstance(stage.fault(payer, id=FORK), holdfast.InDoubt)
    fault = stage.fault(payer)
    assert isinstance(fault, holdfast.InDoubt)
    return fault.key


def test_one_word_settles_it_in_both_and_one_of_them_does_it(stage: Stage) -> None:
    key = in_doubt_twice(stage)

    with stage.open() as store:
        assert 2 == len(store.inbox())
        store.answer(key, "not done")
        assert [] == store.inbox()
        assert "paid KELP" == store.restart(RUN, agent=payer)
        assert "paid KELP" == store.restart(FORK, agent=payer)

    assert [key] == done


def test_what_happened_is_known_in_both(stage: Stage) -> None:
    key = in_doubt_twice(stage)

    with stage.open() as store:
        store.answer(key, "happened", outcome="paid by hand")
        results = [store.restart(id_, agent=payer) for id_ in (FORK, RUN)]

    assert ["paid by hand"] * 2 == results
    assert [] == done


@pytest.mark.parametrize(("first", "second"), [(RUN, FORK), (FORK, RUN)])
def test_what_one_tried_again_and_was_cut_off_in_is_not_done_by_the_other(
    stage: Stage, first: str, second: str
) -> None:
    key = in_doubt_twice(stage)
    with stage.open() as store:
        store.answer(key, "not done")
    dies[:] = ["after"]
    stage.die(payer, id=first)
    dies.clear()

    assert isinstance(stage.fault(payer, id=second), holdfast.InDoubt)
    with stage.open() as store:
        store.answer(key, "happened", outcome="paid KELP")
        assert ["paid KELP"] * 2 == [store.restart(id_, agent=payer) for id_ in (second, first)]

    assert [key] == done


def test_what_one_of_them_did_and_took_back_is_done_anew_under_another_key(stage: Stage) -> None:
    key = in_doubt_twice(stage)
    with stage.open() as store:
        store.answer(key, "not done")
        store.restart(FORK, agent=payer)
        store.plan_rollback(FORK, to=0).apply()
        assert "paid KELP" == store.restart(RUN, agent=payer)
        assert "paid KELP" == store.restart(FORK, agent=payer)

    assert ["paid KELP"] == undone
    assert 2 == len(done)
    assert 2 == len({key, *done})
