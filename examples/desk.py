"""A trading desk: no order twice, no order on a corrupted quote, and a person for what is unclear.

Play it with `python examples/desk.py`.

The exchange is a file. On the way a quote comes corrupted, the process is killed while an order is
on its way, the exchange loses a connection with an order in doubt, and of a pair that is bought
together or not at all the second half is refused.
"""

import json
import os
import signal
from pathlib import Path
from typing import Any

import holdfast

EXCHANGE = Path("exchange.jsonl")
SYMBOLS = ["KELP", "ROCK", "TIDE", "FOAM"]
PAIR = ["WAVE", "DUNE"]  # bought together or not at all


class Refused(Exception):
    """The exchange said no: surely nothing was bought."""


def is_first(what: str) -> bool:
    """Whether this trouble never struck before, in any process."""
    mark = Path(f"trouble-{what}")
    if mark.exists():
        return False
    mark.touch()
    return True


def orders() -> list[dict[str, Any]]:
    """The book of the exchange: the world, which no rollback rolls back."""
    if not EXCHANGE.exists():
        return []
    return [json.loads(line) for line in EXCHANGE.read_text().splitlines()]


def write(order: dict[str, Any]) -> None:
    """A line in the book of the exchange."""
    with EXCHANGE.open("a") as file:
        file.write(json.dumps(order) + "\n")


@holdfast.step(retry=holdfast.Retry(attempts=3, base=0))
def quote(symbol: str) -> int:
    """The price in cents; once the feed is corrupted, and says so only by what it says."""
    if symbol == "ROCK" and is_first("corrupted"):
        return -1250
    return 1000 + 10 * [*SYMBOLS, *PAIR].index(symbol)


def find(symbol: str, cents: int) -> dict[str, Any] | None:
    """Ask the exchange for an order that may have arrived."""
    if symbol == "FOAM" and not Path("line-is-back").exists():
        raise ConnectionError("the exchange does not answer")
    open_ = [o for o in orders() if (o["symbol"], o["cents"]) == (symbol, cents)]
    return open_[0] if open_ and not is_cancelled(symbol, cents) else None


def is_cancelled(symbol: str, cents: int) -> bool:
    """Whether the order was taken back."""
    return {"cancel": symbol, "cents": cents} in [
        {"cancel": o.get("cancel"), "cents": o["cents"]} for o in orders()
    ]


def cancel(outcome: dict[str, Any], symbol: str, cents: int) -> None:
    """Take an order back, since the run was rolled back behind it."""
    write({"symbol": None, "cancel": symbol, "cents": cents})
    print("cancelled", symbol, outcome["cents"], flush=True)


@holdfast.effect(probe=find, undo=cancel, key="symbol", not_done=Refused)
def place(symbol: str, cents: int) -> dict[str, Any]:
    """Place an order; one is cut off by a kill, another by the network, a third is refused."""
    if symbol == "DUNE":
        raise Refused(symbol)
    order = {"symbol": symbol, "cents": cents}
    write(order)
    print("placed", symbol, cents, flush=True)
    if symbol == "TIDE" and is_first("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    if symbol == "FOAM" and is_first("lost"):
        raise ConnectionError("the line to the exchange is down")
    return order


def sound(state: dict[str, Any]) -> bool:
    """No position was bought at a price that cannot be."""
    return all(cents > 0 for cents in state.get("positions", {}).values())


@holdfast.agent(
    checkpoint=holdfast.every(turns=1),
    validate=sound,
    sla=holdfast.SLA(max_recovery="10s", task_usd=5000, turn_usd=1, criticality=5),
)
def desk(run: holdfast.Run) -> str:
    """Buy one of each."""
    run.state["positions"] = {}
    for turn in run.turns():
        symbol = SYMBOLS[turn]
        cents = quote(symbol)
        place(symbol, cents)
        run.state["positions"][symbol] = cents
        if turn == len(SYMBOLS) - 1:
            break
    try:
        with run.critical("pair", raises=[Refused]):
            for symbol in PAIR:
                place(symbol, quote(symbol))
                run.state["positions"][symbol] = quote(symbol)
    except Refused:
        pass  # What the section did is taken back, in the world and in the state.
    return f"bought {', '.join(run.state['positions'])}"


if __name__ == "__main__":
    with holdfast.open() as store:
        try:
            print(store.supervise(desk, id="desk-1"))
        except holdfast.InDoubt as doubt:
            print("in doubt:", doubt.effect)
            Path("line-is-back").touch()  # A person calls the exchange; then the probe can tell.
            print(store.supervise(desk, id="desk-1"))
