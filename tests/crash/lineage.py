"""A warm process whose children roll back, fork, allow and go on with runs, to be killed there.

Orders come as lines of JSON on its standard input; for each it prints the child's exit status.
"""
# ruff: noqa: ARG001 handlers take what they are given

import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holdfast
from holdfast import failpoint
from holdfast.clock import SystemClock
from holdfast.engine import hold

RUN, FORK, BUYER = "run", "fork", "buyer"
TURNS = 4
COUNTS_S, WISH_S = 0.5, 0.1
"""How long a wish to pause counts here, and how often somebody looks whether it still does."""
LIFE_S_MAX = 60
LOADED_LATE = ("pydantic.main", "holdfast.engine.checkpoint")
"""What a rollback loads when it comes to it: loaded here, no child spends its life on it."""

place = Path()
words: dict[str, Any] = {"qty": 1}


def note(text: str) -> None:
    """The world's own record; it survives a kill of this process."""
    with (place / "log").open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def log() -> list[str]:
    file = place / "log"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def find_order(order: str, qty: int) -> str | None:
    found = place / f"order-{order}"
    return found.read_text(encoding="utf-8") if found.exists() else None


def cancel_order(outcome: str, order: str) -> None:
    note(f"undo order {order} {outcome}")
    (place / f"order-{order}").unlink()


@holdfast.effect(undo=cancel_order, probe=find_order, key="order")
def order(order: str, qty: int, idempotency_key: str = "") -> str:
    """Looked up and undone."""
    note(f"do order {order} {idempotency_key}")
    (place / f"order-{order}").write_text(str(qty), encoding="utf-8")
    return str(qty)


def unbook(outcome: str, seat: str, idempotency_key: str) -> None:
    note(f"undo seat {seat} {idempotency_key}")


@holdfast.effect(undo=unbook, key="seat")
def book(seat: str, idempotency_key: str = "") -> str:
    """Undone under a key, so that whoever receives it drops a second one."""
    note(f"do seat {seat} {idempotency_key}")
    return seat


def untell(outcome: str, whom: str) -> None:
    note(f"undo tell {whom}")


@holdfast.effect(undo=untell, key="whom")
def tell(whom: str, idempotency_key: str = "") -> str:
    """Undone by a handler that cannot be asked twice."""
    note(f"do tell {whom} {idempotency_key}")
    return whom


@holdfast.effect(key="to")
def mail(to: str, text: str, idempotency_key: str = "") -> str:
    """Cannot be undone."""
    note(f"do mail {text} {idempotency_key}")
    return text


def unwrap(outcome: str, what: str) -> None:
    if not (place / "unsealed").exists():
        raise holdfast.NotDone(f"{what} is sealed")
    note(f"undo {what}")


@holdfast.effect(undo=unwrap, key="what", idempotent=True)
def wrap(what: str) -> str:
    """Its undo fails until somebody breaks the seal."""
    return what


@holdfast.effect(idempotent=True, key="box")
def ship(box: str, idempotency_key: str = "") -> str:
    """In doubt when it is cut off; repeated under its key."""
    note(f"do ship {box} {idempotency_key}")
    return box


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def trader(run: holdfast.Run) -> int:
    run.state["turns"] = []
    for turn in run.turns():
        if turn == 1:
            order("a", 1)
            book("4c")
            tell("bob")
            wrap("gift")
            mail("ann", words.get("text", "hello"))
        if turn == 2:
            ship("crate")
        run.state["turns"].append(turn)
        if turn == TURNS - 1:
            return len(run.state["turns"])
    raise AssertionError


def roll_back(store: holdfast.Store) -> None:
    """Roll back once, or go on with what was cut off."""
    info = store.get(RUN)
    if info.status is holdfast.Status.ROLLING_BACK:
        store.plan_rollback(RUN).apply()
    elif info.branch == 1:
        store.plan_rollback(RUN, to=0).apply()


def roll_back_in_a_pause(store: holdfast.Store) -> None:
    info = store.get(RUN)
    if info.status is holdfast.Status.ROLLING_BACK:
        store.plan_rollback(RUN).apply()
    elif info.branch == 1:
        store.plan_rollback(RUN, to=0).apply(pause=True)


def undo_again(store: holdfast.Store) -> None:
    """Try failed undos again, or go on with what was cut off."""
    (place / "unsealed").touch()
    if store.get(RUN).status is holdfast.Status.ROLLING_BACK:
        store.plan_rollback(RUN).apply()
    else:
        store.retry_undos(RUN)


