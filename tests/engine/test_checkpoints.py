"""Any point of a run can be listed, restored and compared, without an agent and without a lease."""

import copy
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import holdfast
from holdfast.capture.digest import digest
from holdfast.model.ids import parse_point, point_id, row_id
from holdfast.model.journal import Based, TurnEnded
from holdfast.store.codec.vault import Vault, vault
from tests.engine.kit import RUN, Crash, Stage, World, text

TURNS = 50
PROMPT = "You talk about kelp."


@holdfast.step
def chat(
    messages: list[Any],
    n: int,
    model: str = "m-1",
    temperature: float = 0.5,  # noqa: ARG001 it is recorded
) -> dict[str, Any]:
    usage = {"input_tokens": len(messages), "output_tokens": n}
    return {"role": "assistant", "content": text(n, 3000), "usage": usage, "model": model}


@holdfast.step
def fail(n: int) -> None:
    msg = f"no {n}"
    raise ValueError(msg)


class Talk:
    """An agent that talks for many turns, dies where it is told to, and keeps copies aside."""

    def __init__(self, turns: int = TURNS, *, marks: int = 7) -> None:
        self.turns, self.seen = turns, dict[int, Any]()
        self.dies_at: set[int] = set()

        @holdfast.agent(checkpoint=holdfast.every(turns=marks))
        def agent(run: holdfast.Run) -> int:
            run.state.update(messages=[], vars={}, notes=[])
            for turn in run.turns():
                if turn in self.dies_at:
                    self.dies_at.remove(turn)
                    raise Crash
                self.change(run, turn)
                self.seen[turn] = copy.deepcopy(holdfast.plain(run.state))
                if turn == self.turns // 2:
                    break
            for turn in run.turns():
                self.change(run, turn)
                self.seen[turn] = copy.deepcopy(holdfast.plain(run.state))
                if turn == self.turns:
                    return turn
            raise AssertionError

        self.agent = agent

    def change(self, run: holdfast.Run, turn: int) -> None:
        messages = run.state["messages"]
        messages.append({"role": "user", "content": f"question {turn}"})
        messages.append(chat(messages, turn))
        run.state["vars"][f"key {turn % 5}"] = (turn, {"set": {turn}})
        if turn % 11 == 10:
            run.state["messages"] = messages[-5:]
        if turn % 4 == 0:
            run.state["notes"].append(run.state["messages"][-1])


def ends(points: list[Any]) -> dict[int, Any]:
    """The newest point of each turn."""
    return {point.turn: point for point in points if point.turn is not None}


def test_every_turn_of_a_long_run_is_restored_as_it_was(stage: Stage) -> None:
    talk = Talk()
    talk.dies_at = {9, 17, 18}
    for _ in range(3):
        stage.die(talk.agent)
    stage.live(talk.agent)
    bases = [entry for entry in stage.journal() if isinstance(entry, Based)]

    with stage.open() as store:
        points = ends(store.checkpoints(RUN, every_turn=True))
        restored = {turn: store.restore(point)[1] for turn, point in points.items()}
        by_turn = {turn: store.restore(f"{RUN}@{turn}")[1] for turn in range(0, TURNS, 7)}

    assert len(bases) > 1
    assert list(range(TURNS + 1)) == sorted(restored)
    for turn, state in talk.seen.items():
        assert state == restored[turn], turn
    assert {turn: talk.seen[turn] for turn in by_turn} == by_turn


def test_a_restored_state_is_made_of_ordinary_containers(stage: Stage) -> None:
    stage.live(Talk(2).agent)

    with stage.open() as store:
        state = store.restore(RUN)[1]

    assert dict is type(state)
    assert list is type(state["messages"])
    assert dict is type(state["messages"][0])


def test_a_root_is_the_content_hash_of_the_state_there(stage: Stage) -> None:
    talk = Talk(8, marks=1)
    stage.live(talk.agent)

    with stage.open() as store:
        points = store.checkpoints(RUN)

    assert 8 == len(points)
    assert [digest(talk.seen[p.turn or 0]).hex() for p in points] == [p.root for p in points]


