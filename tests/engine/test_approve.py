"""An effect that a person must allow: asked before its intent, once, for its exact arguments."""

import asyncio
import threading
from typing import Any

import pytest

import holdfast
from holdfast.model.journal import Questioned
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Stage, World, moments


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def timed(stage: Stage, clock: ManualClock) -> Stage:
    return Stage(stage.path, clock)


def payer(world: World, **options: Any) -> holdfast.Agent[..., list[str]]:  # noqa: ANN401 those of an effect
    """An agent that pays the amounts it is given, each in a turn of its own."""

    @holdfast.effect(**{"approve": True, "idempotent": True, **options})
    def pay(amount: int, memo: str = "") -> str:
        return world.ask(f"pay {amount}{memo}")

    @holdfast.agent
    def spender(run: holdfast.Run, *amounts: int) -> list[str]:
        run.state["paid"] = []
        for turn in run.turns():
            try:
                run.state["paid"].append(pay(amounts[turn]))
            except (holdfast.Rejected, holdfast.Expired) as error:
                run.state["paid"].append(f"{type(error).__name__}: {error.args[-1]}")
            if turn == len(amounts) - 1:
                return list(holdfast.plain(run.state["paid"]))
        return []

    return spender


def waits(stage: Stage, agent: holdfast.Agent[..., Any], *args: object) -> str:
    error = stage.fault(agent, *args)
    assert isinstance(error, holdfast.Waiting), error
    return error.question


def approve(stage: Stage, id_: str) -> None:
    with stage.open() as store:
        store.approve(id_, by="ann")


def test_nothing_is_done_before_a_person_allows_it(stage: Stage, world: World) -> None:
    agent = payer(world)

    error = stage.fault(agent, 5)

    assert isinstance(error, holdfast.Waiting)
    assert f"`holdfast inbox approve {error.question}`" in str(error)
    assert "pay(amount=5, memo='')" in str(error)
    assert [] == world.asked
    assert "Intended" not in stage.kinds()


def test_an_allowed_effect_is_done_once_and_the_leave_is_recorded_with_its_intent(
    stage: Stage, world: World
) -> None:
    agent = payer(world)
    approve(stage, waits(stage, agent, 5))

    assert ["pay 5#1"] == stage.live(agent, 5)
    kinds = stage.kinds()
    assert kinds.index("Intended") == kinds.index("Answered") + 1


def test_each_call_needs_a_leave_of_its_own_also_with_equal_arguments(
    stage: Stage, world: World
) -> None:
    agent = payer(world)
    first = waits(stage, agent, 5, 5)
    approve(stage, first)
    second = waits(stage, agent, 5, 5)
    approve(stage, second)

    assert first != second
    assert ["pay 5#1", "pay 5#2"] == stage.live(agent, 5, 5)


def test_a_leave_is_bound_to_the_arguments_it_was_given_for(stage: Stage, world: World) -> None:
    amounts = [5]

    @holdfast.effect(approve=True)
    def pay(amount: int) -> str:
        return world.ask(f"pay {amount}")

    @holdfast.agent
    def shifty(run: holdfast.Run) -> str:
        for _ in run.turns():
            return pay(amounts[0])
        return ""

    approve(stage, waits(stage, shifty))
    amounts[0] = 500

    assert isinstance(stage.fault(shifty), holdfast.Diverged)
    with pytest.raises(holdfast.Waiting, match="amount=500"):
        stage.restart(shifty, redo_turn=True)
    assert [] == world.asked


def test_a_rejected_effect_is_not_done_and_the_agent_may_go_on(stage: Stage, world: World) -> None:
    agent = payer(world)
    with stage.open() as store, pytest.raises(holdfast.Waiting) as first:
        store.run(agent, 500, 5, id=RUN)
    with stage.open() as store:
        store.reject(first.value.question, by="ann", note="too much")
    approve(stage, waits(stage, agent, 500, 5))

    assert ["Rejected: too much", "pay 5#1"] == stage.live(agent, 500, 5)
    assert ["Rejected: too much", "pay 5#1"] == stage.live(agent, 500, 5)


def test_only_what_the_rule_names_needs_a_leave(stage: Stage, world: World) -> None:
    agent = payer(world, approve=lambda amount, memo="": amount > 100)  # noqa: ARG005 its arguments

    id_ = waits(stage, agent, 5, 500)
    approve(stage, id_)

    assert ["pay 5#1", "pay 500#1"] == stage.live(agent, 5, 500)


