"""Large values cost their bytes once, wherever a run keeps them."""

import numpy as np
import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine.given import given_key
from holdfast.model.journal import Based, TurnEnded
from holdfast.store.open import open_store
from holdfast.store.reference import is_reference
from holdfast.store.verify import Report, verify
from tests.engine.kit import RUN, Crash, Stage, World, text

MB = 1_000_000
DOCUMENT = text("document", 2 * MB)


def files(stage: Stage) -> list[int]:
    return [file.stat().st_size for file in (stage.path / "objects").glob("??/*")]


def looked_at(stage: Stage) -> Report:
    opened = open_store(stage.path, SystemClock(), key=given_key())
    try:
        return verify(opened, deep=True)
    finally:
        opened.close()


@holdfast.agent
def reader(run: holdfast.Run, turns: int) -> int:
    """Keeps a long text and a matrix in its state, and works beside them."""
    run.state.setdefault("work", {})
    for turn in run.turns():
        run.state["work"]["document"] = DOCUMENT
        run.state.setdefault("matrix", np.arange(100_000.0))
        run.state["work"]["turn"] = note(turn)
        if turn + 1 == turns:
            break
    assert DOCUMENT == run.state["work"]["document"]
    return int(run.state["matrix"].sum())


@holdfast.step
def note(turn: int) -> int:
    return turn


def test_a_large_leaf_of_the_state_costs_its_bytes_once_in_all_runs(stage: Stage) -> None:
    for run in ("one", "two"):
        assert 4_999_950_000 == stage.live(reader, 20, id=run)

    assert 2 == len(files(stage))
    database = sum(file.stat().st_size for file in stage.path.glob("store.db*"))
    assert database < MB / 4
    assert looked_at(stage).is_whole


def test_a_state_with_large_leaves_comes_back_after_a_crash(stage: Stage, world: World) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[int]:
        for turn in run.turns():
            if turn == 0:
                run.state["documents"] = [DOCUMENT, {"again": DOCUMENT}]
            note(turn)
            if turn == 3:
                world.ask("last")
                break
        return [len(run.state["documents"][0]), len(run.state["documents"][1]["again"])]

    world.dies_at = "last"
    stage.die(agent)
    world.dies_at = None

    assert [2 * MB, 2 * MB] == stage.restart(agent)
    deltas = [len(e.delta or b"") for e in stage.journal() if isinstance(e, TurnEnded)]
    assert max(deltas) < 500


def test_answers_outcomes_arguments_and_results_lie_aside(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(n: int) -> dict[str, str]:
        world.ask("chat")
        return {"content": text(("answer", n), MB)}

    @holdfast.effect(key="n")
    def upload(n: int, data: str) -> str:
        world.ask("upload")
        return data + "!" * n

    @holdfast.agent
    def agent(run: holdfast.Run, task: str) -> str:
        for _ in run.turns():
            run.state["reply"] = chat(1)
            run.state["sent"] = upload(1, task)
            world.ask("last")
            break
        return str(run.state["reply"]["content"] + run.state["sent"])

    task = text("task", MB)
    world.dies_at = "last"
    stage.die(agent, task)
    world.dies_at = None

    result = stage.restart(agent)

    assert text(("answer", 1), MB) + task + "!" == result
    assert result == stage.live(agent)
    assert ["chat", "upload"] == [what for what in world.asked if what != "last"]
    entries = stage.journal()
    assert {"Started", "Answer", "Intended", "Happened", "Finished"} == {
        type(entry).__name__
        for entry in entries
        for data in (getattr(entry, "value", None), getattr(entry, "args", None))
        if data is not None and is_reference(data)
    }
    assert looked_at(stage).is_whole


def test_a_large_leaf_that_is_gone_is_found_by_verify_and_named_by_a_restart(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            run.state["document"] = {"text": DOCUMENT, 1: turn}
            note(turn)
            if turn == 2:
                raise Crash

    stage.die(agent)
    [file] = (stage.path / "objects").glob("??/*")
    file.rename(stage.path / "elsewhere")

    report = looked_at(stage)

    assert {"it is named but not there"} == {found.why for found in report.findings}
    assert {f"chunk {file.name}"} == {found.where for found in report.findings}
    with pytest.raises(holdfast.Damaged, match=file.name):
        stage.live(agent, id=RUN)


def test_what_a_long_run_holds_is_written_once(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        messages = run.state.setdefault("messages", [])
        for turn in run.turns():
            messages.append({"role": "user", "content": text(turn, 2_000)})
            note(turn)
            if turn == 300:
                break

    stage.live(agent)

    bases = [len(entry.state) for entry in stage.journal() if isinstance(entry, Based)]
    assert len(bases) > 3
    assert sum(bases) < 0.03 * 300 * 2_000


def test_a_large_value_that_is_kept_again_does_not_rely_on_a_damaged_file(stage: Stage) -> None:
    stage.live(reader, 2, id="one")
    for file in (stage.path / "objects").glob("??/*"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)

    stage.live(reader, 2, id="two")

    assert looked_at(stage).is_whole
    with stage.open() as store:
        assert DOCUMENT == store.restore("two")[1]["work"]["document"]
