"""The fence: after a restore no standing effect is done again, and no intended one is swallowed."""
# ruff: noqa: ARG001 tools take what they ignore

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import holdfast
from holdfast import failpoint
from tests.engine.kit import FENCE, RUN, Stage, fence

Call = Callable[[], Any]

done: list[str] = []
keys: list[str] = []
calls: list[Call] = []


@pytest.fixture(autouse=True)
def _nothing_done(record_property: Callable[[str, object], None]) -> Iterator[None]:
    done.clear()
    keys.clear()
    calls.clear()
    fence.update(dict.fromkeys(fence, 0))
    yield
    record_property(FENCE, dict(fence))


def _do(what: str, key: str) -> dict[str, str]:
    done.append(what)
    keys.append(key)
    return {"receipt": f"{what}#{done.count(what)}"}


@holdfast.effect(key="order", ignore=("note", "nonce"))
def pay(
    order: str, amount: int, note: str = "", nonce: int = 0, idempotency_key: str = ""
) -> dict[str, str]:
    return _do(f"pay {order} {amount}", idempotency_key)


@holdfast.effect(key=("order", "to"))
def transfer(order: str, to: str, amount: int, idempotency_key: str = "") -> dict[str, str]:
    return _do(f"transfer {order} {to} {amount}", idempotency_key)


@holdfast.effect
def send(to: str, text: str, idempotency_key: str = "") -> dict[str, str]:
    return _do(f"send {to} {text}", idempotency_key)


@holdfast.effect(key="to")
def remind(to: str, idempotency_key: str = "") -> dict[str, str]:
    return _do(f"remind {to}", idempotency_key)


@holdfast.agent
def payer(run: holdfast.Run) -> list[Any]:
    run.state["got"] = []
    for turn in run.turns():
        if turn == 1:
            run.state["got"] += [call()["receipt"] for call in calls]
        if turn == 2:
            return list(run.state["got"])
    raise AssertionError


def say(*asked: Call) -> None:
    """What the model says in its next life."""
    calls[:] = asked


def restored(store: holdfast.Store, way: str) -> str:
    """Go back to before the payments; returns the run that goes on from there."""
    for _ in range(2 if way == "rolled back twice" else 1):
        fence["restores"] += 1
        if way == "fork":
            return store.fork(RUN, at=0).id
        store.plan_rollback(RUN, to=0).apply()
    return RUN


WAYS = ["fork", "rolled back", "rolled back twice"]
every_way = pytest.mark.parametrize("way", WAYS)

SAME: dict[str, tuple[Sequence[Call], Sequence[Call]]] = {
    "word for word": ([lambda: pay("7", 10)], [lambda: pay("7", 10)]),
    "reworded text": (
        [lambda: pay("7", 10, note="please")],
        [lambda: pay("7", 10, note="kindly")],
    ),
    "reordered keywords": (
        [lambda: pay(order="7", amount=10)],
        [lambda: pay(amount=10, order="7")],
    ),
    "another nonce": ([lambda: pay("7", 10, nonce=1)], [lambda: pay("7", 10, nonce=2)]),
    "no key": ([lambda: send("ann", "hello")], [lambda: send("ann", "hello")]),
    "two equal ones": ([lambda: remind("ann")] * 2, [lambda: remind("ann")] * 2),
    "another order of calls": (
        [lambda: pay("7", 10), lambda: pay("8", 10)],
        [lambda: pay("8", 10), lambda: pay("7", 10)],
    ),
}
BLOCKED: dict[str, tuple[Sequence[Call], Sequence[Call]]] = {
    "another amount": ([lambda: pay("7", 10)], [lambda: pay("7", 12)]),
    "another text without a key": (
        [lambda: send("ann", "hello")],
        [lambda: send("ann", "good day")],
    ),
    "another recipient without a key": (
        [lambda: send("ann", "hello")],
        [lambda: send("bob", "hello")],
    ),
    "less than before": ([lambda: pay("7", 10), lambda: pay("7", 5)], [lambda: pay("7", 1)]),
}
NEW: dict[str, tuple[Sequence[Call], Sequence[Call], int]] = {
    "another recipient": (
        [lambda: transfer("7", "ann", 10)],
        [lambda: transfer("7", "bob", 10)],
        2,
    ),
    "another order": ([lambda: pay("7", 10)], [lambda: pay("8", 10)], 2),
    "a third equal one": ([lambda: remind("ann")] * 2, [lambda: remind("ann")] * 3, 3),
    "the same and then more of it": (
        [lambda: pay("7", 10)],
        [lambda: pay("7", 10), lambda: pay("7", 12)],
        2,
    ),
    "another tool": ([lambda: pay("7", 10)], [lambda: remind("7")], 2),
}


def count(expected: int) -> None:
    fence["doubled"] += max(0, len(done) - expected)
    fence["swallowed"] += max(0, expected - len(done))


