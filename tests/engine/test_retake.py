"""Undos that failed are tried again later: by a command, by a person's word, never twice."""
# ruff: noqa: ARG001 handlers take what they are given

from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import failpoint
from holdfast.clock import SystemClock
from holdfast.model.journal import Happened, Undone
from holdfast.store.open import open_store
from holdfast.store.verify import verify
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Crash, Stage, reaching

TURNS = 4
log: list[str] = []
fails: set[str] = set()
ends: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    for each in (log, fails, ends):
        each.clear()


def cancel(outcome: str, order: str) -> None:
    if "closed" in fails:
        raise holdfast.NotDone("the exchange is closed")
    log.append(f"cancel {order}")
    if "line" in fails:
        raise ConnectionError("no answer")
    if "kill" in fails:
        raise Crash


@holdfast.effect(undo=cancel, key="order")
def place(order: str) -> str:
    log.append(f"place {order}")
    return order


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def trader(run: holdfast.Run, again: bool = True) -> int:
    for turn in run.turns():
        if turn == 1 and (again or not run.rollbacks):
            place("a")
            place("b")
        if turn == 2 and "crash" in ends:
            raise Crash
        if turn == 2 and "bug" in ends:
            raise TypeError("wrong")
        if turn == TURNS - 1:
            return turn
    raise AssertionError


def check(stage: Stage) -> None:
    opened = open_store(stage.path, SystemClock())
    try:
        assert [] == list(verify(opened, deep=True).findings)
    finally:
        opened.close()


def roll_back(stage: Stage, why: str = "closed") -> list[str]:
    """Roll the finished run back while its undos fail, and let it end anew without the effects."""
    stage.live(trader, again=False)
    fails.add(why)
    with stage.open() as store:
        done = store.plan_rollback(RUN, to=0).apply()
    fails.clear()
    return [each.how for each in done.effects]


def items(stage: Stage) -> list[tuple[str, str]]:
    with stage.open() as store:
        return [(item.kind, item.text) for item in store.inbox()]


def test_what_failed_waits_in_the_inbox_until_it_is_tried_again(stage: Stage) -> None:
    assert ["impossible", "impossible"] == roll_back(stage)
    assert 3 == stage.live(trader, again=False)

    [(kind, text), other] = items(stage)
    assert ("undo", "undo") == (kind, other[0])
    assert "was to be undone and stands (NotDone: the exchange is closed)" in text

    with stage.open() as store:
        done = store.retry_undos(RUN)
        assert [] == store.retry_undos(RUN), "nothing is left"
        assert holdfast.Status.FINISHED is store.get(RUN).status
        assert 3 == store.run(trader, again=False, id=RUN)
    assert ["undone", "undone"] == [each.how for each in done]
    assert ["cancel b", "cancel a"] == log[2:]
    assert [] == items(stage)
    check(stage)


@pytest.mark.parametrize(("end", "status"), [("crash", "running"), ("bug", "failed")])
def test_the_run_stands_afterwards_as_it_stood_before(stage: Stage, end: str, status: str) -> None:
    roll_back(stage)
    ends.append(end)
    with pytest.raises((Crash, holdfast.RunFailed)):
        stage.live(trader, again=False)
    before = stage.info()

    with stage.open() as store:
        store.retry_undos(RUN)
        after = store.get(RUN)

    assert (status, before.ended, before.error) == (after.status, after.ended, after.error)
    ends.clear()
    with stage.open() as store:
        assert 3 == store.restart(RUN, agent=trader)
    check(stage)


def test_what_may_have_been_undone_is_a_persons_to_say(stage: Stage) -> None:
    assert ["unknown", "unknown"] == roll_back(stage, "line")
    assert 3 == stage.live(trader, again=False)

    with stage.open() as store:
        again = store.retry_undos(RUN)
        assert ["unknown", "unknown"] == [each.how for each in again]
        assert all("was begun before" in each.why for each in again)
        first, second = store.inbox()
        store.answer(first.id, "undone", by="ann")
        with pytest.raises(holdfast.AlreadyAnswered):
            store.answer(first.id, "stands", by="bob")
        store.answer(second.id, "stands", by="bob")
        assert [] == store.inbox()
        said = {item.id: (item.answer, item.by) for item in store.inbox(all=True)}
    assert {first.id: ("undone", "ann"), second.id: ("stands", "bob")} == said
    assert 2 == len([line for line in log if line.startswith("cancel")]), "no undo was done twice"
    undone = {e.key for e in stage.journal() if isinstance(e, Undone) and e.how == "undone"}
    assert {first.id} == undone
    check(stage)


def test_a_person_has_it_tried_again(stage: Stage) -> None:
    roll_back(stage)
    with stage.open() as store:
        first = store.inbox()[0]
        store.answer(first.id, "retry")
        with pytest.raises(holdfast.UsageError, match="it takes 'retry' or 'undone' or 'stands'"):
            store.answer(store.inbox()[0].id, "perhaps")
        assert first.id not in [item.id for item in store.inbox()]
    assert 1 == len([line for line in log if line.startswith("cancel")])