def test_a_state_that_does_not_match_its_root_is_refused(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault, "__dict__", vars(Vault()))  # With secrets a hash may be unsure.
    stage.live(Talk(8, marks=1).agent)
    monkeypatch.setattr("holdfast.engine.roots.digest", lambda _: hashlib.sha256(b"x").digest())

    with (
        stage.open() as store,
        pytest.raises(holdfast.Damaged, match="does not match its root") as caught,
    ):
        store.restore(f"{RUN}@3")

    assert f"{RUN}@" in caught.value.where


def test_points_are_checkpoints_by_the_cadence_and_recovery_points_between(stage: Stage) -> None:
    stage.live(Talk(8, marks=3).agent)

    with stage.open() as store:
        every = store.checkpoints(RUN, every_turn=True)
        marked = store.checkpoints(RUN)

    assert [2, 5] == [point.turn for point in marked]
    assert [point for point in every if point.kind == "checkpoint"] == marked
    assert [*range(8), 8] == [point.turn for point in every]
    assert {"recovery point"} == {point.kind for point in every if point not in marked}


def test_each_point_names_the_one_before_it(stage: Stage) -> None:
    talk = Talk(30, marks=4)
    talk.dies_at = {3, 12}
    stage.die(talk.agent)
    stage.die(talk.agent)
    stage.live(talk.agent)

    with stage.open() as store:
        listed = store.checkpoints(RUN, every_turn=True)
        alone = [store.restore(point.id)[0] for point in listed]

    assert listed == alone
    assert [None, *[point.id for point in listed[:-1]]] == [point.parent for point in listed]


def test_a_checkpoint_tells_what_made_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGION", "north")
    monkeypatch.setenv("SECRET", "kelp")
    monkeypatch.setitem(sys.modules, "openai", SimpleNamespace(__version__="1.2.3"))

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            if turn == 3:
                return
            run.state["said"] = chat([], turn, temperature=0.25)
            if turn == 1:
                with pytest.raises(ValueError, match="no 1"):
                    fail(turn)

    with holdfast.open(stage.path, environment=("REGION", "NOT_SET")) as store:
        store.run(agent, id=RUN)
        first, second, third = store.checkpoints(RUN)

    assert [0, 1, 2] == [first.turn, second.turn, third.turn]
    assert [1, 2, 3] == [first.step, second.step, third.step]
    assert [None, "ValueError: no 1", None] == [first.error, second.error, third.error]
    assert (0, 3) == (third.tokens_in, third.tokens_out)
    assert "m-1" == third.model
    assert {"model": "m-1", "temperature": 0.25} == third.parameters
    assert {"REGION": "north"} == third.environment
    assert "1.2.3" == third.libraries["openai"]
    assert hashlib.sha256(Path(__file__).read_bytes()).hexdigest() == third.code
    assert (64, 64) == (len(third.tools or ""), len(third.prompts or ""))
    assert holdfast.__version__ == third.holdfast
    assert third.bytes > 0
    assert (third.blocked_ms or 0) > 0


def test_counts_and_parameters_go_on_after_a_restart(stage: Stage) -> None:
    undisturbed, killed = Talk(30, marks=1), Talk(30, marks=1)
    killed.dies_at = {6, 14}
    stage.live(undisturbed.agent, id="whole")
    for _ in range(2):
        stage.die(killed.agent)
    stage.live(killed.agent)

    with stage.open() as store:
        facts = [
            [
                (p.turn, p.step, p.tokens_in, p.tokens_out, p.model, p.parameters, p.root)
                for p in store.checkpoints(run)
            ]
            for run in ("whole", RUN)
        ]

    assert facts[0] == facts[1]
    assert 30 == facts[0][-1][1]


def test_a_checkpoint_asked_for_has_its_label_and_the_state_of_that_moment(stage: Stage) -> None:
    ids: list[str] = []
    is_dying = True

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for _ in run.turns():
            run.state["n"] = [1]
            ids.append(run.checkpoint("half way"))
            run.state["n"].append(2)
            if is_dying:
                raise Crash
            return

    stage.die(agent)
    is_dying = False
    stage.live(agent)

    with stage.open() as store:
        [point] = store.checkpoints(RUN)
        told, state = store.restore(ids[0])
        newest = store.restore(RUN)[1]

    assert ids[0] == ids[1] == point.id
    assert ("checkpoint", "half way") == (point.kind, point.label)
    assert point == told
    assert {"n": [1]} == state
    assert {"n": [1, 2]} == newest