@every_way
@pytest.mark.parametrize("case", SAME)
def test_the_same_intent_gets_the_recorded_outcome(stage: Stage, way: str, case: str) -> None:
    first, second = SAME[case]
    say(*first)
    before = stage.live(payer)

    say(*second)
    with stage.open() as store:
        after = store.run(payer, id=restored(store, way))

    count(len(first))
    assert len(first) == len(done) == len(set(keys))
    assert sorted(before) == sorted(after)


@every_way
@pytest.mark.parametrize("case", BLOCKED)
def test_another_intent_about_the_same_thing_is_blocked_until_a_person_allows_it(
    stage: Stage, way: str, case: str
) -> None:
    first, second = BLOCKED[case]
    say(*first)
    stage.live(payer)

    say(*second)
    with stage.open() as store:
        run = restored(store, way)
        for _ in range(2):
            with pytest.raises(holdfast.Blocked, match="is blocked") as blocked:
                store.run(payer, id=run)
            assert holdfast.Status.BLOCKED is store.get(run).status
        count(len(first))
        assert len(first) == len(done)
        with pytest.raises(holdfast.UsageError, match="no blocked effect"):
            store.allow(run, "ffff")
        store.allow(run, blocked.value.key, reason="the customer asked for it")
        store.restart(run)

    assert len(first) + 1 == len(done) == len(set(keys))
    assert "stands at" in str(blocked.value)


@every_way
@pytest.mark.parametrize("case", NEW)
def test_what_is_meant_anew_is_done(stage: Stage, way: str, case: str) -> None:
    first, second, expected = NEW[case]
    say(*first)
    stage.live(payer)

    say(*second)
    with stage.open() as store:
        store.run(payer, id=restored(store, way))

    count(expected)
    assert expected == len(done) == len(set(keys))


@every_way
def test_a_permission_holds_once_for_one_effect(stage: Stage, way: str) -> None:
    say(lambda: pay("7", 10))
    stage.live(payer)

    say(lambda: pay("7", 12), lambda: pay("7", 12))
    with stage.open() as store:
        run = restored(store, way)
        with pytest.raises(holdfast.Blocked) as first:
            store.run(payer, id=run)
        store.allow(run, first.value.key[:8])
        with pytest.raises(holdfast.Blocked) as second:
            store.restart(run)

    assert first.value.key != second.value.key
    assert ["pay 7 10", "pay 7 12"] == done


def test_a_fork_inherits_no_permission(stage: Stage) -> None:
    say(lambda: pay("7", 10))
    stage.live(payer)
    say(lambda: pay("7", 12))
    with stage.open() as store:
        first = store.fork(RUN, at=0).id
        with pytest.raises(holdfast.Blocked) as blocked:
            store.run(payer, id=first)
        store.allow(first, blocked.value.key)
        second = store.fork(first).id

        with pytest.raises(holdfast.Blocked):
            store.run(payer, id=second)
        store.restart(first)

    assert ["pay 7 10", "pay 7 12"] == done


def test_a_fork_cannot_repeat_what_its_parent_does_later_nor_the_parent_what_the_fork_did(
    stage: Stage,
) -> None:
    say()
    with stage.open() as store:
        store.run(payer, id=RUN)
        one, two = store.fork(RUN, at=0).id, store.fork(RUN, at=0).id
        say(lambda: pay("7", 10))
        first = store.run(payer, id=one)
        second = store.run(payer, id=two)
        third = store.run(payer, id=store.fork(one, at=0).id)
        say(lambda: pay("7", 12))
        with pytest.raises(holdfast.Blocked, match=one):
            store.run(payer, id=store.fork(RUN, at=0).id)

    assert first == second == third
    assert ["pay 7 10"] == done


def test_effects_of_a_fork_that_has_its_own_are_its_own(stage: Stage) -> None:
    say(lambda: pay("7", 10))
    with stage.open() as store:
        store.run(payer, id=RUN)
        free = store.fork(RUN, at=0, fork_effects=True).id
        store.run(payer, id=free)
        say(lambda: pay("7", 12))
        store.run(payer, id=store.fork(RUN, at=0, fork_effects=True).id)
        with pytest.raises(holdfast.Blocked):
            store.run(payer, id=store.fork(free, at=0).id)

    assert ["pay 7 10", "pay 7 10", "pay 7 12"] == done
    assert 3 == len(set(keys))


def test_what_was_done_once_for_another_line_is_recorded_and_shown_as_such(stage: Stage) -> None:
    say(lambda: pay("7", 10))
    stage.live(payer)
    with stage.open() as store:
        fork = store.fork(RUN, at=0).id
        store.run(payer, id=fork)

    happened = [e for e in stage.journal(fork) if type(e).__name__ == "Happened"]
    assert ["ledger"] == [e.how for e in happened]  # type: ignore[union-attr]  # as filtered above


