"""Sections that may be missing: a part that cannot be restored degrades the run, or stops it."""
# ruff: noqa: ANN401 agents here return whatever the test looks at

import dataclasses
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast
from holdfast.cli.story import event_grid
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.model.sections import Degraded, Outcome, Part
from holdfast.report.timeline import Timeline, timeline
from holdfast.store.open import open_store
from tests.engine.kit import RUN, Crash, Stage, World, text

BIG = 80_000


class Memory:
    """An object whose `restore` fails when told to."""

    def __init__(self) -> None:
        self.facts: list[str] = ["fresh"]
        self.is_failing = False

    def capture(self) -> dict[str, Any]:
        return {"facts": self.facts}

    def restore(self, value: dict[str, Any]) -> None:
        if FAILING:
            msg = "made by an older version"
            raise ValueError(msg)
        self.facts = value["facts"]


FAILING: list[bool] = []
RESTORED: list[dict[str, Part]] = []


@pytest.fixture(autouse=True)
def _fine() -> None:
    FAILING.clear()
    RESTORED.clear()


def damage(stage: Stage) -> None:
    """Flip a bit in every large value."""
    for path in (stage.path / "objects").rglob("*"):
        if path.is_file():
            data = bytearray(path.read_bytes())
            data[-1] ^= 1
            path.chmod(0o600)
            path.write_bytes(data)


def told(stage: Stage) -> Timeline:
    opened = open_store(stage.path, SystemClock(), key=given_key())
    try:
        run = opened.reader.find(RUN)
        assert run is not None
        return timeline(opened.reader, run)
    finally:
        opened.close()


def caching(world: World, put: Callable[[holdfast.Run, int], None], **options: Any) -> Any:
    """An agent that keeps something large in the section `cache`, and dies in turn 2 if told."""

    @holdfast.agent(**options)
    def agent(run: holdfast.Run) -> Any:
        run.state["notes"] = []
        for turn in run.turns():
            if turn < 2:
                put(run, turn)
            run.state["notes"].append(turn)
            run.call(world.ask, f"ask {turn}")
            if turn == 3:
                RESTORED.append(run.restored)
                return [sorted(run.state), run.state["notes"]]
        raise AssertionError

    return agent


def put_text(run: holdfast.Run, turn: int) -> None:
    run.state["cache"] = {"text": text(turn, BIG), "small": turn}


def put_array(run: holdfast.Run, turn: int) -> None:
    run.state.setdefault("cache", []).append({"array": np.arange(BIG) + turn})


def put_answer(run: holdfast.Run, turn: int) -> None:
    answer: Any = run.call(lambda turn: {"text": text(turn, BIG), "parts": [{"n": turn}]}, turn)
    run.state.setdefault("cache", []).append(answer)
    answer["parts"].append({"added": turn})


PUTS = {"text": put_text, "array": put_array, "answer": put_answer}