def test_a_snapshot_holds_the_sections_it_names(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        run.state.update(llm={"messages": [1]}, tools={"t": 2}, memory=[3])
        return run.checkpoint(only=["llm", "memory"])

    id_ = stage.live(agent)

    with stage.open() as store:
        told, state = store.restore(id_)

    assert "snapshot" == told.kind
    assert ["llm", "memory"] == told.sections
    assert {"llm": {"messages": [1]}, "memory": [3]} == state
    assert digest(state).hex() == told.root


def test_a_snapshot_of_an_unknown_section_is_refused_by_naming_those_there_are(
    stage: Stage,
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        run.state.update(llm={}, tools={})
        return run.checkpoint(only=["lml"])

    error = stage.fault(agent)

    assert isinstance(error, holdfast.UsageError)
    assert "no section 'lml'; there is: 'llm', 'tools'" in str(error)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"label": ["llm"]}, r"a label is text, not \['llm'\]; sections are named by only="),
        ({"only": 5}, "takes the names of sections, not 5"),
    ],
)
def test_a_checkpoint_asked_for_in_other_words_says_which_to_use(
    stage: Stage, asked: dict[str, Any], why: str
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return run.checkpoint(**asked)

    error = stage.fault(agent)

    assert isinstance(error, holdfast.UsageError)
    assert re.search(why, str(error))


def test_a_snapshot_of_no_section_is_refused(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return run.checkpoint(only=[])

    error = stage.fault(agent)

    assert isinstance(error, holdfast.UsageError)
    assert "names no section" in str(error)


def test_points_of_a_branch_that_was_left_are_still_there(stage: Stage, world: World) -> None:
    @holdfast.step
    def ask(n: int) -> str:
        return world.ask(f"{n}")

    saved: list[str] = []

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> None:
        run.state.setdefault("said", [])
        for turn in run.turns():
            run.state["said"].append(ask(turn))
            if turn == 2:
                saved.append(run.checkpoint("risky"))
                ask(100)
            if turn == 4:
                return

    world.dies_at = "100"
    stage.die(agent)
    world.dies_at = None
    stage.restart(agent, redo_turn=True)

    with stage.open() as store:
        points = store.checkpoints(RUN)
        old, new = (store.restore(id_) for id_ in saved)
        alone = [store.restore(point.id)[0] for point in points]

    assert points == alone
    assert [0, 1, 2, 2, 2, 3] == [point.turn for point in points]
    assert [1, 1, 1, 2, 2, 2] == [point.branch for point in points]
    assert {"said": ["0#1", "1#1", "2#1"]} == old[1]
    assert {"said": ["0#1", "1#1", "2#2"]} == new[1]
    assert old[0].parent == new[0].parent == points[1].id


def test_a_run_is_read_while_it_goes_on(stage: Stage) -> None:
    seen: list[Any] = []

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            if turn == 2:
                run.checkpoint("now")
                with stage.open() as other:
                    seen.extend(other.restore(f"{RUN}@{n}")[1] for n in range(2))
                    seen.append([p.turn for p in other.checkpoints(RUN)])
                return
            run.state["n"] = turn

    stage.live(agent)

    assert [{"n": 0}, {"n": 1}, [0, 1, 2]] == seen


def test_differences_are_found_between_turns_and_between_runs(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run, name: str) -> None:
        run.state["list"] = []
        for turn in run.turns():
            run.state["list"].append({"n": turn})
            run.state["name"] = name
            if turn == 2:
                return

    stage.live(agent, "a", id="a")
    stage.live(agent, "b", id="b")

    with stage.open() as store:
        turns = store.diff("a@0", "a@1")
        runs = store.diff("a", "b")
        newest = store.restore("b")[0]
        same = store.diff(newest, "b")

    assert [("added", "list[1]", {"n": 1})] == [(c.kind, c.path, c.after) for c in turns]
    assert [("changed", "name", "a", "b")] == [(c.kind, c.path, c.before, c.after) for c in runs]
    assert [] == same


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nobody", "no checkpoint 'nobody'"),
        (f"{RUN}@1.0.0", "no checkpoint"),
        (f"{RUN}@1.999.0", "no checkpoint"),
        (f"{RUN}@2.1.0", "no checkpoint"),
        (f"{RUN}@77.1.0", "no checkpoint"),
        ("nobody@1.1.0", "no checkpoint"),
        (f"{RUN}@99", f"turn 99 of run '{RUN}' has not ended"),
        (f"{RUN}@", "no checkpoint"),
        ("none", "no turn of run 'none' has ended yet"),
    ],
)
def test_a_name_without_a_point_is_refused(stage: Stage, name: str, why: str) -> None:
    @holdfast.agent
    def dying(_run: holdfast.Run) -> None:
        raise Crash

    stage.live(Talk(2).agent)
    stage.die(dying, id="none")

    with stage.open() as store, pytest.raises(holdfast.UnknownCheckpoint) as caught:
        store.restore(name)

    assert why in str(caught.value)
    assert "--checkpoints" in str(caught.value)


