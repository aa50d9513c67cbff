"""`store.fork`: a new run from a point of another, sharing its history."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.engine.parcel import from_bytes, to_bytes
from holdfast.engine.transfer import admit, collect
from holdfast.report.sizes import sizes
from holdfast.report.timeline import timeline
from holdfast.store.open import Opened, open_store
from holdfast.store.verify import verify
from tests.engine.kit import RUN, Crash, Stage, World, text

TURNS = 6

asked: list[str] = []
stops_at = -1


@pytest.fixture(autouse=True)
def _nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked.clear()
    monkeypatch.setitem(globals(), "stops_at", -1)


@holdfast.step
def think(what: str) -> dict[str, str]:
    asked.append(what)
    return {"thought": f"{what}#{asked.count(what)}"}


@holdfast.agent(checkpoint=holdfast.every(turns=2))
def thinker(run: holdfast.Run, topic: str) -> list[Any]:
    run.state["seen"] = []
    run.state["first"] = think(f"{topic} first")
    for turn in run.turns():
        if turn == stops_at:
            raise Crash
        run.state["seen"].append(think(f"{topic} {turn}"))
        run.state["drawn"] = [run.random.random(), str(run.uuid())]
        if turn == TURNS - 1:
            break
    return [*(each["thought"] for each in run.state["seen"]), *run.state["drawn"]]


@contextlib.contextmanager
def opened(stage: Stage) -> Iterator[Opened]:
    found = open_store(stage.path, SystemClock(), key=given_key())
    try:
        yield found
    finally:
        found.close()


def findings(stage: Stage) -> list[Any]:
    with opened(stage) as found:
        return verify(found, deep=True).findings


def thoughts(result: list[Any]) -> list[str]:
    return result[:TURNS]


def test_a_fork_goes_on_from_its_point_and_asks_only_what_comes_after(stage: Stage) -> None:
    whole = stage.live(thinker, "kelp")
    asked.clear()

    with stage.open() as store:
        made = store.fork(RUN, at=3, new_id="what-if")
        forked = store.run(thinker, id="what-if")

    assert holdfast.Status.RUNNING is made.status
    assert made.origin is not None
    assert RUN == made.origin.run
    assert ["kelp 4", "kelp 5"] == asked
    assert thoughts(whole)[:4] == thoughts(forked)[:4]
    assert whole[TURNS:] != forked[TURNS:], "randomness and ids are new"
    assert [] == findings(stage)


@pytest.mark.parametrize("turn", range(TURNS - 1))
def test_a_fork_of_every_turn_has_the_state_of_that_turn(stage: Stage, turn: int) -> None:
    stage.live(thinker, "kelp")

    with stage.open() as store:
        store.fork(RUN, at=turn, new_id="fork")
        expected = store.restore(f"{RUN}@{turn}")[1]
        found = store.restore("fork")[1]
        store.run(thinker, "kelp", id="fork")

    assert expected == found
    assert [] == findings(stage)


def test_the_parent_goes_on_by_itself(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "stops_at", 4)
    stage.die(thinker, "kelp")
    monkeypatch.setitem(globals(), "stops_at", -1)

    with stage.open() as store:
        fork = store.fork(RUN)
        forked = store.restart(fork.id)
        parent = store.run(thinker, "kelp", id=RUN)

    assert asked.count("kelp 4") == 2
    assert thoughts(parent)[:4] == thoughts(forked)[:4]
    assert thoughts(parent)[4:] != thoughts(forked)[4:]
    assert fork.id.startswith(f"{RUN}-fork-")


def test_forks_of_forks_share_all_that_came_before(stage: Stage) -> None:
    stage.live(thinker, "kelp")
    with stage.open() as store:
        store.fork(RUN, at=3, new_id="child")
        store.run(thinker, id="child")
        store.fork("child", at="child@4", new_id="grandchild")
        store.fork("child", at=1, new_id="early")
        before = len(asked)
        late = store.run(thinker, id="grandchild")
        early = store.run(thinker, id="early")
        told = store.checkpoints("grandchild", every_turn=True)
        states = [store.restore(each)[1] for each in told]
        listed = store.checkpoints("grandchild")

    assert ["kelp 5", "kelp 2", "kelp 3", "kelp 4", "kelp 5"] == asked[before:]
    assert "kelp 4#2" == thoughts(late)[4]
    assert "kelp 2#2" == thoughts(early)[2]
    assert [0, 1, 2, 3, 3, 4, 4] == [each.turn for each in told][:7]
    assert [1, 2, 3, 4, 4, 5, 5] == [len(each["seen"]) for each in states][:7]
    assert {"grandchild"} == {each.run for each in told}
    assert [1, 3] == [each.turn for each in listed]
    assert [] == findings(stage)


def test_what_a_person_changes_is_the_state_the_fork_goes_on_with(stage: Stage) -> None:
    stage.live(thinker, "kelp")

    with stage.open() as store:
        store.fork(
            RUN,
            at=2,
            new_id="edited",
            state={"note": ["mind the tide"], "seen[-1].thought": "better", '["odd key"]': 1},
        )
        changes = store.diff(f"{RUN}@2", "edited")
        result = store.run(thinker, id="edited")
        state = store.restore("edited")[1]
        again = store.restore("edited@2")[1]
        parent = store.restore(f"{RUN}@2")[1]

    paths = {change.path for change in changes}
    assert 3 == len(paths)
    assert "better" == thoughts(result)[2]
    assert (["mind the tide"], 1) == (state["note"], state["odd key"])
    assert "better" == again["seen"][2]["thought"]
    assert "note" not in parent
    assert [] == findings(stage)


def test_a_fork_in_the_middle_of_a_turn_goes_on_after_that_checkpoint(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def ask(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        for turn in run.turns():
            before = ask(f"before {turn}")
            saved.append(run.checkpoint(f"half of {turn}"))
            run.state.setdefault("found", []).append([before, ask(f"after {turn}")])
            if turn == 2:
                return list(holdfast.plain(run.state["found"]))
        raise AssertionError

    saved: list[str] = []
    stage.live(agent)
    world.asked.clear()

    with stage.open() as store:
        store.fork(RUN, at=saved[1], new_id="half")
        result = store.run(agent, id="half")

    assert ["after 1", "before 2", "after 2"] == world.asked
    assert ["before 1#1", "after 1#1"] == result[1]


def test_a_run_without_turns_is_forked_from_its_beginning(stage: Stage, world: World) -> None:
    @holdfast.step
    def ask(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def agent(run: holdfast.Run, what: str) -> str:  # noqa: ARG001 as every agent
        return ask(what)

    stage.live(agent, "why")
    with stage.open() as store:
        store.fork(RUN, new_id="again")
        assert "why#2" == store.run(agent, id="again")


def test_a_fork_is_carried_to_another_store(stage: Stage, tmp_path: Path) -> None:
    stage.live(thinker, "kelp")
    with stage.open() as store:
        store.fork(RUN, at=3, new_id="fork", state={"note": "from afar"})
        store.fork("fork", new_id="deeper")
    other = Stage(tmp_path / "other")
    with opened(stage) as source, opened(other) as target:
        for name in ("fork", "deeper"):
            run = source.reader.find(name)
            assert run is not None
            admit(target, from_bytes(to_bytes(collect(source, run)), name))

    with other.open() as store:
        result = store.run(thinker, "kelp", id="fork")
        state = store.restore("fork")[1]
        store.run(thinker, "kelp", id="deeper")
        store.fork("fork", at=1, new_id="and on")
        store.run(thinker, "kelp", id="and on")
    assert "from afar" == state["note"]
    assert "kelp 5#2" == thoughts(result)[5]
    assert [] == findings(other)


def test_a_fork_of_a_large_state_costs_next_to_nothing(stage: Stage, world: World) -> None:
    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def heavy(run: holdfast.Run) -> int:
        for turn in run.turns():
            if turn == 0:
                run.state["parts"] = [{"text": text(n, 100_000)} for n in range(20)]
                run.state["small"] = [{"n": n, "text": text(n, 100)} for n in range(20_000)]
            run.state["turn"] = turn
            if turn == 2 and world.dies_at:
                raise Crash
            if turn == 2:
                return len(run.state["small"])
        raise AssertionError

    world.dies_at = "now"
    stage.die(heavy)
    world.dies_at = None
    with opened(stage) as found:
        before = {each.run: each.bytes for each in sizes(found).runs}
    with stage.open() as store:
        for name in ("one", "two"):
            store.fork(RUN, new_id=name)
        assert 20_000 == store.run(heavy, id="two")
    with opened(stage) as found:
        after = {each.run: each.bytes for each in sizes(found).runs}

    assert before[RUN] > 1_000_000
    assert after["one"] < 1_000
    assert after[RUN] - before[RUN] < 1_000


def test_the_story_of_a_fork_says_where_it_came_from(stage: Stage) -> None:
    stage.live(thinker, "kelp")
    with stage.open() as store:
        store.fork(RUN, at=3, new_id="fork", reason="what if")
        store.run(thinker, id="fork")

    with opened(stage) as found:
        run = found.reader.find("fork")
        assert run is not None
        told = timeline(found.reader, run)

    assert told.origin is not None
    assert told.origin.point.startswith(f"{RUN}@1.")
    assert [f"from {RUN}"] == [each.name for each in told.events if each.kind == "forked"]
    assert (TURNS, "topic='kelp'") == (told.turns, told.asked)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"at": 99}, "turn 99"),
        ({"at": "nobody@1"}, "nobody@1"),
        ({"new_id": RUN}, "already"),
        ({"new_id": ""}, "non-empty"),
        ({"new_id": 7}, "a string"),
        ({"at": 1, "state": {"seen[": 1}}, "cannot be read"),
        ({"at": 1, "state": {"seen[99]": 1}}, "nothing at seen[99]; there is: list of 2 items"),
        ({"at": 1, "state": {5: 1}}, "new values by their paths"),
        ({"at": 1, "state": ["note"]}, "new values by their paths"),
        ({"at": 1.5}, "a turn's number or a name such as run-1@7, not 1.5"),
        ({"at": 1, "state": {"seen[:]": 1}}, "one place"),
        ({"at": 1, "state": {"gone.deeper": 1}}, "nothing at gone"),
        ({"at": 1, "state": {"note": object()}}, "note"),
    ],
)
def test_what_cannot_be_forked_is_refused_and_nothing_is_made(
    stage: Stage, options: dict[str, Any], why: str
) -> None:
    stage.live(thinker, "kelp")

    with stage.open() as store:
        with pytest.raises(holdfast.HoldfastError, match=re.escape(why)):
            store.fork(RUN, **options)
        assert [RUN] == [each.id for each in store.runs()]


def test_the_end_of_a_run_is_no_point_to_fork_from(stage: Stage) -> None:
    stage.live(thinker, "kelp")
    with stage.open() as store:
        end = store.checkpoints(RUN, every_turn=True)[-1]
        with pytest.raises(holdfast.UsageError, match="name an older point"):
            store.fork(RUN, at=end)
        store.fork(RUN, new_id="newest")
        assert TURNS - 2 == store.restore("newest")[0].turn


@pytest.mark.parametrize("asks_in_turns", [True, False])
def test_forks_keep_what_stands_outside_turns_up_to_their_point(
    stage: Stage, world: World, asks_in_turns: bool
) -> None:
    @holdfast.step
    def ask(what: str) -> str:
        return world.ask(what)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        found = [ask("before")]
        for turn in run.turns():
            run.state["one"] = ask(f"one {turn}") if asks_in_turns else turn
            if turn == 2:
                break
        found.append(ask("between"))
        for turn in run.turns():
            run.state["two"] = ask(f"two {turn}") if asks_in_turns else turn
            run.state["big"] = text(turn, 90_000)[:60_000]
            if turn == 8:
                break
        return [*found, ask("after"), str(run.state["two"])]

    whole = stage.live(agent)
    for at in range(8):
        name = f"at {at}"
        world.asked.clear()
        with stage.open() as store:
            store.fork(RUN, at=at, new_id=name)
            result = store.run(agent, id=name)
        assert whole[0] == result[0]
        assert ("between" in world.asked) == (at < 2)
        assert "after" in world.asked
        assert "before" not in world.asked
    assert [] == findings(stage)
