"""`restart --redo-turn`: the unfinished turn anew with today's code; its effects stand."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.store.open import open_store
from tests.engine.kit import RUN, Crash, Stage, World, text

Body = Callable[[holdfast.Run, int], Any]


@holdfast.step
def chat(what: str) -> str:
    return asked(f"chat {what}")


@holdfast.effect(key="order")
def pay(order: str, idempotency_key: str = "") -> str:
    keys.append(idempotency_key)
    return asked(f"pay {order}")


def find(order: str) -> str | None:
    return paid.get(order)


@holdfast.effect(probe=find, key="order")
def probed(order: str) -> str:
    return asked(f"probed {order}")


asked: Callable[[str], str] = str
keys: list[str] = []
paid: dict[str, str] = {}


@pytest.fixture(autouse=True)
def _world(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "asked", world.ask)
    keys.clear()
    paid.clear()


def agent_of(body: Body, turn_of_body: int = 2, last: int = 3) -> holdfast.Agent[[], Any]:
    """An agent whose turn `turn_of_body` is `body`, with a chat in each other turn."""

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        run.state["log"] = []
        for turn in run.turns():
            if turn == turn_of_body:
                run.state["log"].append(body(run, turn))
            else:
                run.state["log"].append(chat(f"{turn}"))
            if turn == last:
                return run.state
        raise AssertionError

    return agent


def test_steps_are_asked_again_and_effects_stand(stage: Stage, world: World) -> None:
    def old(run: holdfast.Run, turn: int) -> None:
        chat("old")
        pay("o1")
        chat("then")
        raise Crash

    def new(run: holdfast.Run, turn: int) -> list[str]:
        return [chat("new"), chat("old"), pay("o1"), chat("then")]

    stage.die(agent_of(old))
    assert isinstance(stage.fault(agent_of(new)), holdfast.Diverged)

    result = stage.restart(agent_of(new), redo_turn=True)

    redone = ["chat new#1", "chat old#2", "pay o1#1", "chat then#2"]
    assert {"log": ["chat 0#1", "chat 1#1", redone, "chat 3#1"]} == result
    assert 1 == world.asked.count("pay o1")
    assert result == stage.live(agent_of(new))


def test_effects_that_stand_may_be_asked_in_another_order_or_not_at_all(
    stage: Stage, world: World
) -> None:
    def old(run: holdfast.Run, turn: int) -> None:
        for order in ("a", "b", "b", "c"):
            pay(order)
        raise Crash

    def new(run: holdfast.Run, turn: int) -> list[str]:
        return [pay("b"), chat("x"), pay("a"), pay("b"), pay("d"), pay("b")]

    stage.die(agent_of(old))
    result = stage.restart(agent_of(new), redo_turn=True)

    assert ["pay b#1", "chat x#1", "pay a#1", "pay b#2", "pay d#1", "pay b#3"] == result["log"][2]
    assert len(keys) == len(set(keys))
    assert 3 == world.asked.count("pay b")


def test_the_old_branch_is_kept(stage: Stage, world: World) -> None:
    def old(run: holdfast.Run, turn: int) -> None:
        chat("old")
        pay("o1")
        raise Crash

    stage.die(agent_of(old))
    before = stage.journal()
    branch = stage.info().branch
    stage.restart(agent_of(lambda _run, _turn: chat("new")), redo_turn=True)

    opened = open_store(stage.path, SystemClock(), key=given_key())
    run = opened.reader.find(RUN)
    assert run is not None
    reader = opened.reader
    kept = [
        entry
        for placed in reader.rows(branch, reader.first(branch), reader.end(branch))
        for entry in placed.row.entries
    ]
    opened.close()
    assert stage.info().branch != branch
    assert before == kept[: len(before)]
    assert "Redone" in stage.kinds()
    assert 2 == stage.kinds().count("Answer") - 2


@pytest.mark.parametrize("times", [2, 4])
def test_a_turn_can_be_redone_again_and_again(stage: Stage, world: World, times: int) -> None:
    def body(number: int, *, is_dying: bool) -> Body:
        def turn(run: holdfast.Run, turn: int) -> list[str]:
            found = [chat(f"take {number}"), pay("o1"), pay(f"extra {number}")]
            if is_dying:
                raise Crash
            return found

        return turn

    stage.die(agent_of(body(0, is_dying=True)))
    for number in range(1, times):
        with pytest.raises(Crash):
            stage.restart(agent_of(body(number, is_dying=True)), redo_turn=True)
    result = stage.restart(agent_of(body(times, is_dying=False)), redo_turn=True)

    expected = [f"chat take {times}#1", "pay o1#1", f"pay extra {times}#1"]
    assert expected == result["log"][2]
    assert 1 == world.asked.count("pay o1")
    assert 2 + times + 1 + 1 == len([what for what in world.asked if what.startswith("chat")])


def test_a_crash_in_the_redone_turn_is_continued_without_redoing(
    stage: Stage, world: World
) -> None:
    def old(run: holdfast.Run, turn: int) -> None:
        chat("old")
        pay("a")
        pay("b")
        raise Crash

    def new(run: holdfast.Run, turn: int) -> list[str]:
        return [pay("b"), chat("new"), pay("a"), chat("last")]

    stage.die(agent_of(old))
    for what in ("chat new", "chat last"):
        world.dies_at = what
        with pytest.raises(Crash):
            stage.restart(agent_of(new), redo_turn=what == "chat new")
    world.dies_at = None
    result = stage.live(agent_of(new))

    assert ["pay b#1", "chat new#2", "pay a#1", "chat last#2"] == result["log"][2]
    assert ["chat last", "chat new"] == world.repeated


@pytest.mark.parametrize("happened", [True, False])
def test_an_effect_in_doubt_is_settled_where_todays_code_asks_for_it(
    stage: Stage, world: World, happened: bool
) -> None:
    def old(run: holdfast.Run, turn: int) -> None:
        chat("old")
        probed("o1")

    def new(run: holdfast.Run, turn: int) -> list[str]:
        return [chat("new"), probed("o1"), chat("last")]

    world.dies_at = "probed o1"
    stage.die(agent_of(old))
    if happened:
        paid["o1"] = "found"
    world.dies_at = "chat last"
    with pytest.raises(Crash):
        stage.restart(agent_of(new), redo_turn=True)
    world.dies_at = None

    result = stage.live(agent_of(new))

    outcome = "found" if happened else "probed o1#2"
    assert ["chat new#1", outcome, "chat last#2"] == result["log"][2]


def test_an_effect_in_doubt_that_todays_code_does_not_ask_for_stops_the_run(
    stage: Stage, world: World
) -> None:
    def old(run: holdfast.Run, turn: int) -> None:
        pay("o1")

    def new(run: holdfast.Run, turn: int) -> str:
        return chat("new")

    world.dies_at = "pay o1"
    stage.die(agent_of(old))
    world.dies_at = None
    with pytest.raises(holdfast.InDoubt) as caught:
        stage.restart(agent_of(new), redo_turn=True)

    assert "pay" in caught.value.effect
    assert holdfast.Status.IN_DOUBT is stage.info().status
    with stage.open() as store:
        store.resolve(RUN, caught.value.key, happened=False)
    assert "chat new#1" == stage.live(agent_of(new))["log"][2]


def test_an_effect_that_moved_out_of_the_loop_is_settled_once(stage: Stage, world: World) -> None:
    def agent(is_new: bool) -> holdfast.Agent[[], Any]:
        @holdfast.agent
        def agent(run: holdfast.Run) -> str:
            found = "" if is_new else probed("o1")
            for _ in run.turns():
                chat("in the loop")
                found = found or probed("o1")
                chat("last")
                break
            return found

        return agent

    world.dies_at = "probed o1"
    stage.die(agent(is_new=False))
    with pytest.raises(Crash):
        stage.restart(agent(is_new=True), redo_turn=True)
    world.dies_at = "chat last"
    stage.die(agent(is_new=True))
    world.dies_at = None

    assert "probed o1#3" == stage.live(agent(is_new=True))


def test_a_run_without_turns_is_redone_from_its_top(stage: Stage, world: World) -> None:
    def agent(is_new: bool) -> holdfast.Agent[[], Any]:
        @holdfast.agent
        def agent(run: holdfast.Run) -> list[str]:
            found = [chat("new")] if is_new else [chat("old")]
            found += [chat("same"), pay("o1")]
            if not is_new:
                raise Crash
            return found

        return agent

    stage.die(agent(is_new=False))

    assert ["chat new#1", "chat same#2", "pay o1#1"] == stage.restart(
        agent(is_new=True), redo_turn=True
    )


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_a_turn_right_after_a_base_is_redone_on_the_whole_state(
    stage: Stage, world: World, offset: int
) -> None:
    def agent(last: int, *, is_new: bool) -> holdfast.Agent[[], Any]:
        @holdfast.agent
        def agent(run: holdfast.Run) -> list[int]:
            chat("before")
            run.state["texts"] = []
            for turn in run.turns():
                chat(f"{turn} {'new' if turn == last and is_new else 'old'}")
                run.state["texts"].append(text(turn, 4000))
                if turn == last:
                    if not is_new:
                        raise Crash
                    return [len(run.state["texts"]), len(set(run.state["texts"]))]
            raise AssertionError

        return agent

    stage.die(agent(60, is_new=False), id="to find where a base is due")
    entries = stage.journal("to find where a base is due")
    last = next(e.turn for e in entries if type(e).__name__ == "Based") + offset  # type: ignore[union-attr]
    world.asked.clear()
    stage.die(agent(last, is_new=False))

    result = stage.restart(agent(last, is_new=True), redo_turn=True)

    assert [last + 1, last + 1] == result
    assert [] == world.repeated
    assert f"chat {last} new" == world.asked[-1]


def test_an_effect_that_stood_and_is_asked_no_more_stays_so_after_a_base(
    stage: Stage, world: World
) -> None:
    def agent(is_new: bool) -> holdfast.Agent[[], Any]:
        @holdfast.agent
        def agent(run: holdfast.Run) -> int:
            if not is_new:
                pay("o1")
                raise Crash
            chat("before")
            for turn in run.turns():
                chat(f"turn {turn}")
                run.state.setdefault("texts", []).append(text(turn, 9000))
                if turn == 40:
                    return turn
            raise AssertionError

        return agent

    stage.die(agent(is_new=False))
    world.dies_at = "chat turn 5"
    with pytest.raises(Crash):
        stage.restart(agent(is_new=True), redo_turn=True)
    world.dies_at = "chat turn 39"
    stage.die(agent(is_new=True))
    world.dies_at = None

    assert 40 == stage.live(agent(is_new=True))
    assert "Based" in stage.kinds()
    assert 1 == world.asked.count("pay o1")


def test_usage_and_reason_of_a_redone_turn_are_recorded(stage: Stage, world: World) -> None:
    def old(run: holdfast.Run, turn: int) -> None:
        raise Crash

    stage.die(agent_of(old))
    with stage.open() as store:
        store.restart(
            RUN,
            agent=agent_of(lambda _run, _turn: chat("new")),
            redo_turn=True,
            reason="a typo in the prompt",
        )

    redone = [e for e in stage.journal() if type(e).__name__ == "Redone"]
    assert ["a typo in the prompt"] == [e.reason for e in redone]  # type: ignore[union-attr]


@holdfast.effect(key="order")
def charge(order: str, euros: int) -> str:
    return asked(f"charge {order} {euros}")


def test_another_effect_about_the_same_thing_is_blocked_until_a_person_allows_it(
    stage: Stage, world: World
) -> None:
    def old(run: holdfast.Run, turn: int) -> None:
        charge("o1", 10)
        raise Crash

    def new(run: holdfast.Run, turn: int) -> list[str]:
        return [charge("o2", 3), charge("o1", 12), charge("o1", 10)]

    stage.die(agent_of(old))
    with pytest.raises(holdfast.Blocked) as blocked:
        stage.restart(agent_of(new), redo_turn=True)
    before = [each for each in world.asked if each.startswith("charge")]
    with stage.open() as store:
        store.allow(RUN, blocked.value.key, reason="the fees are due")
    result = stage.restart(agent_of(new))

    assert ["charge o1 10", "charge o2 3"] == before
    assert ["charge o2 3#1", "charge o1 12#1", "charge o1 10#1"] == result["log"][2]
    assert [] == world.repeated


def test_what_was_asked_for_again_stands_in_nobodys_way(stage: Stage, world: World) -> None:
    def old(run: holdfast.Run, turn: int) -> None:
        charge("o1", 10)
        raise Crash

    def new(run: holdfast.Run, turn: int) -> list[str]:
        return [charge("o1", 10), charge("o1", 12)]

    stage.die(agent_of(old))
    result = stage.restart(agent_of(new), redo_turn=True)

    assert ["charge o1 10#1", "charge o1 12#1"] == result["log"][2]


@holdfast.agent
def buyer(run: holdfast.Run, euros: int) -> str:
    return charge("o1", euros)


@pytest.mark.parametrize("euros", [10, 12])
def test_what_a_child_did_before_is_not_done_by_the_child_of_the_turn_run_anew(
    stage: Stage, world: World, euros: int
) -> None:
    def old(run: holdfast.Run, turn: int) -> None:
        run.child(buyer, 10)
        raise Crash

    def new(run: holdfast.Run, turn: int) -> str:
        return run.child(buyer, euros)

    stage.die(agent_of(old))
    if euros == 10:
        assert "charge o1 10#1" == stage.restart(agent_of(new), redo_turn=True)["log"][2]
    else:
        with pytest.raises(holdfast.Blocked):
            stage.restart(agent_of(new), redo_turn=True)

    assert ["charge o1 10"] == [each for each in world.asked if each.startswith("charge")]