def test_the_turn_in_which_the_run_ended_is_its_end(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            run.state["turn"] = turn
            if turn == 2:
                return

    stage.live(agent)

    with stage.open() as store:
        listed = store.checkpoints(RUN, every_turn=True)
        assert [point.id for point in listed] == [
            store.restore(f"{RUN}@{point.turn}")[0].id for point in listed
        ]
        assert store.restore(RUN) == store.restore(f"{RUN}@2")
        with pytest.raises(holdfast.UsageError, match="is the end of run"):
            store.fork(RUN, at=2)


@pytest.mark.parametrize("name", [None, 3, ("run", 1)])
def test_what_is_no_name_of_a_point_is_refused(stage: Stage, name: Any) -> None:  # noqa: ANN401 anything
    stage.live(Talk(2).agent)

    with stage.open() as store:
        for ask in (lambda: store.restore(name), lambda: store.diff(RUN, name)):
            with pytest.raises(holdfast.UsageError, match="a point is named by its id"):
                ask()


def test_a_point_of_another_run_is_refused_by_its_name(stage: Stage) -> None:
    stage.live(Talk(2).agent, id="one")
    stage.live(Talk(2).agent, id="other")

    with stage.open() as store:
        asks: list[Callable[[str], object]] = [
            partial(store.fork, at="other@1"),
            partial(store.plan_rollback, to="other@1"),
        ]
        for ask in asks:
            with pytest.raises(holdfast.UsageError, match="other@1 is a point of run other"):
                ask("one")


def test_points_and_differences_have_public_names(stage: Stage) -> None:
    stage.live(Talk(2).agent)

    with stage.open() as store:
        told, _ = store.restore(RUN)
        (*_, change) = store.diff(f"{RUN}@0", RUN)

    assert (holdfast.Checkpoint, holdfast.Change) == (type(told), type(change))


def test_a_run_whose_id_reads_like_a_checkpoint_is_found_first(stage: Stage) -> None:
    stage.live(Talk(2).agent, id="odd@1.2.3")

    with stage.open() as store:
        told, _ = store.restore("odd@1.2.3")
        again, _ = store.restore(told.id)

    assert "odd@1.2.3" == told.run
    assert told == again


def test_an_id_says_run_branch_row_and_entry() -> None:
    point = row_id(3, 17), 2

    assert "a@b@3.17.2" == point_id("a@b", point)
    assert ("a@b", point) == parse_point("a@b@3.17.2")
    assert None is parse_point("a@b")
    assert None is parse_point("a@1.99999999999.0")


def test_a_turn_without_a_cadence_is_not_hashed(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            if turn == 2:
                return

    stage.live(agent)

    assert [None, None] == [e.mark for e in stage.journal() if isinstance(e, TurnEnded)]


def test_importing_holdfast_does_not_load_pydantic() -> None:
    program = "import holdfast, sys; print('pydantic' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], check=True, capture_output=True, text=True
    )

    assert "False" == done.stdout.strip()
