"""Checkpoints come when the cadence says, hold the state of their moment, and can be used."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.model.journal import Answer, Intended, Kept, Resumed, Started, TurnEnded
from holdfast.policy.adaptive import Learnt, learnt_of
from holdfast.report.timeline import timeline
from holdfast.store.open import open_store
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Crash, Stage, World

TURNS = 3


@holdfast.step
def think(n: int) -> dict[str, Any]:
    return {"n": n, "usage": {"input_tokens": 40, "output_tokens": 60}}


@holdfast.step
def chat(n: int, world: str = "") -> str:
    return f"{n}{world}"


@holdfast.effect
def mail(n: int) -> int:
    return n


@holdfast.effect(undo=lambda _outcome, n: None)  # noqa: ARG005 it takes the arguments
def book(n: int) -> int:
    return n


def talker(
    act: Callable[[holdfast.Run, int], None],
    turns: int = TURNS,
    **declared: Any,  # noqa: ANN401 what @agent takes
) -> holdfast.Agent[..., Any]:
    @holdfast.agent(**declared)
    def agent(run: holdfast.Run) -> list[int]:
        run.state.update(done=[], memory={"turns": 0})
        for turn in run.turns():
            act(run, turn)
            run.state["memory"]["turns"] = turn
            if turn == turns - 1:
                break
        return list(run.state["done"])

    return agent


def two_steps(run: holdfast.Run, turn: int) -> None:
    for part in (0, 1):
        run.state["done"].append(think(2 * turn + part)["n"])


def kept(stage: Stage) -> list[tuple[str, int]]:
    """The checkpoints within turns: the rule, and the answers before it."""
    return [(each.why, each.steps) for each in stage.journal() if isinstance(each, Kept)]


def marked(stage: Stage) -> list[int]:
    return [e.turn for e in stage.journal() if isinstance(e, TurnEnded) and e.mark is not None]


@pytest.mark.parametrize(
    ("cadence", "within", "at_ends"),
    [
        (holdfast.never(), [], []),
        (holdfast.every(turns=2), [], [1]),
        (holdfast.every(steps=1), [("steps", n) for n in range(1, 7)], []),
        (holdfast.every(steps=3), [("steps", 3), ("steps", 6)], []),
        (holdfast.every(tokens=250), [("tokens", 3), ("tokens", 6)], []),
        (holdfast.every(turns=2) | holdfast.every(steps=3), [("steps", 3)], [1]),
    ],
)
def test_a_checkpoint_comes_after_so_much_work(
    stage: Stage, cadence: holdfast.Cadence, within: list[tuple[str, int]], at_ends: list[int]
) -> None:
    stage.live(talker(two_steps, checkpoint=cadence))

    assert within == kept(stage)
    assert at_ends == [turn for turn in marked(stage) if turn < TURNS - 1]


def test_a_checkpoint_within_a_turn_is_restored_compared_and_forked(stage: Stage) -> None:
    agent = talker(two_steps, checkpoint=holdfast.every(steps=1))
    stage.live(agent)

    with stage.open() as store:
        points = store.checkpoints(RUN)
        states = [store.restore(point)[1]["done"] for point in points]
        forked = store.fork(RUN, at=points[3], new_id="fork")
        result = store.run(agent, id=forked.id)

        assert [[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]] == states
        assert ["checkpoint"] * 6 == [point.kind for point in points]
        assert [1, 2, 3, 4, 5, 6] == [point.step for point in points]
        assert [0, 1, 2, 3, 4, 5] == result


def test_a_restart_within_a_turn_with_checkpoints_in_it_goes_on_as_ever(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def ask(n: int) -> str:
        return world.ask(str(n))

    def act(run: holdfast.Run, turn: int) -> None:
        for part in range(3):
            run.state["done"].append({"text": ask(3 * turn + part)})

    agent = talker(act, checkpoint=holdfast.every(steps=1))
    for dies_at in ("1", "4", "8"):
        world.dies_at = dies_at
        stage.die(agent)
        world.dies_at = None

    result = [each["text"] for each in stage.live(agent)]

    assert ["0#1", "1#2", "2#1", "3#1", "4#2", "5#1", "6#1", "7#1", "8#2"] == result
    with stage.open() as store:
        for point in store.checkpoints(RUN):
            assert point.step == len(store.restore(point)[1]["done"]) + 1


def test_work_since_the_last_checkpoint_is_counted_through_a_crash(
    stage: Stage, world: World
) -> None:
    def act(run: holdfast.Run, turn: int) -> None:
        two_steps(run, turn)
        if turn == 1 and world.ask("die"):
            raise Crash if world.asked.count("die") == 1 else ZeroDivisionError

    stage.die(talker(act, checkpoint=holdfast.every(steps=5)))
    stage.live(talker(two_steps, checkpoint=holdfast.every(steps=5)))

    assert [("steps", 5)] == kept(stage)


def test_a_snapshot_does_not_count_as_the_checkpoint_when_a_crash_comes(stage: Stage) -> None:
    def declared(act: Callable[[holdfast.Run, int], None]) -> holdfast.Agent[..., Any]:
        snapshot = {"memory": holdfast.every(steps=1), "done": holdfast.every(steps=4)}
        return talker(act, checkpoint=holdfast.every(steps=5), snapshot=snapshot)

    def die(run: holdfast.Run, turn: int) -> None:
        two_steps(run, turn)
        if turn == 1:
            raise Crash

    stage.die(declared(die))
    stage.live(declared(two_steps))

    found = [entry for entry in stage.journal() if isinstance(entry, Kept)]
    assert [5] == [entry.steps for entry in found if entry.only is None]
    assert [4] == [entry.steps for entry in found if "done" in (entry.only or [])]


def test_work_is_counted_from_a_checkpoint_that_the_agent_asked_for(stage: Stage) -> None:
    def act(run: holdfast.Run, turn: int) -> None:
        two_steps(run, turn)
        if turn == 0:
            run.checkpoint()
            run.checkpoint(only=["memory"])

    snapshot = {"memory": holdfast.every(steps=4)}
    stage.live(talker(act, checkpoint=holdfast.every(steps=3), snapshot=snapshot))

    found = [(e.only, e.steps) for e in stage.journal() if isinstance(e, Kept)]
    assert [(None, 2 + 3), (["memory"], 2 + 4)] == found


@pytest.mark.parametrize("cadence", [holdfast.before_irreversible(), holdfast.adaptive()])
def test_before_an_effect_that_cannot_be_undone_the_state_is_saved_with_its_intent(
    stage: Stage, cadence: holdfast.Cadence
) -> None:
    def act(run: holdfast.Run, turn: int) -> None:
        run.state["done"].append(turn)
        book(turn)
        mail(turn)

    stage.live(talker(act, checkpoint=cadence))

    journal = stage.journal()
    before = [journal[at - 1] for at, e in enumerate(journal) if isinstance(e, Intended)]
    names = [e.call.name for e in journal if isinstance(e, Intended)]
    assert ["book", "mail"] * TURNS == names
    assert [False, True] * TURNS == [isinstance(each, Kept) for each in before]


def test_snapshots_of_sections_have_a_cadence_of_their_own(stage: Stage) -> None:
    agent = talker(
        two_steps,
        turns=4,
        checkpoint=holdfast.every(turns=3),
        snapshot={"memory": holdfast.every(turns=1), "done": holdfast.every(steps=3)},
    )
    stage.live(agent)

    with stage.open() as store:
        points = [p for p in store.checkpoints(RUN) if p.kind == "snapshot"]
        memories = [store.restore(p)[1] for p in points if p.sections == ["memory"]]
        done = [store.restore(p)[1] for p in points if p.sections == ["done"]]

    assert [2] == marked(stage)
    assert [{"memory": {"turns": turn}} for turn in range(3)] == memories
    assert [{"done": [0, 1]}, {"done": [0, 1, 2, 3, 4]}] == done


def test_snapshots_come_at_events_too(stage: Stage) -> None:
    @holdfast.agent
    def helper(_run: holdfast.Run) -> None:
        pass

    def act(run: holdfast.Run, turn: int) -> None:
        book(turn)
        mail(turn)
        run.child(helper, id=f"helper-{turn}")

    agent = talker(
        act,
        turns=2,
        checkpoint=holdfast.never(),
        snapshot={"memory": "before_irreversible", "done": "on_child", "no such": "on_child"},
    )
    stage.live(agent)

    found = [(each.why, each.only) for each in stage.journal() if isinstance(each, Kept)]
    assert [("before_irreversible", ["memory"]), ("on_child", ["done"])] * 2 == found


def test_an_invalid_state_is_not_published_within_a_turn(stage: Stage) -> None:
    @holdfast.validate
    def even(state: dict[str, Any]) -> bool:
        return len(state["done"]) % 2 == 0

    stage.live(talker(two_steps, checkpoint=holdfast.every(steps=1), validate=even))

    assert [1, 3, 5] == [steps for _, steps in kept(stage)]


def test_a_critical_section_tightens_the_cadence(stage: Stage) -> None:
    def act(run: holdfast.Run, turn: int) -> None:
        think(turn)
        with run.critical():
            think(10 + turn)
            think(20 + turn)

    stage.live(talker(act, turns=2, checkpoint=holdfast.every(turns=9)))

    assert [("steps", 2), ("steps", 3), ("steps", 5), ("steps", 6)] == kept(stage)


def test_by_the_clock_the_state_is_saved_as_the_step_began_while_it_runs(tmp_path: Path) -> None:
    clock = ManualClock()
    stage = Stage(tmp_path / "store", clock)

    @holdfast.step
    def long(n: int) -> int:
        clock.advance(31)
        until = time.monotonic() + 20
        while not kept(stage) and time.monotonic() < until:
            time.sleep(0.02)
        return n

    def act(run: holdfast.Run, turn: int) -> None:
        run.state["done"].append(turn)
        run.state["done"].append(long(turn))

    stage.live(talker(act, turns=1, checkpoint=holdfast.every(seconds=30)))

    assert [("seconds", 0)] == kept(stage)
    with stage.open() as store:
        [point] = store.checkpoints(RUN)
        assert [0] == store.restore(point)[1]["done"]


def test_in_one_long_step_snapshots_and_checkpoints_keep_their_own_time(tmp_path: Path) -> None:
    clock = ManualClock()
    stage = Stage(tmp_path / "store", clock)

    @holdfast.step
    def long(n: int) -> int:
        for passed, saves in ((11, 1), (21, 2), (60, 2)):
            clock.advance(passed)
            until = time.monotonic() + (20 if saves > len(kept(stage)) else 0.3)
            while len(kept(stage)) < saves + (passed == 60) and time.monotonic() < until:
                time.sleep(0.02)
        return n

    def act(run: holdfast.Run, turn: int) -> None:
        run.state["done"].append(long(turn))

    agent = talker(
        act,
        turns=1,
        checkpoint=holdfast.every(seconds=30),
        snapshot={"memory": holdfast.every(seconds=10)},
    )
    stage.live(agent)

    with stage.open() as store:
        points = [point for point in store.checkpoints(RUN) if point.step == 0]
    assert ["snapshot", "checkpoint"] == [point.kind for point in points]


def test_a_turn_with_threads_of_its_own_is_saved_at_its_end_only(stage: Stage) -> None:
    def act(run: holdfast.Run, turn: int) -> None:
        thread = threading.Thread(target=run.wrap(think), args=(100 + turn,))
        thread.start()
        thread.join()
        two_steps(run, turn)

    stage.live(talker(act, checkpoint=holdfast.every(steps=1)))

    assert [] == kept(stage)
    assert [0, 1] == [turn for turn in marked(stage) if turn < TURNS - 1]


def test_an_asynchronous_agent_is_saved_alike(stage: Stage) -> None:
    @holdfast.step
    async def athink(n: int) -> int:
        await asyncio.sleep(0)
        return n

    @holdfast.agent(checkpoint=holdfast.every(steps=2))
    async def agent(run: holdfast.Run) -> None:
        run.state["done"] = []
        async for turn in run.turns():
            run.state["done"].append(await athink(turn))
            if turn == 3:
                break

    stage.live(agent)

    assert [("steps", 2), ("steps", 4)] == kept(stage)


def test_what_is_said_of_a_run_goes_before_its_agent_and_stays(stage: Stage) -> None:
    agent = talker(two_steps, checkpoint=holdfast.every(turns=1))
    dying = talker(_die_in_turn_1, checkpoint=holdfast.every(turns=1))
    stage.die(dying, checkpoint=holdfast.every(steps=4))
    stage.live(agent)

    assert [] == marked(stage)
    assert [("steps", 4)] == kept(stage)


def test_how_a_run_is_saved_is_told_of_the_life_it_is_in(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> tuple[str, str | None]:
        with contextlib.closing(open_store(stage.path, SystemClock(), must_exist=True)) as opened:
            run = opened.reader.find(RUN)
            assert run is not None
            found = timeline(opened.reader, run).pace
            return str(found.checkpoint), found.durability

    dying = talker(_die_in_turn_1, checkpoint=holdfast.every(turns=1))
    stage.die(dying)
    assert ("turns=1", None) == told()

    monkeypatch.setenv("HOLDFAST_DURABILITY", "async")
    stage.die(dying, checkpoint=holdfast.every(steps=4))
    assert ("steps=4", "async") == told()

    monkeypatch.delenv("HOLDFAST_DURABILITY")
    stage.live(talker(two_steps, checkpoint=holdfast.every(turns=1)))
    assert ("turns=1", None) == told()


def test_snapshots_are_said_of_a_run_and_of_a_store_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = talker(two_steps, checkpoint="turns=2")

    def sections(id_: str) -> list[list[str] | None]:
        with stage.open() as store:
            return [p.sections for p in store.checkpoints(id_) if p.kind == "snapshot"]

    stage.live(agent, id="told", snapshot={"memory": "turns=1"})
    monkeypatch.setenv("HOLDFAST_SNAPSHOT", "memory: turns=3; done: turns=1")
    stage.live(agent, id="from-the-store")
    stage.live(agent, id="over-the-store", snapshot={"done": holdfast.every(turns=3)})

    assert [["memory"]] * 2 == sections("told")
    assert [["done"]] * 2 == sections("from-the-store")
    assert [] == sections("over-the-store")


def _die_in_turn_1(run: holdfast.Run, turn: int) -> None:
    if turn == 1:
        raise Crash
    two_steps(run, turn)


def test_the_store_says_it_for_agents_that_do_not(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_CHECKPOINT", "steps=4 | before_irreversible")
    monkeypatch.setenv("HOLDFAST_DURABILITY", "bounded")
    stage.live(talker(two_steps))

    started = stage.journal()[0]
    assert isinstance(started, Started)
    assert started.pace is not None
    assert ("steps=4 | before_irreversible", "bounded") == (
        str(started.pace.checkpoint),
        started.pace.durability,
    )
    assert [("steps", 4)] == kept(stage)


@pytest.mark.parametrize(
    "said",
    [
        {"checkpoint": "hourly"},
        {"durability": "never"},
        {"checkpoint": 3},
        {"snapshot": "memory"},
        {"snapshot": "memory: hourly"},
        {"snapshot": ": turns=1"},
        {"snapshot": {"memory": 3}},
        {"snapshot": 3},
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_begins(
    stage: Stage, said: dict[str, Any]
) -> None:
    with stage.open() as store, pytest.raises(holdfast.UsageError):
        store.run(talker(two_steps), id=RUN, **said)
    with pytest.raises(holdfast.UsageError):
        holdfast.open(stage.path, **said)


@pytest.mark.parametrize("durability", ["bounded", "async"])
def test_answers_that_are_not_waited_for_reach_the_disk_by_themselves(
    stage: Stage, durability: str
) -> None:
    seen: list[int] = []

    def act(run: holdfast.Run, turn: int) -> None:
        two_steps(run, turn)
        until = time.monotonic() + 20
        while stage.kinds().count("Answer") < 2 and time.monotonic() < until:
            time.sleep(0.02)
        seen.append(stage.kinds().count("Answer"))

    stage.live(talker(act, turns=1), durability=durability)

    assert [2] == seen


@pytest.mark.parametrize(("turn_s", "at_ends"), [(0.01, []), (10.0, [0, 1, 2])])
def test_an_adaptive_cadence_saves_as_often_as_pays(
    tmp_path: Path, turn_s: float, at_ends: list[int]
) -> None:
    clock = ManualClock()
    stage = Stage(tmp_path / "store", clock)

    def act(run: holdfast.Run, turn: int) -> None:
        clock.advance(turn_s)
        run.state["done"].append(turn)

    stage.live(talker(act, turns=4, checkpoint=holdfast.adaptive()))

    assert at_ends == marked(stage)


class Slow:
    """An object that takes five seconds to be captured."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock

    def capture(self) -> str:
        self.clock.advance(5)
        return "slow"

    def restore(self, value: str) -> None:
        """Nothing of it is needed."""