def test_an_approval_that_nobody_gives_in_time_expires(
    timed: Stage, clock: ManualClock, world: World
) -> None:
    agent = payer(world, approve_within="1h")
    id_ = waits(timed, agent, 5)
    clock.advance(3600)

    with timed.open() as store, pytest.raises(holdfast.AlreadyAnswered, match="expired"):
        store.approve(id_)
    assert ["Expired: payer.<locals>.pay(amount=5, memo='')"] == timed.live(agent, 5)
    assert [] == world.asked


def test_an_approval_given_in_time_and_not_used_in_time_is_void(
    timed: Stage, clock: ManualClock, world: World
) -> None:
    agent = payer(world, approve_within="1h")
    approve(timed, waits(timed, agent, 5))
    clock.advance(3600)

    assert ["Expired: payer.<locals>.pay(amount=5, memo='')"] == timed.live(agent, 5)
    assert [] == world.asked


def test_a_turn_run_anew_needs_a_new_leave_unless_the_effect_stands(
    stage: Stage, world: World
) -> None:
    @holdfast.effect(approve=True)
    def pay(amount: int) -> str:
        return world.ask(f"pay {amount}")

    @holdfast.agent
    def twice(run: holdfast.Run) -> list[str]:
        for _ in run.turns():
            return [pay(1), pay(2)]
        return []

    approve(stage, waits(stage, twice))
    unused = waits(stage, twice)
    approve(stage, unused)

    with pytest.raises(holdfast.Waiting) as again:
        stage.restart(twice, redo_turn=True)
    assert unused != again.value.question
    assert "amount=2" in again.value.text
    approve(stage, again.value.question)
    assert ["pay 1#1", "pay 2#1"] == stage.live(twice)


def test_a_crash_at_any_moment_uses_a_leave_once_at_most(stage: Stage, world: World) -> None:
    done: list[str] = []

    @holdfast.effect(approve=True, probe=lambda amount: done[0] if done else None)  # noqa: ARG005 its argument
    def pay(amount: int) -> str:
        return world.ask(f"pay {amount}")

    @holdfast.agent
    def once(run: holdfast.Run) -> str:
        for _ in run.turns():
            return pay(7)
        return ""

    approve(stage, waits(stage, once))
    for name, copy, paid in moments(stage, once, outside=lambda: world.asked.count("pay 7")):
        done[:] = ["pay 7#1"] * paid
        before = world.asked.count("pay 7")
        copy.live(once)

        asked = [entry for entry in copy.journal() if isinstance(entry, Questioned)]
        assert 1 == len(asked), name
        assert 1 == paid + world.asked.count("pay 7") - before, name


def test_an_interrupted_effect_that_was_allowed_needs_no_second_leave(
    stage: Stage, world: World
) -> None:
    agent = payer(world)
    approve(stage, waits(stage, agent, 5))
    world.dies_at = "pay 5"
    stage.die(agent, 5)
    world.dies_at = None

    assert ["pay 5#2"] == stage.live(agent, 5)


async def _apay(amount: int) -> str:
    return f"paid {amount}"


def test_an_async_effect_is_allowed_the_same_way(stage: Stage) -> None:
    pay = holdfast.effect(approve=True)(_apay)

    @holdfast.agent
    async def once(run: holdfast.Run) -> str:
        async for _ in run.turns():
            return await pay(7)
        return ""

    approve(stage, waits(stage, once))

    assert "paid 7" == stage.live(once)


def test_outside_turns_a_leave_replays_with_its_effect(stage: Stage, world: World) -> None:
    @holdfast.effect(approve=True)
    def pay(amount: int) -> str:
        return world.ask(f"pay {amount}")

    @holdfast.agent
    def flat(run: holdfast.Run) -> list[str]:
        first = pay(1)
        for _ in run.turns():
            return [first, pay(2)]
        return []

    approve(stage, waits(stage, flat))
    approve(stage, waits(stage, flat))
    assert ["pay 1#1", "pay 2#1"] == stage.live(flat)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"approve": "yes"}, "True or a function"),
        ({"approve": True, "approve_within": "soon"}, "not a duration"),
        ({"approve_within": "1h"}, "add approve="),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_where_it_is_written(
    options: dict[str, Any], why: str
) -> None:
    with pytest.raises(holdfast.UsageError, match=why):
        holdfast.effect(**options)(lambda amount: amount)