def undo_by_hand(store: holdfast.Store) -> None:
    """A person says so; whoever was cut off while saying it says it again."""
    if store.get(RUN).status is holdfast.Status.ROLLING_BACK:
        store.plan_rollback(RUN).apply()
    for item in store.inbox():
        if item.kind == "undo":
            store.answer(item.id, "undone", by="ann")


@holdfast.effect(approve=True, key="what")
def buy(what: str, idempotency_key: str = "") -> str:
    note(f"do buy {what} {idempotency_key}")
    return what


@holdfast.agent
def buyer(run: holdfast.Run) -> str:
    for _ in run.turns():
        return buy("kelp")
    raise AssertionError


def ask(store: holdfast.Store) -> None:
    try:
        store.run(buyer, id=BUYER)
    except holdfast.Waiting:
        return
    raise AssertionError


def approve(store: holdfast.Store) -> None:
    for item in store.inbox():
        if item.kind == "approval":
            store.approve(item.id, by="ann")


def go_shopping(store: holdfast.Store) -> None:
    """A person who looks at the world settles what is in doubt."""
    try:
        store.run(buyer, id=BUYER)
    except holdfast.InDoubt as doubt:
        happened = any(line.endswith(doubt.key) for line in log())
        store.resolve(BUYER, doubt.key, happened=happened, outcome="kelp" if happened else None)
        store.run(buyer, id=BUYER)


def fork(store: holdfast.Store) -> None:
    if FORK not in {info.id for info in store.runs()}:
        store.fork(RUN, at=0, new_id=FORK)


def allow(store: holdfast.Store) -> None:
    """Another wording: blocked, then allowed by a person, then done."""
    words["text"] = "good day"
    try:
        go_on(store, RUN)
    except holdfast.Blocked as blocked:
        store.allow(RUN, blocked.key)
        go_on(store, RUN)


def go_back(store: holdfast.Store) -> None:
    if store.get(RUN).branch != 1:
        store.undo_rollback(RUN)


def go_on(store: holdfast.Store, run: str) -> None:
    """Go on to the end; a person who looks at the world settles what is in doubt."""
    outcomes = {"book": "4c", "tell": "bob", "mail": words.get("text", "hello")}
    while True:
        try:
            store.run(trader, id=run)
        except holdfast.InDoubt as doubt:
            happened = any(line.endswith(doubt.key) for line in log())
            outcome = outcomes[doubt.effect] if happened else None
            store.resolve(run, doubt.key, happened=happened, outcome=outcome)
        except holdfast.Paused:
            SystemClock().sleep(WISH_S)  # Of somebody who was killed: it counts for a moment.
        else:
            return


def cancel(store: holdfast.Store) -> None:
    store.cancel(RUN)


def revive(store: holdfast.Store) -> None:
    if store.get(RUN).status is not holdfast.Status.FINISHED:
        store.restart(RUN, agent=trader, revive=True)


ACTS: dict[str, Callable[[holdfast.Store], object]] = {
    "start": lambda store: store.run(trader, id=RUN),
    "roll back": roll_back,
    "go on": lambda store: go_on(store, RUN),
    "fork": fork,
    "go on with the fork": lambda store: go_on(store, FORK),
    "allow": allow,
    "go back": go_back,
    "roll back in a pause": roll_back_in_a_pause,
    "undo again": undo_again,
    "undo by hand": undo_by_hand,
    "ask": ask,
    "approve": approve,
    "buy": go_shopping,
    "cancel": cancel,
    "revive": revive,
}


def main() -> None:
    hold.COUNTS_S = COUNTS_S
    for each in LOADED_LATE:
        importlib.import_module(each)
    for line in sys.stdin:
        told = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os._exit(_child(told))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _child(told: dict[str, Any]) -> int:
    global place  # noqa: PLW0603 the world of this child
    signal.alarm(LIFE_S_MAX)
    place = Path(told["place"])
    counted: dict[str, int] = {}
    try:
        for name in told.get("count", ()):
            counted[name] = 0
            failpoint.arm(name, lambda name=name: _count(counted, name))  # type: ignore[misc]
        failpoint.arm_from(told.get("failpoint", ""))
        with holdfast.open(place / "store") as store:
            ACTS[told["act"]](store)
        (place / "counted").write_text(json.dumps(counted), encoding="utf-8")
    except BaseException:  # noqa: BLE001 a child ends here, whatever it was
        traceback.print_exc()
        return 1
    return 0


def _count(counted: dict[str, int], name: str) -> None:
    counted[name] += 1


if __name__ == "__main__":
    main()