def test_what_the_run_uses_again_is_left_as_it_is(stage: Stage) -> None:
    stage.live(trader)
    fails.add("closed")
    with stage.open() as store:
        store.plan_rollback(RUN, to=0).apply()
        fails.clear()
        assert 3 == store.run(trader, id=RUN), "the fence gave it the outcomes that stand"
        assert [] == store.retry_undos(RUN)
        assert [] == store.inbox()
    assert ["place a", "place b"] == log


def test_what_goes_on_by_undoing_the_rollback_is_used_too(stage: Stage) -> None:
    roll_back(stage)
    with stage.open() as store:
        store.undo_rollback(RUN)
        assert [] == store.retry_undos(RUN)
        with pytest.raises(holdfast.UsageError, match="no effect of run run-1 is left"):
            store.retry_undos(RUN, key="ab")


def test_a_run_at_work_is_not_touched(stage: Stage) -> None:
    roll_back(stage)
    with (
        stage.open() as store,
        stage.open() as other,
        other.paused(RUN),
        pytest.raises(holdfast.RunHeld),
    ):
        store.retry_undos(RUN)
    assert ["place a", "place b"] == log


def killing(point: str) -> Any:  # noqa: ANN401 a context
    def die(name: str) -> None:
        if name == point:
            raise Crash

    return reaching(die)


@pytest.mark.parametrize(
    ("point", "is_left"),
    [
        ("run.taken", False),
        ("undo.recorded", True),  # That it begins was recorded: nothing can tell whether it did.
        ("undo.called", True),
        ("retake.settling", False),
    ],
)
def test_one_that_was_cut_off_goes_on_and_no_undo_is_done_twice(
    stage: Stage, point: str, is_left: bool
) -> None:
    roll_back(stage)
    stage.live(trader, again=False)
    with pytest.raises(Crash), stage.open() as store, killing(point):
        store.retry_undos(RUN)
    failpoint.disarm()

    with stage.open() as store:
        if holdfast.Status.ROLLING_BACK is store.get(RUN).status:
            with pytest.raises(holdfast.RollbackUnfinished):
                store.retry_undos(RUN)
            plan = store.plan_rollback(RUN)
            assert plan.is_unfinished
            plan.apply()
        left = store.retry_undos(RUN)
        assert 3 == store.run(trader, again=False, id=RUN)
    cancels = [line for line in log if line.startswith("cancel")]
    assert len(cancels) == len(set(cancels))
    assert is_left == bool(left)
    check(stage)


def kill_the_undo_of_b(stage: Stage) -> None:
    """Go back behind both orders; the undo of b is killed, that of a does its work afterwards."""
    stage.live(trader)
    fails.add("kill")
    with stage.open() as store, pytest.raises(Crash):
        store.plan_rollback(RUN, to=0).apply()
    fails.clear()
    with stage.open() as store:
        store.plan_rollback(RUN).apply()
    log.clear()


def outcomes(stage: Stage) -> list[object]:
    return [stage.value(each) for each in stage.journal() if isinstance(each, Happened)]


@pytest.mark.parametrize(("word", "done"), [("happened", []), ("not done", ["place b"])])
def test_an_effect_whose_undo_was_killed_is_asked_about_before_it_counts_as_done(
    stage: Stage, word: str, done: list[str]
) -> None:
    kill_the_undo_of_b(stage)

    for _ in range(2):
        error = stage.fault(trader)
        assert isinstance(error, holdfast.InDoubt)
        assert "taking it back was begun, and nobody recorded what came of that" == error.why
    with stage.open() as store:
        (item,) = store.inbox()
        assert ("doubt", "b") == (item.kind, (item.arguments or {})["order"])
        assert "happen, and does it still stand?" in item.text
        store.answer(item.id, word)
        assert TURNS - 1 == store.run(trader, id=RUN)
        assert [] == store.inbox()

    assert ["place a", *done] == log
    assert ["a", "b"] == outcomes(stage)
    check(stage)


def test_a_persons_word_on_it_counts_whatever_the_clock_says(tmp_path: Path) -> None:
    clock = ManualClock()
    stage = Stage(tmp_path / "store", clock)
    kill_the_undo_of_b(stage)
    assert isinstance(stage.fault(trader), holdfast.InDoubt)
    clock.set(clock.now() - 3600.0)

    with stage.open() as store:
        store.answer(store.inbox()[0].id, "not done")
        assert TURNS - 1 == store.run(trader, id=RUN)

    assert ["place a", "place b"] == log


def test_so_is_one_whose_undo_raised_and_nothing_can_tell(stage: Stage) -> None:
    stage.live(trader)
    fails.add("line")
    with stage.open() as store:
        store.plan_rollback(RUN, to=0).apply()
    log.clear()

    assert isinstance(stage.fault(trader), holdfast.InDoubt)
    assert [] == log


def test_what_a_person_lets_stand_is_not_asked_about_again(stage: Stage) -> None:
    kill_the_undo_of_b(stage)
    with stage.open() as store:
        (item,) = store.inbox()
        store.answer(item.id, "stands")

        assert TURNS - 1 == store.run(trader, id=RUN)

    assert ["place a"] == log
    assert ["a", "b"] == outcomes(stage)