@pytest.mark.parametrize("what", PUTS)
def test_a_run_goes_on_without_an_optional_section_that_is_damaged_and_says_so(
    stage: Stage, world: World, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent = caching(world, PUTS[what], optional=["cache"])
    world.dies_at = "ask 2"
    stage.die(agent)
    damage(stage)
    world.dies_at = "ask 3"
    with caplog.at_level(logging.WARNING, "holdfast"):
        stage.die(agent)
    with stage.open() as store:
        point, state = store.restore(f"{RUN}@1")
        newest = store.restore(RUN)[1]
    events = [event for event in told(stage).events if event.kind == "degraded"]
    world.dies_at = None
    sections, notes = stage.live(agent)
    [restored] = RESTORED

    assert ["notes"] == sections
    assert [0, 1, 2, 3] == notes
    assert {"notes": Part(Outcome.RESTORED)} == restored  # The second restart found it whole.
    assert {"cache"} == point.degraded.keys()
    assert {"notes": [0, 1]} == state
    assert {"notes": [0, 1, 2]} == newest
    assert ["cache"] == [event.name for event in events]
    assert 2 == events[0].turn
    assert "chunk" in (events[0].error or "")
    assert "goes on without the optional section cache" in caplog.text
    shown = [row for row in event_grid(told(stage).events).rows if "section cache" in row[2]]
    assert 1 == len(shown)


@pytest.mark.parametrize("what", PUTS)
def test_an_essential_section_that_is_damaged_stops_the_restart_and_is_named(
    stage: Stage, world: World, what: str
) -> None:
    agent = caching(world, PUTS[what])
    world.dies_at = "ask 2"
    stage.die(agent)
    damage(stage)
    world.dies_at = None

    error = stage.fault(agent)
    assert isinstance(error, holdfast.Damaged)
    assert 'state["cache"]' == error.where
    with stage.open() as store, pytest.raises(holdfast.Damaged, match=r'state\["cache"\]'):
        store.restore(RUN)

    assert [["notes"], [0, 1, 2, 3]] == stage.live(caching(world, PUTS[what], optional="cache"))


def test_what_was_damaged_and_replaced_since_is_missed_by_nobody(
    stage: Stage, world: World
) -> None:
    def put(run: holdfast.Run, turn: int) -> None:
        run.state["cache"] = {"text": text(turn, BIG if turn == 0 else 10)}

    agent = caching(world, put)
    world.dies_at = "ask 2"
    stage.die(agent)
    damage(stage)
    world.dies_at = None

    assert ["cache", "notes"] == stage.live(agent)[0]


def test_a_value_of_a_class_that_is_no_longer_known_is_named_or_left_out(
    stage: Stage, world: World
) -> None:
    @holdfast.register(name="tests.Thing")
    @dataclasses.dataclass
    class Thing:
        n: int

    def put(run: holdfast.Run, turn: int) -> None:
        run.state["cache"] = [Thing(turn)]

    world.dies_at = "ask 2"
    stage.die(caching(world, put))
    world.dies_at = None
    holdfast.register(Thing, name="tests.Thing", version=2)
    error = stage.fault(caching(world, put))
    with stage.open() as store:
        result = store.restart(RUN, agent=caching(world, put, optional=["cache"]))

    assert isinstance(error, holdfast.NotStorable)
    assert 'state["cache"]' == error.path
    assert "version 1" in str(error)
    assert ["notes"] == result[0]


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_key_of_a_class_that_is_no_longer_known_is_named_or_left_out(
    stage: Stage, world: World, *, is_nested: bool
) -> None:
    @holdfast.register(name="tests.Key")
    @dataclasses.dataclass(frozen=True)
    class Key:
        n: int

    def put(run: holdfast.Run, turn: int) -> None:
        held = run.state.setdefault("cache", {})
        (held.setdefault("pages", {}) if is_nested else held)[Key(turn)] = [turn]

    world.dies_at = "ask 2"
    stage.die(caching(world, put))
    world.dies_at = None
    holdfast.register(Key, name="tests.Key", version=2)
    error = stage.fault(caching(world, put))
    with stage.open() as store:
        result = store.restart(RUN, agent=caching(world, put, optional=["cache"]))

    assert isinstance(error, holdfast.NotStorable)
    assert 'state["cache"]' == error.path
    assert ["notes"] == result[0]


def test_a_key_of_a_class_that_is_no_longer_known_and_was_deleted_is_missed_by_nobody(
    stage: Stage, world: World
) -> None:
    @holdfast.register(name="tests.Gone")
    @dataclasses.dataclass(frozen=True)
    class Gone:
        n: int

    def put(run: holdfast.Run, turn: int) -> None:
        cache = run.state.setdefault("cache", {})
        cache.clear()
        if turn == 0:
            cache[Gone(turn)] = [turn]

    world.dies_at = "ask 2"
    stage.die(caching(world, put))
    world.dies_at = None
    holdfast.register(Gone, name="tests.Gone", version=2)

    assert ["cache", "notes"] == stage.live(caching(world, put))[0]


EDITS: dict[str, Callable[[holdfast.Store], object]] = {
    "a fork with another value": lambda store: store.fork(
        RUN, at=1, new_id="edited", state={"notes": ["edited"]}
    ),
    "a rollback": lambda store: store.plan_rollback(RUN, to=0).apply(),
    "a rollback of another section": lambda store: store.plan_rollback(
        RUN, to=0, only=["notes"]
    ).apply(),
}


@pytest.mark.parametrize("edit", EDITS)
def test_whoever_does_not_know_a_section_leaves_it_as_it_is(
    stage: Stage, world: World, edit: str
) -> None:
    @holdfast.register(name="tests.Page")
    @dataclasses.dataclass
    class Page:
        n: int

    def put(run: holdfast.Run, turn: int) -> None:
        run.state.setdefault("cache", {})[turn] = Page(turn)

    world.dies_at = "ask 2"
    stage.die(caching(world, put, optional=["cache"]))
    holdfast.register(Page, name="tests.Page", version=2)
    with stage.open() as store:
        EDITS[edit](store)
        changed = store.runs()[0].id
        without = store.restore(changed)
        holdfast.register(Page, name="tests.Page")
        cache = store.restore(changed)[1]["cache"]

    assert ["cache"] == list(without[0].degraded)
    assert "cache" not in without[1]
    assert Page(0) == cache[0]
    assert (2 if "of another" in edit or "fork" in edit else 1) == len(cache)


def remembering(world: World, *, optional: bool) -> Any:
    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:
        memory = Memory()
        run.attach("memory", memory, optional=optional)
        for turn in run.turns():
            memory.facts.append(f"fact {turn}")
            run.call(world.ask, f"ask {turn}")
            if turn == 2:
                RESTORED.append(run.restored)
                return memory.facts
        raise AssertionError

    return agent


def test_an_optional_object_whose_restore_raises_stays_as_fresh_and_is_reported(
    stage: Stage, world: World
) -> None:
    agent = remembering(world, optional=True)
    world.dies_at = "ask 1"
    stage.die(agent)
    world.dies_at = None
    FAILING.append(True)
    facts = stage.live(agent)
    [restored] = RESTORED

    assert ["fresh", "fact 1", "fact 2"] == facts
    expected = Part(Outcome.DEGRADED, "ValueError: made by an older version")
    assert {"memory": expected} == restored
    [degraded] = [entry for entry in stage.journal() if isinstance(entry, Degraded)]
    assert {"memory": expected.why} == degraded.sections
    with stage.open() as store:
        assert facts == store.restore(RUN)[1]["memory"]["facts"]


def test_an_essential_object_whose_restore_raises_fails_the_run_until_it_is_fixed(
    stage: Stage, world: World
) -> None:
    agent = remembering(world, optional=False)
    world.dies_at = "ask 1"
    stage.die(agent)
    world.dies_at = None
    FAILING.append(True)

    error = stage.fault(agent)
    assert isinstance(error, holdfast.RestoreFailed)
    assert "'memory' is not restored: ValueError: made by an older version" in str(error)
    assert holdfast.Status.FAILED is stage.info().status
    FAILING.clear()

    assert ["fresh", "fact 0", "fact 1", "fact 2"] == stage.restart(agent)


def test_a_dataclass_that_cannot_be_filled_is_left_as_it_was(stage: Stage, world: World) -> None:
    @dataclasses.dataclass(slots=True)
    class Old:
        facts: list[int]
        gone: int = 0

    @dataclasses.dataclass(slots=True)
    class New:
        facts: list[int]

    def agent_of(kind: Any) -> Any:
        @holdfast.agent
        def agent(run: holdfast.Run) -> Any:
            memory = kind([-1])
            run.attach("memory", memory, optional=True)
            for turn in run.turns():
                memory.facts.append(turn)
                run.call(world.ask, f"ask {turn}")
                if turn == 1:
                    return memory.facts
            raise AssertionError

        return agent

    world.dies_at = "ask 1"
    stage.die(agent_of(Old))
    world.dies_at = None

    assert [-1, 1] == stage.live(agent_of(New))


def test_what_is_optional_is_still_known_after_a_base(stage: Stage, world: World) -> None:
    @holdfast.agent(optional=["cache"])
    def agent(run: holdfast.Run) -> Any:
        run.state["log"] = []
        for turn in run.turns():
            if turn == 0:
                run.state["cache"] = np.arange(BIG)
            run.state["log"].append(text(turn, 8000))
            run.call(world.ask, f"ask {turn}")
            if turn == 30:
                raise Crash
        raise AssertionError

    stage.die(agent)
    assert 1 < stage.kinds().count("Declared")
    assert "Based" in stage.kinds()
    damage(stage)

    with stage.open() as store:
        point, state = store.restore(RUN)
    assert {"cache"} == point.degraded.keys()
    assert 30 == len(state["log"])


@pytest.mark.parametrize("wrong", [None, 7, ["cache", 7]])
def test_what_names_no_sections_is_refused_where_the_agent_is_declared(wrong: Any) -> None:
    with pytest.raises(holdfast.UsageError, match="optional= names sections of the state"):
        holdfast.agent(optional=wrong)(lambda _run: None)
