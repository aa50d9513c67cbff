"""The example of the design, with the bodies it leaves out."""
# ruff: noqa: ARG001, B007, RET503 the example is written as a user writes it

from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.engine.kit import Crash, Stage, World, moments

world = World()
orders: dict[str, int] = {}
TURNS = 4


def cancel(outcome: dict[str, Any], order_id: str, qty: int) -> None:
    del orders[order_id]


def find(order_id: str, qty: int) -> dict[str, Any] | None:
    return {"id": order_id, "filled": orders[order_id]} if order_id in orders else None


@holdfast.step  # repeatable: asked again only if its answer was never recorded
def chat(messages: list[dict]) -> dict:  # type: ignore[type-arg]  # as in the design
    world.ask(f"chat {len(messages)}")
    turn = len(messages)
    if turn == TURNS:
        return {"role": "assistant", "done": True, "content": f"{turn} orders"}
    return {"role": "assistant", "done": False, "order_id": f"o{turn}", "qty": turn + 1}


@holdfast.effect(undo=cancel, probe=find, key="order_id")  # done once; looked up when in doubt
def place(order_id: str, qty: int) -> dict:  # type: ignore[type-arg]  # as in the design
    assert order_id not in orders, "an order was placed twice"
    world.ask(f"place {order_id}")
    orders[order_id] = qty
    return {"id": order_id, "filled": qty}


@holdfast.agent(checkpoint=holdfast.every(turns=1), sla=holdfast.SLA(max_recovery="30s"))
def trader(run: holdfast.Run, symbol: str) -> str:  # type: ignore[return]  # as in the design
    run.state.setdefault("messages", [])
    for turn in run.turns():  # after a crash, continues with the turn that was interrupted
        reply = chat(run.state["messages"])
        run.state["messages"].append(reply)
        if reply["done"]:
            return reply["content"]  # type: ignore[no-any-return]  # as in the design
        place(reply["order_id"], reply["qty"])


@pytest.fixture(autouse=True)
def _fresh() -> None:
    world.asked.clear()
    world.dies_at = None
    orders.clear()


def test_the_example_runs_word_for_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)

    store = holdfast.open()  # $HOLDFAST_STORE or ./.holdfast
    first = store.run(trader, "KELP", id="run-42")
    again = store.run(trader, "KELP", id="run-42")
    store.close()

    assert ("4 orders", "4 orders") == (first, again)
    assert (tmp_path / ".holdfast").is_dir()
    assert {"o0": 1, "o1": 2, "o2": 3, "o3": 4} == orders
    assert [] == world.repeated


@pytest.mark.parametrize("turn", range(TURNS))
@pytest.mark.parametrize("call", ["chat {}", "place o{}"])
def test_killed_in_any_call_it_continues_when_the_same_line_runs_again(
    stage: Stage, turn: int, call: str
) -> None:
    world.dies_at = call.format(turn)
    with pytest.raises(Crash):
        stage.live(trader, "KELP")
    world.dies_at = None

    result = stage.live(trader, "KELP")

    assert "4 orders" == result
    assert {"o0": 1, "o1": 2, "o2": 3, "o3": 4} == orders
    assert [call.format(turn)] == world.repeated


def test_killed_at_any_crash_point_it_continues_without_repeating(stage: Stage) -> None:
    names = set()
    for name, at, (placed, asked) in moments(
        stage, trader, "KELP", outside=lambda: (dict(orders), list(world.asked))
    ):
        names.add(name)
        orders.clear()
        orders.update(placed)
        world.asked = asked

        assert "4 orders" == at.live(trader, "KELP")
        assert {"o0": 1, "o1": 2, "o2": 3, "o3": 4} == orders
        # Only a step whose answer was not recorded yet is asked again; an effect never is.
        assert all(what.startswith("chat") for what in world.repeated)
        assert len(world.repeated) <= 1

    assert {"effect.intending", "effect.called", "step.recorded", "turn.ended"} <= names


def test_each_turn_is_a_checkpoint_and_the_sla_is_recorded(stage: Stage) -> None:
    stage.live(trader, "KELP")

    started, *entries = stage.journal()
    ends = [e for e in entries if type(e).__name__ == "TurnEnded"]
    assert [True] * TURNS == [e.mark is not None for e in ends]  # type: ignore[union-attr]
    assert holdfast.SLA(max_recovery="30s") == started.sla  # type: ignore[union-attr]