@pytest.mark.parametrize("checkpoint", [None, holdfast.adaptive()])
def test_adaptive_snapshots_keep_the_cap_with_the_checkpoints_together(
    tmp_path: Path, checkpoint: holdfast.Cadence | None
) -> None:
    clock = ManualClock()
    stage = Stage(tmp_path / "store", clock)

    @holdfast.agent(checkpoint=checkpoint, snapshot={"memory": holdfast.adaptive()})
    def agent(run: holdfast.Run) -> None:
        run.attach("memory", Slow(clock))
        for turn in run.turns():
            clock.advance(2)
            chat(turn)
            if turn == 99:
                break

    stage.live(agent)

    saves = [each for each in stage.journal() if isinstance(each, Kept)]
    chosen = len(saves) + len(marked(stage))
    assert [each for each in saves if each.only is not None]
    # Calls and turn's ends capture too, and are no saves; what the first costs is not known.
    assert 5 * chosen <= 0.15 * clock.monotonic() + 2 * 5


@pytest.mark.parametrize(
    ("sla", "is_saved"),
    [
        (holdfast.SLA(), False),
        (holdfast.SLA(turn_usd=1000, breach_usd_per_hour=0.001), True),
        (holdfast.SLA(turn_usd=1000), False),
    ],
)
def test_an_adaptive_cadence_weighs_money_once_it_knows_how_long_turns_take(
    tmp_path: Path, sla: holdfast.SLA, is_saved: bool
) -> None:
    clock = ManualClock()
    stage = Stage(tmp_path / "store", clock)
    lives: list[int] = []

    def act(run: holdfast.Run, turn: int) -> None:
        clock.advance(0.1)
        chat(turn)
        run.state["done"].append(turn)
        if turn == 2 and not lives:
            lives.append(turn)
            raise Crash

    agent = talker(act, turns=6, checkpoint=holdfast.adaptive(), sla=sla)
    stage.die(agent)
    before = marked(stage)
    stage.live(agent)

    assert [] == before
    assert is_saved == bool([turn for turn in marked(stage) if turn < 5])


