"""An agent that does not wait for its answers to be on the disk: `python -m tests.crash.hasty`."""

import sys
from pathlib import Path

import holdfast
from tests.crash.outside import Outside

STEPS, EVERY = 40, 10
"""After every so many steps comes an effect."""

outside = Outside(Path())


@holdfast.step
def think(n: int) -> int:
    return n


@holdfast.effect(idempotent=True)
def pay(n: int, idempotency_key: str = "") -> int:
    outside.done(idempotency_key, f"pay {n}", "")
    return n


@holdfast.agent
def hasty(run: holdfast.Run) -> int:
    run.state["sum"] = 0
    for turn in run.turns():
        run.state["sum"] += think(turn)
        outside.note("got", str(turn))
        if turn % EVERY == EVERY - 1:
            pay(turn)
        if turn == STEPS - 1:
            break
    return int(run.state["sum"])


if __name__ == "__main__":
    outside.place = Path(sys.argv[1])
    with holdfast.open(outside.place / "store") as store:
        print(store.run(hasty, id="run", durability=sys.argv[2]))  # noqa: T201 its result
