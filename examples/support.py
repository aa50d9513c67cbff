"""A support agent under a promise: 99.9 % available, on its way again within 30 s of a failure.

Play it with `python examples/support.py`; put it under every fault there is, from the directory it
is in, with `holdfast drill run support:support --scenario support.toml`.

The task takes three minutes in the original and three seconds here. On the way the model is
overloaded, a tool hangs, and the process is killed; the customer gets one answer and one refund.
"""

import os
import signal
import threading
from pathlib import Path

import holdfast
from holdfast.drill import fake

MAIL, LEDGER = Path("mail.txt"), Path("refunds.txt")
PACE_S = 0.15  # a turn; 9 s in the original
QUESTIONS = ["greet", "find order", "check stock", "check payment", "judge", "write answer"]


def is_first(what: str) -> bool:
    """Whether this trouble never struck before, in any process."""
    mark = Path(f"trouble-{what}")
    if mark.exists():
        return False
    mark.touch()
    return True


def pause(seconds: float) -> None:
    """Let time pass."""
    threading.Event().wait(seconds)


class Overloaded(Exception):
    """As a provider's library raises it: it carries an HTTP status and asks to be left alone."""

    status_code = 529
    retry_after = 0.1


@holdfast.step(timeout="5s", retry=holdfast.Retry(attempts=4, base="100ms", cap="1s"))
def model(turn: int) -> str:
    """The model; it is overloaded once, which passes by itself."""
    if turn == 1 and is_first("overload"):
        raise Overloaded("the model is overloaded")
    pause(PACE_S)
    return f"{QUESTIONS[turn]}: done"


@holdfast.step(timeout="300ms", retry=holdfast.Retry(attempts=2, base=0))
def stock(item: str) -> int:
    """A tool that hangs once; after its limit it is asked again."""
    if is_first("hang"):
        pause(2)
    return len(item)


def refunded(order: str, cents: int) -> str | None:
    """Ask the ledger whether a refund that a crash cut off was made."""
    made = LEDGER.read_text().splitlines() if LEDGER.exists() else []
    return "refunded" if f"{order} {cents}" in made else None


@holdfast.effect(probe=refunded, key="order")
def refund(order: str, cents: int) -> str:
    """Give money back; the process is killed right after it, before it can say so."""
    with LEDGER.open("a") as file:
        file.write(f"{order} {cents}\n")
    if is_first("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    return "refunded"


@holdfast.effect(idempotent=True, key="customer")
def answer(customer: str, text: str, *, idempotency_key: str = "") -> None:
    """Send the answer; the mail server knows each key once."""
    sent = MAIL.read_text() if MAIL.exists() else ""
    if idempotency_key not in sent:
        MAIL.write_text(f"{sent}{idempotency_key} {customer}: {text}\n")


def room_comes_back(error: object) -> str | None:
    """Here a full disk passes by itself: a job clears it every few seconds."""
    return "transient" if isinstance(error, holdfast.StoreUnwritable) else None


@holdfast.agent(
    checkpoint=holdfast.every(turns=1),
    classify=room_comes_back,
    sla=holdfast.SLA(
        availability=0.999,
        max_recovery="30s",
        clock="resume",
        deadline="3m",
        turn_usd=0.02,
        task_usd=4,
        recovery_budget=1,
        breach_usd_per_hour=120,
        person="15m",
    ),
)
def support(run: holdfast.Run, customer: str) -> str:
    """Work through the ticket, give the money back, answer."""
    run.state["notes"] = []
    for turn in run.turns():
        run.state["notes"].append(model(turn))
        if QUESTIONS[turn] == "check stock":
            run.state["notes"].append(f"stock: {stock('kelp')}")
        if QUESTIONS[turn] == "judge":
            refund("order-7", 1250)
        if turn == len(QUESTIONS) - 1:
            break
    answer(customer, "your money is on its way")
    return f"{len(run.state['notes'])} notes, 1 refund, 1 answer"


# What stands in for the world in a drill; the pauses are those of the real thing.
def a_model(turn: int) -> str:
    """A model that thinks for three seconds and words its answer by chance."""
    fake.pause(3.0)
    return f"{QUESTIONS[turn]}: {fake.chance().choice(['done', 'settled', 'seen to'])}"


def a_stock(item: str) -> int:
    """A tool that answers in a fifth of a second."""
    fake.pause(0.2)
    return len(item)


def a_refund(order: str, cents: int) -> str:
    """A bank; the drill keeps its books, and answers its probe from them."""
    fake.pause(0.5)
    return f"refunded {cents} for {order}"


def an_answer(*_asked: str, **_key: str) -> None:
    """A mail server."""
    fake.pause(0.2)


if __name__ == "__main__":
    with holdfast.open() as opened:
        print(opened.supervise(support, "Ada", id="ticket-7"))
