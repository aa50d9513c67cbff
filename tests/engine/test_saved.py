"""A checkpoint or snapshot that the agent asks for costs what changed, and is exact."""

import contextlib
import copy
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.engine import turns
from holdfast.engine.transfer import admit, collect
from holdfast.model.journal import Based, Kept, Saved
from holdfast.store.verify import verify
from tests.corruption.test_offer import spoil
from tests.engine.kit import RUN, Crash, Stage, reaching, text

TURNS = 60
MESSAGE = 1000


@holdfast.step
def say(n: int) -> dict[str, Any]:
    return {"role": "assistant", "content": text(n, MESSAGE)}


@pytest.mark.parametrize("only", [None, ["llm"]], ids=["checkpoint", "snapshot"])
def test_checkpoints_in_a_growing_conversation_cost_what_changed(
    stage: Stage, only: list[str] | None
) -> None:
    asked: dict[str, Any] = {}

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        run.state.update(llm={"messages": []}, vars={"n": 0})
        for turn in run.turns():
            run.state["llm"]["messages"].append(say(turn))
            run.state["vars"]["n"] = turn
            kept = holdfast.plain(run.state)
            wanted = kept if only is None else {name: kept[name] for name in only}
            asked[run.checkpoint(only=only)] = copy.deepcopy(wanted)
            if turn == TURNS:
                return

    stage.live(agent)

    with stage.open() as store:
        points = store.checkpoints(RUN)
        assert asked == {each.id: store.restore(each.id)[1] for each in points}
    assert max(each.bytes for each in points) < MESSAGE // 10


def test_snapshots_by_cadence_in_a_growing_conversation_cost_what_changed(stage: Stage) -> None:
    seen: list[Any] = []

    @holdfast.agent(snapshot={"llm": holdfast.every(turns=1)})
    def agent(run: holdfast.Run) -> None:
        run.state.update(llm={"messages": []}, vars={"n": 0})
        for turn in run.turns():
            run.state["llm"]["messages"].append(say(turn))
            run.state["vars"]["n"] = turn
            seen.append({"llm": holdfast.plain(run.state["llm"])})
            if turn == TURNS:
                return

    stage.live(agent)

    with stage.open() as store:
        points = store.checkpoints(RUN)
        assert seen[:-1] == [store.restore(each.id)[1] for each in points]
        assert TURNS - 1 == store.restore(f"{RUN}@{TURNS - 1}")[1]["vars"]["n"]
    assert max(each.bytes for each in points) < MESSAGE // 10


def change(state: Any, chance: random.Random) -> None:  # noqa: ANN401 states hold anything
    """One of the things people do to their state."""
    items, facts = state["items"], state["facts"]
    match chance.randrange(8):
        case 0:
            items.append(say(chance.randrange(50)))
        case 1:
            items.append({"role": "user", "content": text(chance.random(), MESSAGE)})
        case 2:
            state["items"] = items[-15:]
        case 3:
            facts[f"k{chance.randrange(5)}"] = [chance.random()]
        case 4:
            facts.pop(f"k{chance.randrange(5)}", None)
        case 5 if items:
            items[chance.randrange(len(items))]["touched"] = {"n": chance.random()}
        case 6:
            facts["alias"] = items
        case _:
            items.insert(0, {"tags": {chance.randrange(9)}})


def until_done(stage: Stage, agent: holdfast.Agent[..., Any], chance: random.Random) -> Any:  # noqa: ANN401 the agent's own
    """Kill the run again and again; give its result."""
    while True:
        points = iter(range(chance.randrange(5, 120), 0, -1))

        def die(_name: str, points: Iterator[int] = points) -> None:
            # The housekeeper, which may pass by on a slow machine, would die alone.
            if threading.current_thread() is threading.main_thread() and next(points, 0) == 1:
                raise Crash

        with contextlib.suppress(Crash), reaching(die):
            return stage.live(agent)


@pytest.mark.parametrize("seed", range(8))
def test_every_point_of_any_history_is_exact_whatever_is_killed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(turns, "BASE_BYTES_MIN", 4 * MESSAGE)  # Bases name what saves wrote.
    asked: dict[str, Any] = {}

    def seen(run: holdfast.Run, only: list[str] | None) -> None:
        kept = copy.deepcopy(holdfast.plain(run.state))
        wanted = kept if only is None else {name: kept[name] for name in only}
        id_ = run.checkpoint(only=only)
        assert asked.setdefault(id_, wanted) == wanted

    @holdfast.agent(checkpoint=holdfast.every(steps=3), snapshot={"facts": holdfast.every(steps=2)})
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401 the state
        run.state.update(items=[], facts={})
        seen(run, None)
        for turn in run.turns():
            chance = random.Random(f"{seed} {turn}")  # noqa: S311 it is to repeat
            for _ in range(chance.randrange(1, 6)):
                change(run.state, chance)
                if chance.random() < 0.5:
                    seen(run, chance.choice([None, ["items"], ["facts", "items"]]))
            if turn == 20:
                break
        seen(run, ["facts"])
        run.state["facts"]["end"] = True
        return holdfast.plain(run.state)

    result = until_done(stage, agent, random.Random(seed))  # noqa: S311 it is to repeat

    with stage.open() as store:
        points = {each.id for each in store.checkpoints(RUN)}
        assert asked.keys() <= points
        assert asked == {id_: store.restore(id_)[1] for id_ in asked}
        for id_ in points:
            store.restore(id_)  # Against its root.
        assert result == store.restore(RUN)[1]
        assert any(isinstance(entry, Based) for entry in stage.journal())
        assert [] == verify(store.opened, deep=True).findings