def test_a_fork_inherits_no_leave_and_an_effect_that_stands_needs_none(
    stage: Stage, world: World
) -> None:
    agent = payer(world, key="amount")
    approve(stage, waits(stage, agent, 1, 2, 3))
    unused = waits(stage, agent, 1, 2, 3)
    approve(stage, unused)
    with stage.open() as store:
        store.fork(RUN, new_id="fork")

    error = stage.fault(agent, 1, 2, 3, id="fork")
    assert isinstance(error, holdfast.Waiting)
    assert unused != error.question
    assert "amount=2" in error.text
    waits(stage, agent, 1, 2, 3)  # The run itself still has its leave for the second.
    with stage.open() as store:
        assert {RUN: 3, "fork": 2} == {
            item.run: int(item.text.partition("amount=")[2][0]) for item in store.inbox()
        }
        store.approve(error.question)

    after = stage.fault(agent, 1, 2, 3, id="fork")
    assert isinstance(after, holdfast.Waiting)
    assert "amount=3" in after.text
    assert ["pay 1", "pay 2"] == world.asked


def test_a_rollback_revives_no_leave_and_no_question(stage: Stage, world: World) -> None:
    agent = payer(world, key="amount")
    approve(stage, waits(stage, agent, 1, 2))
    unused = waits(stage, agent, 1, 2)
    approve(stage, unused)
    with stage.open() as store:
        store.plan_rollback(RUN, to=f"{RUN}@0").apply()
        assert [] == store.inbox()

    again = waits(stage, agent, 1, 2)

    assert unused != again
    with stage.open() as store, pytest.raises(holdfast.AlreadyAnswered):
        store.approve(unused)
    approve(stage, again)
    assert ["pay 1#1", "pay 2#1"] == stage.live(agent, 1, 2)


@pytest.mark.parametrize("is_async", [True, False])
def test_what_was_allowed_is_done_to_its_end_while_another_call_waits_for_leave(
    stage: Stage, world: World, *, is_async: bool
) -> None:
    @holdfast.effect(approve=True)
    async def apay(amount: int) -> str:
        await asyncio.sleep(0.05)
        return world.ask(f"pay {amount}")

    @holdfast.effect(approve=True)
    def pay(amount: int) -> str:
        under_way.set()
        threading.Event().wait(0.05)
        return world.ask(f"pay {amount}")

    @holdfast.agent
    async def atogether(run: holdfast.Run) -> list[str]:  # noqa: ARG001 every agent takes it
        return list(await asyncio.gather(apay(1), apay(2), apay(3)))

    @holdfast.agent
    def together(run: holdfast.Run) -> list[str]:
        paid: list[str] = []

        def first() -> None:
            paid.append(pay(1))

        thread = threading.Thread(target=run.wrap(first), daemon=True)
        if is_allowed:
            thread.start()
            under_way.wait()
        paid.append(pay(2 if is_allowed else 1))
        thread.join()
        return sorted(paid)

    under_way, is_allowed = threading.Event(), False
    agent = atogether if is_async else together
    for _ in range(3 if is_async else 2):
        waits(stage, agent)
        with stage.open() as store:
            [item] = store.inbox()
            assert "approval" == item.kind
            store.approve(item.id)
        is_allowed = True

    expected = ["pay 1#1", "pay 2#1", "pay 3#1"] if is_async else ["pay 1#1", "pay 2#1"]
    assert expected == stage.live(agent)
    assert [] == world.repeated


def test_what_says_which_calls_need_leave_gets_their_arguments_by_name(
    stage: Stage, world: World
) -> None:
    @holdfast.effect(approve=lambda usd, account: usd > 100)  # noqa: ARG005 in another order
    def refund(account: int, usd: int = 500) -> str:
        return world.ask(f"refund {account} {usd}")

    @holdfast.agent
    def clerk(run: holdfast.Run) -> list[str]:  # noqa: ARG001 an agent takes its run first
        return [refund(4711, 50), refund(7)]

    waits(stage, clerk)

    assert ["refund 4711 50"] == world.asked
