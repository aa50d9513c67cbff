"""Runs that share a ledger: what one of them did stays known while another of them stays."""

from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import failpoint
from holdfast.engine.cancel import children_of
from holdfast.engine.handle import Store
from holdfast.policy.retention import Retention
from holdfast.store.gc import runs
from holdfast.store.keys.local import RootKey
from holdfast.store.verify import verify
from tests.engine.kit import Crash

LAST = Retention(runs_last=1)
done: list[str] = []
left: list[str] = []


@holdfast.effect(key="order")
def pay(order: str) -> str:
    done.append(order)
    return order


@holdfast.agent
def child(run: holdfast.Run, number: int, *, pays: bool = True) -> int:
    for turn in run.turns():
        if pays:
            pay(f"{number}-{turn}")
        if turn == 1:
            return number
    raise AssertionError


@holdfast.agent
def parent(run: holdfast.Run, *, pays: bool = True) -> list[int]:
    given = run.state.setdefault("given", [])
    for turn in run.turns():
        given.append(run.child(child, turn, pays=pays, id=f"{run.id}-{turn}"))
        if turn == 2:
            return [*given]
    raise AssertionError


@holdfast.agent
def shopper(run: holdfast.Run) -> str | None:
    run.state["order"] = None
    for turn in run.turns():
        if turn == 1:
            order = run.state["order"]
            return pay(order) if order else None
    raise AssertionError


@holdfast.step
def count() -> int:
    done.append("counted")
    return len(done)


@holdfast.agent
def counter(_run: holdfast.Run) -> int:
    return count()


@holdfast.agent
def careless(run: holdfast.Run) -> int:
    for _ in run.turns():
        given = run.child(counter, id=f"{run.id}-child")
        if not left:
            return given
        left.pop()
        raise Crash
    raise AssertionError


@holdfast.agent
def other(run: holdfast.Run) -> str:
    return run.id


@pytest.fixture(params=["", RootKey(b"k" * 32, "file")], ids=["open", "sealed"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    done.clear()
    left[:] = ["the crash"]
    return holdfast.open(tmp_path / "store", key=request.param)


def names(store: Store) -> set[str]:
    return {run.id for run in store.runs()}


def test_what_a_child_did_is_not_done_again_because_garbage_was_collected(store: Store) -> None:
    with store:
        store.run(parent, id="p")
        store.pin("p")
        store.run(other, id="last")
        paid = sorted(done)

        plan = {fate.id: list(fate.why) for fate in store.plan_gc(LAST).runs}
        store.gc(LAST)
        store.plan_rollback("p", to=0).apply()
        store.restart("p")

        assert paid == sorted(done)
        assert "its effects stand in the ledger of run p" in plan["p-1"]


def test_what_a_fork_did_is_not_done_again_because_garbage_was_collected(store: Store) -> None:
    with store:
        store.run(shopper, id="run")
        store.pin("run")
        store.fork("run", at=0, state={"order": "kelp"}, new_id="fork")
        store.restart("fork")
        store.run(other, id="last")

        store.gc(LAST)
        store.fork("run", at=0, state={"order": "kelp"}, new_id="again")
        store.restart("again")

        assert ["kelp"] == done


def test_children_of_a_run_that_is_taken_up_meanwhile_stay_with_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, acts = runs.remove, [lambda: store.plan_rollback("p", to=0).apply()]

    def remove(*args: Any, **options: Any) -> bool:  # noqa: ANN401 the function's own
        while acts:
            acts.pop()()
        return original(*args, **options)

    with store:
        store.run(parent, id="p")
        store.run(other, id="last")
        paid = sorted(done)
        monkeypatch.setattr(runs, "remove", remove)

        store.gc(LAST)
        store.restart("p")

        assert paid == sorted(done)


def test_a_run_and_its_children_go_together(store: Store) -> None:
    with store:
        store.run(parent, id="p")
        store.fork("p", at=0, new_id="fork")
        store.restart("fork")
        store.run(other, id="last")

        gone = store.gc(LAST)

        assert {"last"} == names(store)
        assert not gone.passed_over
        assert verify(store.opened, deep=True).is_whole


@pytest.mark.parametrize("point", ["gc.deleting", "gc.deleted"])
def test_a_collection_that_is_killed_leaves_a_whole_family_or_none_of_it(
    store: Store, point: str
) -> None:
    with store:
        store.run(parent, id="p")
        store.run(other, id="last")
        before = names(store)
        failpoint.arm(point, die)
        with pytest.raises(Crash):
            store.gc(LAST)
        failpoint.disarm()

        assert names(store) == (before if point == "gc.deleting" else {"last"})
        assert verify(store.opened, deep=True).is_whole


def die() -> None:
    raise Crash


def test_children_without_effects_go_by_the_rules(store: Store) -> None:
    with store:
        store.run(parent, pays=False, id="p")
        store.pin("p")
        store.run(other, id="last")

        store.gc(LAST)

        assert {"p", "last"} == names(store)


def test_a_child_whose_parent_has_not_finished_is_not_run_anew(store: Store) -> None:
    with store:
        with pytest.raises(Crash):
            store.run(careless, id="p")
        assert "finished" == store.get("p-child").status
        store.run(other, id="last")

        plan = {fate.id: list(fate.why) for fate in store.plan_gc(LAST).runs}
        store.gc(LAST)

        assert ["run p, which began it, may go on"] == plan["p-child"]
        assert 1 == store.restart("p")


def test_a_run_with_an_erased_child_is_shown_and_cancelled(store: Store) -> None:
    with store:
        store.run(parent, id="p")
        store.plan_rollback("p", to=1).apply()
        store.erase("p-1")
        found = store.opened.reader.find("p")
        assert found is not None

        assert ["p-0"] == [each.body.id for each in children_of(store.opened.reader, found)]
        assert "cancelled" == store.cancel("p").status
