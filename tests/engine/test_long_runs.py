"""Long runs: bases are written now and then, and what is restored from them is the state."""

import copy
from typing import Any

import pytest

import holdfast
from holdfast.model.journal import Based
from tests.engine.kit import Crash, Stage, World, text

TURNS = 320


def change(state: Any, turn: int, reply: Any) -> None:  # noqa: ANN401 state, or its twin
    """What a busy agent does to its state in a turn."""
    state.setdefault("messages", []).append(reply)
    state.setdefault("by turn", {})[turn] = reply["parts"]
    reply["parts"].append({"late": turn})
    state["tags"] = state.get("tags", set()) | {turn % 7}
    if turn % 5 == 0:
        del state["messages"][: len(state["messages"]) // 3]
    if turn % 11 == 0:
        state["by turn"].pop(turn - 11, None)
        state["messages"].insert(0, {"role": "system", "n": turn})
    if turn % 13 == 0:
        state["messages"].reverse()
        state["nested"] = {"deep": [[turn], {"n": {turn: (turn, text(turn, 40))}}]}


def expected(turns: int) -> dict[str, Any]:
    twin: dict[str, Any] = {}
    for turn in range(turns):
        change(twin, turn, answer(turn))
    return twin


def answer(turn: int) -> dict[str, Any]:
    return {"role": "assistant", "text": text(turn, 900), "parts": [turn, {"t": text(-turn, 90)}]}


def test_hundreds_of_turns_are_restored_exactly_wherever_the_run_was_cut(stage: Stage) -> None:
    asked: list[int] = []
    cuts = {1, 40, 41, 42, 77, 100, 101, 163, 200, 250, 251, 319}
    seen: list[tuple[int, Any]] = []

    @holdfast.step
    def chat(turn: int) -> dict[str, Any]:
        asked.append(turn)
        return answer(turn)

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        chat(-1)
        is_first = True
        for turn in run.turns():
            if is_first:
                seen.append((turn, copy.deepcopy(holdfast.plain(run.state))))
                is_first = False
            reply = chat(turn)
            if turn in cuts:
                cuts.remove(turn)
                raise Crash
            change(run.state, turn, reply)
            if turn == TURNS - 1:
                return turn
        raise AssertionError

    for _ in range(12):
        stage.die(agent)

    assert TURNS - 1 == stage.live(agent)
    assert list(range(-1, TURNS)) == asked
    for turn, state in seen:
        assert expected(turn) == state
        assert list(expected(turn)) == list(state)
    bases = [e for e in stage.journal() if isinstance(e, Based)]
    assert 2 < len(bases) < TURNS // 10
    assert all(base.outside for base in bases)


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_loop_that_ends_right_where_a_base_is_written_is_skipped_rightly(
    stage: Stage, offset: int
) -> None:
    is_dying, last, seen = True, 100, []

    @holdfast.step
    def chat(turn: int) -> str:
        return text(turn, 2_000)

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        for turn in run.turns():
            run.state.setdefault("said", []).append(chat(turn))
            if turn == last:
                break
        seen.append(len(run.state["said"]))
        for turn in run.turns():
            chat(turn)
            if is_dying:
                raise Crash
            return turn
        raise AssertionError

    def bases(id_: str) -> list[int]:
        return [entry.turn for entry in stage.journal(id_) if isinstance(entry, Based)]

    stage.die(agent, id="to find where a base is due")
    due = bases("to find where a base is due")[0]
    last = due + offset
    for n in range(9):  # Rows hold times, so a base comes a turn earlier or later now and then.
        run, is_dying = f"run-{n}", True
        seen.clear()
        stage.die(agent, id=run)
        if bases(run)[:1] == ([] if offset < 0 else [due]):
            break
    is_dying = False

    assert last + 1 == stage.live(agent, id=run)
    assert [last + 1, last + 1] == seen
    kinds = stage.kinds(run)
    after = kinds[kinds.index("LoopLeft") :][:3]
    assert (["LoopLeft", "TurnEnded", "Based"] == after) is (offset == 0)


def test_a_long_run_restarts_from_its_last_base_and_not_from_its_start(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def chat(turn: int) -> str:
        world.ask(f"chat {turn}")
        return text(turn, 2_000)

    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        run.state["last"] = ""
        for turn in run.turns():
            run.state["last"] = chat(turn)
            if turn == TURNS:
                return turn
        raise AssertionError

    world.dies_at = f"chat {TURNS}"
    stage.die(agent)
    world.dies_at = None
    read: list[int] = []
    with stage.open() as store:
        reader = store._opened.reader  # noqa: SLF001 to count what is read
        history = reader.history

        def counting(run: Any) -> Any:  # noqa: ANN401
            found = history(run)
            read.append(len(found.rows) + len(found.outside))
            return found

        reader.history = counting  # type: ignore[method-assign]
        assert TURNS == store.run(agent, id="run-1")

    assert max(read) < TURNS // 3
    assert [f"chat {TURNS}"] == world.repeated


def test_ten_megabytes_of_text_go_through_answers_arguments_and_state(
    stage: Stage, world: World
) -> None:
    big = text("big", 10_000_000)

    @holdfast.step
    def fetch(turn: int) -> dict[str, str]:
        world.ask(f"fetch {turn}")
        return {"body": big}

    @holdfast.step
    def length(body: str, turn: int) -> int:
        world.ask(f"length {turn}")
        return len(body)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        for turn in run.turns():
            run.state["page"] = fetch(turn)
            count = length(run.state["page"]["body"], turn)
            if turn == 1:
                return [count, run.state["page"]["body"] == big]
        raise AssertionError

    for what in ("length 0", "fetch 1", "length 1"):
        world.dies_at = what
        stage.die(agent)
    world.dies_at = None

    assert [10_000_000, True] == stage.live(agent)
    assert ["fetch 1", "length 0", "length 1"] == world.repeated