def test_what_stands_elsewhere_needs_no_second_approval(stage: Stage) -> None:
    @holdfast.effect(key="order", approve=True)
    def order(order: str) -> dict[str, str]:
        return _do(f"order {order}", "")

    say(lambda: order("7"))
    with stage.open() as store:
        with pytest.raises(holdfast.Waiting):
            store.run(payer, id=RUN)
        store.approve(store.inbox()[0].id)
        first = store.run(payer, id=RUN)
        again = store.run(payer, id=store.fork(RUN, at=0).id)
        say(lambda: order("8"))
        with pytest.raises(holdfast.Waiting):
            store.run(payer, id=store.fork(RUN, at=0).id)

    assert first == again
    assert ["order 7"] == done


def test_a_payment_adopted_after_one_rollback_is_adopted_after_the_next(stage: Stage) -> None:
    say(lambda: pay("7", 10, note="please"))
    with stage.open() as store:
        first = store.run(payer, id=RUN)
        for words in ("kindly", "now", "at last"):
            fence["restores"] += 1
            store.plan_rollback(RUN, to=0).apply()
            say(lambda words=words: pay("7", 10, note=words))  # type: ignore[misc]  # bound now
            assert first == store.run(payer, id=RUN)
        store.plan_rollback(RUN, to=0).apply()
        say(lambda: pay("7", 11))
        with pytest.raises(holdfast.Blocked):
            store.run(payer, id=RUN)

    count(1)
    assert ["pay 7 10"] == done


def test_a_permission_does_not_come_back_to_life_with_an_older_state(stage: Stage) -> None:
    say(lambda: pay("7", 10))
    with stage.open() as store:
        store.run(payer, id=RUN)
        store.plan_rollback(RUN, to=0).apply()
        say(lambda: pay("7", 12))
        with pytest.raises(holdfast.Blocked) as blocked:
            store.run(payer, id=RUN)
        store.allow(RUN, blocked.value.key)
        store.restart(RUN)
        store.plan_rollback(RUN, to=0).apply()
        again = store.run(payer, id=RUN)
        store.plan_rollback(RUN, to=0).apply()
        say(lambda: pay("7", 13))
        with pytest.raises(holdfast.Blocked):
            store.run(payer, id=RUN)

    assert ["pay 7 12#1"] == again
    assert ["pay 7 10", "pay 7 12"] == done


def test_an_effect_under_way_in_the_parent_is_not_begun_in_a_fork(stage: Stage) -> None:
    began, may_end = threading.Event(), threading.Event()
    saved: list[str] = []

    @holdfast.effect(key="order")
    def slow(order: str) -> str:
        done.append(order)
        began.set()
        may_end.wait(30)
        return f"slow {order}"

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        for turn in run.turns():
            if turn == 1:
                return pay_slowly(run)
        raise AssertionError

    def pay_slowly(run: holdfast.Run) -> str:
        found: list[str] = []

        def work() -> None:
            with contextlib.suppress(holdfast.Blocked):  # It stops the run all the same.
                found.append(slow("7"))

        thread = threading.Thread(target=run.wrap(work))
        thread.start()
        began.wait(30)
        saved.append(run.checkpoint("paying"))
        ready.set()
        thread.join()
        return "".join(found)

    ready = threading.Event()
    parent = threading.Thread(target=lambda: results.append(stage.live(agent)))
    results: list[str] = []
    parent.start()
    ready.wait(30)
    with stage.open() as store:
        fork = store.fork(RUN, at=saved[0], new_id="fork").id
        with pytest.raises(holdfast.Blocked, match="is under way"):
            store.run(agent, id=fork)
        may_end.set()
        parent.join()
        again = store.restart(fork, agent=agent)

    assert ["slow 7"] == results == [again]
    assert ["7"] == done


def test_of_two_lines_that_pay_in_the_same_moment_one_pays(stage: Stage) -> None:
    say()
    with stage.open() as store:
        store.run(payer, id=RUN)
        one, two = store.fork(RUN, at=0).id, store.fork(RUN, at=0).id
    say(lambda: pay("7", 10))
    others: list[Any] = []

    def pay_elsewhere() -> None:
        with stage.open() as other:
            others.append(other.run(payer, id=two))

    def meanwhile() -> None:
        failpoint.disarm()
        thread = threading.Thread(target=pay_elsewhere)
        thread.start()
        thread.join()

    failpoint.arm("effect.intending", meanwhile)
    try:
        with stage.open() as store:
            with pytest.raises(holdfast.Blocked, match="in the same moment"):
                store.run(payer, id=one)
            mine = store.restart(one)
    finally:
        failpoint.disarm()

    assert [mine] == others
    assert ["pay 7 10"] == done
