"""The crash kit: where it kills, what it hands back, and what it cannot be asked."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import holdfast
from holdfast import testing
from holdfast.testing.kill import Failpoint
from holdfast.testing.kit import CrashAt, CrashEverywhere, ReplaysExactly, Survived, spread
from holdfast.testing.lives import Person
from holdfast.testing.points import POINTS, TURN_BEGUN
from holdfast.testing.world import World
from tests.tidy.source import failpoints

CALLS = (
    *("step.", "effect.", "stream.", "child.", "checkpoint.", "critical.", "ledger."),
    *("turn.", "run.", "arun."),
)
SAME_MOMENT = {
    *("step.recording", "effect.recording", "effect.declining", "turn.ending", "ledger.opening"),
    *("ledger.opened", "run.creating", "run.taking", "run.taken", "effect.probing"),
    *("effect.probed", "effect.adopting", "effect.adopted", "run.failing", "run.failed"),
    *("stream.recording", "stream.ending", "child.beginning", "child.recording"),
    *("run.admitting", "run.admitted", "run.branching", "run.branched"),
    *("run.forking", "run.forked"),
}
"""Between these and a point of the kit no code of the user runs, or an agent under test never
comes there."""


@holdfast.step
def think(about: object) -> object:
    return about


@holdfast.agent
def thinker(run: holdfast.Run, turns: int) -> int:
    run.state["thoughts"] = []
    for turn in run.turns():
        run.state["thoughts"].append(think(turn))
        if turn == turns - 1:
            break
    return len(run.state["thoughts"])


def test_every_point_is_one_of_the_engine_and_none_of_its_calls_is_left_out() -> None:
    engine = {name for name in failpoints() if name.startswith(CALLS)}

    assert engine - SAME_MOMENT == set(POINTS) - {TURN_BEGUN}


def test_a_run_killed_at_one_point_is_handed_back(crash_at: CrashAt) -> None:
    survived = crash_at("step.recorded:2")(thinker, 3)

    assert 3 == survived.result
    assert {"thoughts": [0, 1, 2]} == survived.state
    assert ("step.recorded:2",) == survived.kills
    with holdfast.open(survived.store) as store:
        assert [holdfast.Status.FINISHED] == [run.status for run in store.runs()]


def test_a_run_can_die_more_than_once(crash_at: CrashAt) -> None:
    survived = crash_at("turn.begun:2", "step.called", "turn.ended")(thinker, turns=3)

    assert ("turn.begun:2", "step.called:1", "turn.ended:1") == survived.kills


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("step.caled", "there is no crash point 'step.caled'; write one of run.created, step."),
        ("step.called:0", "there is no crash point 'step.called:0'"),
        (
            "step.called:9",
            "the run ended before it reached step.called:9; it came to step.called 2",
        ),
    ],
)
def test_a_point_that_does_not_exist_is_named(crash_at: CrashAt, point: str, said: str) -> None:
    with pytest.raises(holdfast.UsageError, match=said):
        crash_at(point)(thinker, 2)


def test_a_plain_function_is_refused(crash_everywhere: CrashEverywhere) -> None:
    with pytest.raises(holdfast.UsageError, match="takes an agent, not function"):
        crash_everywhere(test_a_plain_function_is_refused)  # type: ignore[arg-type]  # the point


def test_an_effect_in_doubt_is_settled_by_what_was_done(
    crash_at: CrashAt, crash_world: World
) -> None:
    @holdfast.effect
    def pay(order: str) -> dict[str, int]:
        crash_world.do("pay", order)
        return {order: len(crash_world.deeds("pay"))}

    @holdfast.agent
    def buyer(_: holdfast.Run) -> list[object]:
        return [pay("one"), pay("two")]

    for point in ("effect.intended:2", "effect.called:2"):
        survived = crash_at(point)(buyer)

        assert [{"one": 1}, {"two": 2}] == survived.result
        assert ("pay",) == survived.doubts


class TestAPerson:
    @pytest.fixture
    def crash_person(self) -> Person:
        return lambda waiting: waiting.kind == "approval" or "blue"

    def test_answers_what_the_agent_asks(self, crash_everywhere: CrashEverywhere) -> None:
        @holdfast.effect(approve=True)
        def paint(colour: str) -> str:
            return f"painted {colour}"

        @holdfast.agent
        def painter(run: holdfast.Run) -> str:
            return paint(run.ask("which colour?"))

        survived = crash_everywhere(painter)

        assert "painted blue" == survived.result
        assert "ledger.written:1" in survived.kills


def test_a_stream_killed_on_its_way_is_continued(crash_everywhere: CrashEverywhere) -> None:
    def words(prefix: Sequence[str] = ()) -> Iterator[str]:
        yield from ["kelp ", "holds ", "fast"][len(prefix) :]

    @holdfast.agent
    def writer(run: holdfast.Run) -> str:
        return "".join(run.stream(words, every=1))

    survived = crash_everywhere(writer)

    assert "kelp holds fast" == survived.result
    assert {"stream.recorded:2", "stream.ended:1"} <= set(survived.kills)


def test_an_effect_of_a_child_is_settled_too(
    crash_everywhere: CrashEverywhere, crash_world: World
) -> None:
    @holdfast.effect
    def pay(order: str) -> str:
        crash_world.do("pay", order)
        return f"receipt of {order}"

    @holdfast.agent
    def clerk(_: holdfast.Run, order: str) -> str:
        return pay(order)

    @holdfast.agent
    def chief(run: holdfast.Run) -> str:
        return str(run.child(clerk, "order-1"))

    survived = crash_everywhere(chief)

    assert "receipt of order-1" == survived.result
    assert {"child.begun:1", "child.recorded:1", "effect.called:1"} <= set(survived.kills)


def test_what_differs_between_undisturbed_runs_is_not_compared(
    crash_everywhere: CrashEverywhere, crash_world: World
) -> None:
    @holdfast.effect
    def note(id_: str) -> None:
        crash_world.do("note", id_)

    @holdfast.agent
    def noter(run: holdfast.Run) -> int:
        run.state["at"], run.state["more"] = run.now(), {"id": str(run.uuid())}
        note(run.state["more"]["id"])
        return 7

    survived: Survived = crash_everywhere(noter)

    assert 7 == survived.result


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_an_agent_that_replays_exactly_passes(
    assert_replays_exactly: ReplaysExactly, turns: int
) -> None:
    @holdfast.agent
    def plain(run: holdfast.Run) -> list[object]:
        before = [think("before"), run.random(), run.now()]
        for turn in run.turns() if turns else ():
            run.state[str(turn)] = [think(turn), run.uuid()]
            if turn == turns - 1:
                break
        return [*before, think("after")]

    assert_replays_exactly(plain)


def test_a_turn_that_replays_to_another_state_is_named(
    assert_replays_exactly: ReplaysExactly, tmp_path: Path
) -> None:
    @holdfast.agent
    def forgetful(run: holdfast.Run) -> None:
        for turn in run.turns():
            with (tmp_path / "lines").open("a+", encoding="ascii") as file:
                file.write("x")
                run.state["lines"] = file.tell()
            think(turn)
            if turn == 1:
                break

    with pytest.raises(pytest.fail.Exception) as failed:
        assert_replays_exactly(forgetful)

    assert "agent forgetful does not replay exactly." in str(failed.value)
    assert "turn 0, replayed, came out different: state.lines is 2" in str(failed.value)


def test_a_replay_that_asks_something_new_is_named(
    assert_replays_exactly: ReplaysExactly, tmp_path: Path
) -> None:
    @holdfast.agent
    def curious(_: holdfast.Run) -> None:
        think("always")
        if (tmp_path / "been").exists():
            think("the second time")
        (tmp_path / "been").touch()

    with pytest.raises(pytest.fail.Exception, match=r"had not asked before: think\(about='the sec"):
        assert_replays_exactly(curious)


def test_the_store_of_a_test_finds_changes_made_around_the_state(store: holdfast.Store) -> None:
    @holdfast.agent
    def sneaky(run: holdfast.Run) -> None:
        run.state["list"] = []
        for turn in run.turns():
            list.append(run.state["list"], think(turn))
            if turn == 1:
                break

    with pytest.raises(holdfast.ChangedOutside, match="around its methods"):
        store.run(sneaky, id="run-1")


def test_the_world_does_once_what_has_a_key(crash_world: World) -> None:
    assert crash_world.do("pay", "order-1", {"usd": 3}, once="key")
    assert not crash_world.do("pay", "order-1", {"usd": 3}, once="key")
    assert crash_world.do("mail", "ann")

    assert crash_world.has("pay", "order-1", {"usd": 3})
    assert not crash_world.has("pay", "order-1")
    assert ["pay('order-1', {'usd': 3})", "mail('ann')"] == [*map(str, crash_world.deeds())]
    assert ["mail('ann')"] == [*map(str, crash_world.deeds("mail"))]


def test_every_public_name_of_the_kit_is_there() -> None:
    assert [] == [name for name in testing.__all__ if not hasattr(testing, name)]
    with pytest.raises(AttributeError, match=r"'holdfast.testing' has no attribute 'crash'"):
        _ = testing.crash  # type: ignore[attr-defined]  # the point of the test


def test_points_are_left_out_evenly_where_there_are_too_many() -> None:
    points = [Failpoint(name="step.called", nth=nth) for nth in range(1, 101)]

    assert points == spread(points, 100)
    assert [1, 26, 51, 75, 100] == [each.nth for each in spread(points, 5)]
    assert [1] == [each.nth for each in spread(points, 1)]