@pytest.mark.parametrize(
    ("sla", "said"),
    [
        (holdfast.SLA(overhead_cap=0), "overhead_cap asks for inf s"),
        (holdfast.SLA(max_recovery="30s"), "asks for 33.3 s between them, and max_recovery leaves"),
        (holdfast.SLA(max_recovery="40s"), None),
    ],
)
def test_an_adaptive_cadence_tells_of_an_sla_that_no_interval_keeps(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sla: holdfast.SLA, said: str | None
) -> None:
    clock = ManualClock()

    @holdfast.agent(checkpoint=holdfast.adaptive(), sla=sla)
    def agent(run: holdfast.Run) -> None:
        run.attach("memory", Slow(clock))
        for turn in run.turns():
            clock.advance(50)
            chat(turn)
            if turn == 3:
                break

    Stage(tmp_path / "store", clock).live(agent)

    told = [each.message for each in caplog.records if "contradicts itself" in each.message]
    assert (0 if said is None else 1) == len(told)
    assert said is None or said in told[0]


def test_what_saves_and_restarts_cost_is_learnt_from_the_journal(stage: Stage) -> None:
    cadence = holdfast.adaptive() | holdfast.every(turns=1)
    stage.die(talker(_die_in_turn_1, checkpoint=cadence))
    stage.live(talker(two_steps, checkpoint=cadence))

    journal = stage.journal()
    learnt = learnt_of(journal)

    with stage.open() as store:
        blocked_ms = [point.blocked_ms or 0.0 for point in store.checkpoints(RUN)]
    [resumed] = [entry for entry in journal if isinstance(entry, Resumed)]
    answers = [entry for entry in journal if isinstance(entry, Answer)]
    after = next(entry for entry in answers if entry.at >= resumed.at)
    assert 1 == learnt.failures
    assert sum(blocked_ms) / len(blocked_ms) / 1000 == pytest.approx(learnt.save_s)
    assert after.at - after.took_s - resumed.at == pytest.approx(learnt.restore_s)
    assert Learnt(failures=0, worked_s=0.0) == learnt_of([])


def test_waits_for_people_and_times_without_a_process_are_no_failures_and_no_work(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    stage = Stage(tmp_path / "store", clock)
    lives: list[int] = []

    def act(run: holdfast.Run, turn: int) -> None:
        clock.advance(10)
        chat(turn)
        if turn == 1 and not lives:
            lives.append(turn)
            raise Crash
        if turn == 2:
            run.ask("go on?")

    agent = talker(act, checkpoint=holdfast.adaptive())
    stage.die(agent)
    clock.advance(1e6)
    assert isinstance(stage.fault(agent), holdfast.Waiting)
    clock.advance(1e6)
    with stage.open() as store:
        [item] = store.inbox()
        store.answer(item.id, "yes")
    clock.advance(1e6)
    stage.live(agent)

    learnt = learnt_of(stage.journal())
    assert 1 == learnt.failures
    assert 10 * (TURNS + 2) == pytest.approx(learnt.worked_s, abs=20)
