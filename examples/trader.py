"""An agent that places orders. Kill it anywhere and run it again: no order is placed twice.

Play it with `python examples/trader.py`.

The model is scripted and the exchange is a file, `orders.jsonl`, so the example needs nothing else.
"""

import json
from pathlib import Path
from typing import Any

import holdfast

EXCHANGE = Path("orders.jsonl")
SCRIPT = [("ord-1", 10), ("ord-2", 25), ("ord-3", 5)]


def placed() -> list[dict[str, Any]]:
    """The orders the exchange knows of: the world, which no restart rolls back."""
    if not EXCHANGE.exists():
        return []
    return [json.loads(line) for line in EXCHANGE.read_text(encoding="utf-8").splitlines()]


def find(order_id: str, qty: int) -> dict[str, Any] | None:
    """Ask the exchange whether an order that a crash cut off has arrived."""
    return next((o for o in placed() if (o["id"], o["qty"]) == (order_id, qty)), None)


def cancel(outcome: dict[str, Any], order_id: str, qty: int) -> None:
    """Take an order back, should the run be rolled back behind it."""
    kept = [o for o in placed() if (o["id"], o["qty"]) != (order_id, qty)]
    EXCHANGE.write_text("".join(json.dumps(o) + "\n" for o in kept), encoding="utf-8")
    print("cancelled", outcome["id"])


@holdfast.step  # repeatable: asked again only if its answer was never recorded
def chat(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The model: here it says its lines, one for each turn."""
    if len(messages) == len(SCRIPT):
        return {"done": True, "content": f"bought {sum(qty for _, qty in SCRIPT)}"}
    order_id, qty = SCRIPT[len(messages)]
    return {"done": False, "order_id": order_id, "qty": qty}


@holdfast.effect(undo=cancel, probe=find, key="order_id")  # done once; looked up when in doubt
def place(order_id: str, qty: int) -> dict[str, Any]:
    """Place an order at the exchange."""
    order = {"id": order_id, "qty": qty}
    with EXCHANGE.open("a", encoding="utf-8") as file:
        file.write(json.dumps(order) + "\n")
    print("placed", order_id, qty)
    return order


@holdfast.agent(checkpoint=holdfast.every(turns=1), sla=holdfast.SLA(max_recovery="30s"))
def trader(run: holdfast.Run, symbol: str) -> str:
    """Ask the model what to do, and do it, until it says that it is done."""
    run.state.setdefault("messages", [])
    for _ in run.turns():  # after a crash, continues with the turn that was interrupted
        reply = chat(run.state["messages"])
        run.state["messages"].append(reply)
        if reply["done"]:
            break
        place(reply["order_id"], reply["qty"])
    return f"{reply['content']} {symbol}"


if __name__ == "__main__":
    with holdfast.open() as store:  # $HOLDFAST_STORE or ./.holdfast
        print(store.run(trader, "KELP", id="run-42"))
