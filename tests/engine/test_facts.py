"""What reports are made of, read from real runs: spent, spared, lost."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.model.run import Status
from holdfast.policy.usage import total
from holdfast.report.cost import cost_of
from holdfast.report.facts import Facts, facts_of, kin_of
from holdfast.report.history import case_of
from holdfast.report.sizes import added
from holdfast.report.sla import keep
from holdfast.store.open import open_store
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Crash, Stage, World

WORDS = [f"w{n} " for n in range(10)]


def facts(stage: Stage) -> Facts:
    opened = open_store(stage.path, SystemClock(), must_exist=True)
    try:
        [found] = facts_of(opened, only=RUN)
    finally:
        opened.close()
    return found


def talker(world: World, turns: int = 3) -> holdfast.Agent[..., Any]:
    @holdfast.step
    def chat(n: int) -> dict[str, Any]:
        world.ask(f"chat {n}")
        usage = {"input_tokens": 10, "output_tokens": 1, "usd": 0.25}
        return {"model": "m", "usage": usage}

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> int:
        for turn in run.turns():
            chat(turn)
            run.state["turn"] = turn
            if turn == turns - 1:
                break
        return turns

    return agent


def test_a_restart_spares_what_was_recorded_before_it(stage: Stage, world: World) -> None:
    agent = talker(world)
    world.dies_at = "chat 2"
    stage.die(agent)
    world.dies_at = None
    stage.live(agent)

    found = facts(stage)
    cost = cost_of([found])

    assert (2, 1) == (found.lives, cost.restarts)
    assert (33, 22) == tuple(
        (used.tokens_in or 0) + (used.tokens_out or 0) for used in (cost.spent, cost.saved)
    )
    assert (0.75, 0.5, None) == (cost.spent.usd, cost.saved.usd, cost.lost.usd)
    assert 1 == len(found.at_risk_s)


def test_a_rollback_loses_what_stands_on_the_branch_that_was_left(
    stage: Stage, world: World
) -> None:
    agent = talker(world)
    stage.live(agent)
    with stage.open() as store:
        first = store.checkpoints(RUN)[0]
        store.plan_rollback(RUN, to=first).apply()
        store.restart(RUN, agent=agent)

    found = facts(stage)

    assert 5 == len(found.spent)
    assert 2 == len(found.lost)
    assert 0.5 == total(found.lost).usd
    # Only what stands before the point is not spent again; the rest was.
    assert (1, 0.25) == (len(found.saved), total(found.saved).usd)
    assert 1 == len(found.at_risk_s)


def test_a_fork_that_is_run_for_the_first_time_is_no_restart(stage: Stage, world: World) -> None:
    agent = talker(world)
    stage.live(agent)
    with stage.open() as store:
        fork = store.fork(RUN, at=store.checkpoints(RUN)[0])
        store.run(agent, id=fork.id)
        found = cost_of(list(facts_of(store.opened)))

    assert (2, 0) == (found.runs, found.restarts)
    assert (1.25, None) == (found.spent.usd, found.saved.usd)


class Speaker:
    """Yields words; dies before the eighth, once."""

    def __init__(self) -> None:
        self.is_dead = False

    def go_on(self, prefix: Sequence[str] = ()) -> Iterator[str]:
        for at in range(len(prefix), len(WORDS)):
            if at == 8 and not self.is_dead:
                self.is_dead = True
                raise Crash
            yield WORDS[at]

    def anew(self) -> Iterator[str]:
        yield from self.go_on()


def listener(speak: Callable[..., Iterator[str]]) -> holdfast.Agent[..., Any]:
    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        return len(list(run.stream(speak, every=3, name="chat")))

    return agent


def test_a_stream_that_goes_on_loses_nothing_and_one_begun_anew_its_part(tmp_path: Path) -> None:
    told = []
    for name in ("go_on", "anew"):
        speaker, stage = Speaker(), Stage(tmp_path / name)

        agent = listener(getattr(speaker, name))
        stage.die(agent)
        assert 10 == stage.live(agent)
        cost = cost_of([facts(stage)])
        told.append((cost.spent.tokens_out, cost.saved.tokens_out, cost.lost.tokens_out))

    assert [(10, 8, None), (18, None, 8)] == told


def test_a_stream_that_is_asked_for_after_a_rollback_is_not_lost(stage: Stage) -> None:
    speaker = Speaker()

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            if turn == 1:
                list(run.stream(speaker.anew, every=3, name="chat"))
                break

    stage.die(agent)
    stage.live(agent)
    with stage.open() as store:
        store.plan_rollback(RUN, to=store.checkpoints(RUN)[0]).apply()
        store.restart(RUN, agent=agent)

    cost = cost_of([facts(stage)])
    assert (8 + 10 + 10, 8 + 10) == (cost.spent.tokens_out, cost.lost.tokens_out)


def test_a_turn_that_is_run_anew_spares_only_what_stands_before_it(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def think(what: str) -> dict[str, Any]:
        world.ask(what)
        return {"model": "m", "usage": {"input_tokens": 1}}

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            think(f"first {turn}")
            think(f"second {turn}")
            if turn == 1:
                break

    world.dies_at = "second 1"
    stage.die(agent)
    world.dies_at = None
    stage.restart(agent, redo_turn=True)

    found = facts(stage)
    assert ["first 1", "second 1"] == world.repeated
    assert (5, 2, 1) == (len(found.spent), len(found.saved), len(found.lost))
    assert ({}, 1) == (found.replayed, len(found.at_risk_s))


def test_an_effect_that_surely_did_not_happen_is_not_in_doubt(stage: Stage) -> None:
    @holdfast.effect(not_done=(ValueError,))
    def pay(n: int) -> None:
        raise ValueError if n else OSError

    @holdfast.agent
    def agent(_run: holdfast.Run) -> None:
        with contextlib.suppress(ValueError):
            pay(1)
        pay(0)

    stage.fault(agent)

    assert (1, 1) == (facts(stage).in_doubt, facts(stage).not_done)


def test_a_stream_is_a_unit_of_work_for_the_advisor(stage: Stage) -> None:
    speaker = Speaker()
    speaker.is_dead = True
    stage.live(listener(speaker.go_on))

    opened = open_store(stage.path, SystemClock(), must_exist=True)
    try:
        case = case_of(opened)
    finally:
        opened.close()

    assert 1 == len(case.units)
    assert "process" in [cause.name for cause in case.causes]
    assert any("price of some answers is not recorded" in note for note in case.notes)


def test_calls_side_by_side_and_streams_take_their_time_once(tmp_path: Path) -> None:
    clock = ManualClock()
    stage = Stage(tmp_path / "store", clock)
    barrier = asyncio.Barrier(4)

    @holdfast.step
    async def ask(n: int) -> int:
        await barrier.wait()
        if n == 0:
            clock.advance(10)
        await barrier.wait()
        return n

    async def speak() -> AsyncIterator[int]:
        for n in range(4):
            clock.advance(5)
            yield n

    @holdfast.agent
    async def agent(run: holdfast.Run) -> None:
        await asyncio.gather(*(ask(n) for n in range(4)))
        clock.advance(1)
        [n async for n in run.stream(speak, every=2)]
        clock.advance(2)
        run.call(abs, -1)

    stage.live(agent)

    found = facts(stage)
    assert 30 == pytest.approx(found.worked_s)
    assert 3 == pytest.approx(found.between_s)


def test_a_run_that_waits_for_a_person_has_not_ended(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> object:
        return run.ask("go on?")

    stage.fault(agent)

    assert (Status.WAITING, False) == (facts(stage).status, facts(stage).is_ended)
    assert keep([facts(stage)], 0.0).success is None


def test_an_effect_that_stands_when_its_turn_is_run_anew_is_spent_once_and_not_lost(
    stage: Stage, world: World
) -> None:
    def told(tokens: int) -> dict[str, Any]:
        return {"model": "m", "usage": {"input_tokens": tokens}}

    @holdfast.effect
    def pay(n: int) -> dict[str, Any]:
        world.ask(f"pay {n}")
        return told(100)

    @holdfast.step
    def think(what: str) -> dict[str, Any]:
        world.ask(what)
        return told(1)

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            pay(turn)
            think("before")
            think("after")
            break

    world.dies_at = "after"
    stage.die(agent)
    world.dies_at = None
    stage.restart(agent, redo_turn=True)

    found = facts(stage)
    assert 1 == world.asked.count("pay 0")
    assert (103, 1) == (total(found.spent).tokens_in, total(found.lost).tokens_in)


def test_large_values_are_bytes_that_a_run_added_and_shared_ones_count_once(
    stage: Stage,
) -> None:
    @holdfast.step
    def fetch(n: int) -> bytes:
        return random.Random(n).randbytes(200_000)  # noqa: S311 it is to repeat

    @holdfast.agent
    def agent(run: holdfast.Run, own: int) -> int:
        run.state["docs"] = [fetch(own), fetch(0)]
        return len(run.state["docs"])

    for n in (1, 2, 3):
        stage.live(agent, n, id=f"run-{n}")

    opened = open_store(stage.path, SystemClock(), must_exist=True)
    try:
        third, second, first = (run.bytes for run in facts_of(opened))
        case = case_of(opened)
        run = opened.reader.find("run-1")
        assert run is not None
        alone = added(opened, [run])
    finally:
        opened.close()

    assert [2, 1, 1] == [size // 200_000 for size in (third, second, first)]
    assert 2 == alone // 200_000
    assert case.units[0].bytes > 200_000


def test_an_effect_that_is_meant_again_is_in_doubt_and_no_longer_not_done(stage: Stage) -> None:
    errors = [ValueError, OSError]

    @holdfast.effect(not_done=(ValueError,), retry=holdfast.Retry(on=(ValueError,), base=0))
    def pay() -> None:
        raise errors.pop(0)

    @holdfast.agent
    def agent(_run: holdfast.Run) -> None:
        pay()

    stage.fault(agent)

    found = facts(stage)
    assert (0, 0, 1) == (found.effects, found.not_done, found.in_doubt)


def test_an_outage_before_a_turn_is_run_anew_is_not_time_between_calls(tmp_path: Path) -> None:
    clock, world = ManualClock(), World()
    stage = Stage(tmp_path / "store", clock)

    @holdfast.effect
    def pay() -> None:
        clock.advance(5)

    @holdfast.step
    def think(what: str) -> None:
        clock.advance(10)
        world.ask(what)

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for _ in run.turns():
            pay()
            clock.advance(0.5)
            think("first")
            clock.advance(0.5)
            think("second")
            break

    world.dies_at = "second"
    stage.die(agent)
    clock.advance(5000)
    world.dies_at = None
    stage.restart(agent, redo_turn=True)

    # Between the effect and `first`, and between the two of the turn run anew.
    assert 1.0 == facts(stage).between_s
    with stage.open() as store:
        assert "a record blocks 500 ms" in " ".join(case_of(store.opened).notes)


def test_a_restart_with_a_persons_answer_spares_tokens_and_no_outage(stage: Stage) -> None:
    @holdfast.step
    def think() -> dict[str, Any]:
        return {"model": "m", "usage": {"input_tokens": 1}}

    @holdfast.agent
    def agent(run: holdfast.Run) -> object:
        think()
        return run.ask("Ship it?")

    error = stage.fault(agent)
    assert isinstance(error, holdfast.Waiting)
    with stage.open() as store:
        store.answer(error.question, "yes")
    assert "yes" == stage.live(agent)

    found = facts(stage)
    assert (2, 1, []) == (found.lives, len(found.saved), found.at_risk_s)


def test_time_at_rest_is_no_time_of_a_run_and_an_outage_is(tmp_path: Path) -> None:
    clock, world = ManualClock(), World()
    stage = Stage(tmp_path / "store", clock)

    @holdfast.step
    def think(what: str) -> None:
        clock.advance(10)
        world.ask(what)

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            think(f"turn {turn}")
            if turn == 1:
                run.ask("go on?")
                return

    world.dies_at = "turn 1"
    stage.die(agent)
    clock.advance(100)  # Down: the process is gone.
    world.dies_at = None
    error = stage.fault(agent)
    assert isinstance(error, holdfast.Waiting)
    clock.advance(86_400)  # Waiting for a person.
    with stage.open() as store:
        store.answer(error.question, "yes")
    stage.live(agent)
    clock.advance(7 * 86_400)  # Over, until somebody rolls it back.
    with stage.open() as store:
        store.plan_rollback(RUN, to=0).apply()
    stage.fault(agent)

    found = facts(stage)
    # Three turns, one of them asked for twice, and the outage between.
    assert 140 == pytest.approx(found.time_s)
    assert 8 * 86_400 == pytest.approx(found.rested_s)
    [outage] = found.episodes
    down_s = outage.took_s("resume") or 0.0
    assert 1 - down_s / 140 == pytest.approx(keep([found], clock.now()).availability)


def test_a_restart_spares_what_its_ended_children_and_theirs_used(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def chat(what: str) -> dict[str, Any]:
        world.ask(what)
        return {"model": "m", "usage": {"input_tokens": 10, "usd": 0.25}}

    @holdfast.agent
    def grandchild(run: holdfast.Run) -> None:  # noqa: ARG001 an agent takes one
        chat("grandchild")

    @holdfast.agent
    def child(run: holdfast.Run) -> None:
        chat("child")
        run.child(grandchild)

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        run.children([(child,), (child,)])
        chat("after")

    world.dies_at = "after"
    stage.die(agent)
    world.dies_at = None
    stage.live(agent)

    opened = open_store(stage.path, SystemClock(), must_exist=True)
    with contextlib.closing(opened):
        found = cost_of(list(facts_of(opened)))
        alone = list(facts_of(opened, only=RUN))
        by_itself = cost_of(alone, kin=kin_of(opened, alone))
    assert (50, 1.25) == (found.spent.tokens_in, found.spent.usd)
    assert (40, 1.0) == (found.saved.tokens_in, found.saved.usd)
    assert (10, 0.25) == (by_itself.spent.tokens_in, by_itself.spent.usd)
    assert found.saved == by_itself.saved


def test_a_task_of_the_advisor_is_a_run_with_its_children(tmp_path: Path) -> None:
    clock, world = ManualClock(), World()
    stage = Stage(tmp_path / "store", clock)

    @holdfast.step
    def chat(what: str) -> dict[str, Any]:
        clock.advance(10)
        world.ask(what)
        return {"model": "m", "usage": {"input_tokens": 10, "usd": 0.25}}

    @holdfast.agent
    def child(run: holdfast.Run, name: str) -> None:  # noqa: ARG001 an agent takes one
        chat(f"first of {name}")
        chat(f"second of {name}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for name in ("a", "b", "c"):
            run.child(child, name)
        chat("last")

    world.dies_at = "second of b"  # One failure, of the process that both are in.
    stage.die(agent)
    world.dies_at = None
    stage.live(agent)

    with stage.open() as store:
        case = case_of(store.opened)
    [unit] = case.units
    assert 1.75 == pytest.approx(unit.usd)
    assert "4 runs (3 of them children), 1 failure (" in case.notes[0]
    assert "a turn makes 10 records" in " ".join(case.notes)
