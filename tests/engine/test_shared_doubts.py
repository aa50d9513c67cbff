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


def found(order: str) -> str | None:
    return f"found {order}" if done else None


@holdfast.effect(key="order", probe=found)
def charge(order: str, idempotency_key: str = "") -> str:
    if dies:
        raise Crash(order)
    done.append(idempotency_key)
    return f"found {order}"


@holdfast.agent
def looked_up(run: holdfast.Run) -> str:
    for turn in run.turns():
        if turn == 1:
            return charge("KELP")
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


@pytest.mark.parametrize("way", ["the rollback is undone", "in a fork"])
def test_what_was_taken_back_while_in_doubt_is_done_under_a_key_that_the_ledger_counts(
    stage: Stage, way: str
) -> None:
    dies[:] = ["before"]
    stage.die(looked_up)
    with stage.open() as store:
        store.fork(RUN, at=0, new_id=FORK)
    stage.die(looked_up, id=FORK)
    dies.clear()
    with stage.open() as store:
        assert ["cancelled"] == [
            each.how for each in store.plan_rollback(RUN, to=0).apply().effects
        ]
        if way == "in a fork":
            store.restart(FORK, agent=looked_up)
            assert "found KELP" == store.restart(RUN, agent=looked_up)
        else:
            store.undo_rollback(RUN)
            store.restart(RUN, agent=looked_up)
            plan = store.plan_rollback(RUN, to=0)
            assert ["impossible"] == [each.how for each in plan.effects]
            plan.apply()
            assert "found KELP" == store.restart(RUN, agent=looked_up)
        assert [] == store.inbox()

    assert 1 == len(done)