def test_a_fork_of_a_checkpoint_in_the_middle_of_a_turn_goes_on_from_there(stage: Stage) -> None:
    ids: list[str] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401 the state
        run.state["items"] = []
        for turn in run.turns():
            run.state["items"].append(say(turn))
            ids.append(run.checkpoint())
            run.state["items"].append(turn)
            ids.append(run.checkpoint(only=["items"]))
            if turn == 3:
                break
        return holdfast.plain(run.state)

    result = stage.live(agent)

    with stage.open() as store:
        for number, id_ in enumerate(ids[:8]):
            store.fork(RUN, at=id_, new_id=f"fork-{number}")
            assert result == store.run(agent, id=f"fork-{number}")
        assert [] == verify(store.opened, deep=True).findings


def test_an_exported_checkpoint_is_restored_where_it_is_imported(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        run.state.update(items=[], other=[])
        ids = []
        for turn in run.turns():
            run.state["items"].append(say(turn))
            ids.append(run.checkpoint())
            ids.append(run.checkpoint(only=["items"]))
            if turn == 3:
                break
        return ids

    ids = stage.live(agent)
    with stage.open() as store:
        before = [store.restore(id_)[1] for id_ in ids]
        run = store.opened.reader.find(RUN)
        assert run is not None
        parcel = collect(store.opened, run)

    with holdfast.open(stage.path.with_name("other")) as other:
        other.run(agent, id="first")  # So that numbers are others than where it came from.
        admit(other.opened, parcel)
        points = [each.id for each in other.checkpoints(RUN)]
        assert before == [other.restore(id_)[1] for id_ in points]


def test_a_snapshot_is_made_while_another_section_cannot_be_stored(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        run.state.update(llm=[1], tools={"lock": threading.Lock()})
        id_ = run.checkpoint(only=["llm"])
        with pytest.raises(holdfast.NotStorable):
            run.checkpoint()
        del run.state["tools"]["lock"]
        run.state["llm"].append(2)
        return id_

    id_ = stage.live(agent)

    with stage.open() as store:
        assert {"llm": [1]} == store.restore(id_)[1]
        assert {"llm": [1, 2], "tools": {}} == store.restore(RUN)[1]


def test_threads_of_a_run_may_ask_for_checkpoints_at_the_same_time(stage: Stage) -> None:
    ids: list[str] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        run.state["items"] = []
        for turn in run.turns():
            ask = run.wrap(lambda label: ids.append(run.checkpoint(label)))
            threads = [threading.Thread(target=ask, args=(str(n),)) for n in range(3)]
            for each in threads:
                each.start()
            for n in range(20):
                run.state["items"].append([turn, n])
            for each in threads:
                each.join()
            if turn == 5:
                return

    stage.live(agent)

    with stage.open() as store:
        for id_ in ids:
            state = store.restore(id_)[1]  # Against its root.
            order = [[turn, n] for turn in range(6) for n in range(20)]
            assert order[: len(state["items"])] == state["items"]
        assert 120 == len(store.restore(RUN)[1]["items"])
        assert 18 == len(set(ids))


def test_no_entry_holds_a_second_copy_of_the_state(stage: Stage) -> None:
    @holdfast.agent(checkpoint=holdfast.every(steps=1), snapshot={"a": holdfast.every(steps=1)})
    def agent(run: holdfast.Run) -> None:
        run.state["a"] = []
        for turn in run.turns():
            run.state["a"].append(say(turn))
            run.checkpoint()
            run.checkpoint(only="a")
            if turn == 2:
                return

    stage.live(agent)

    saves = [each for each in stage.journal() if isinstance(each, Saved | Kept)]
    assert len(saves) > 9
    assert {None} == {each.state for each in saves}


def test_checkpoints_of_an_open_turn_are_carried_whole_by_a_repair(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "BASE_BYTES_MIN", 100)  # So that the end needs nothing of the start.
    died: list[bool] = []

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        run.state.update(a=[], b=[])
        for turn in run.turns():
            run.state["a"][:] = [turn]
            run.state["b"][:] = [turn]
            say(turn)
            if turn == 9:
                run.checkpoint("first")
                run.state["a"].append("more")
                run.checkpoint("second")
                run.checkpoint("third", only=["b"])
                if not died:
                    died.append(True)
                    raise Crash
                break
        return len(died)

    stage.die(agent)
    spoil(stage.path, 1, 2)

    holdfast.plan_repair(stage.path).apply()

    with stage.open() as store:
        kept = {each.label: store.restore(each.id)[1] for each in store.checkpoints(RUN)}
        assert {
            "first": {"a": [9], "b": [9]},
            "second": {"a": [9, "more"], "b": [9]},
            "third": {"b": [9]},
        } == kept
        assert [] == verify(store.opened, deep=True).findings
        assert 1 == store.restart(RUN, agent=agent)
        assert {"a": [9, "more"], "b": [9]} == store.restore(RUN)[1]
