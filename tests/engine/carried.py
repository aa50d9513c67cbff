"""An agent with a secret in all it does, in a module that a child process imports."""

import os
import signal
from pathlib import Path
from typing import Any

import holdfast


def key() -> str:
    """The secret, as its value: what a program does that does not think of it."""
    return holdfast.secret("env:CARRIED_KEY").reveal()


class Brain:
    """An object of the user's that is attached as a section."""

    def __init__(self) -> None:
        self.key, self.log = "", list[str]()

    def capture(self) -> dict[str, Any]:
        return {"key": self.key, "log": self.log}

    def restore(self, held: dict[str, Any]) -> None:
        self.key, self.log = held["key"], held["log"]


@holdfast.step
def think(turn: int, token: str) -> dict[str, str]:
    return {"turn": str(turn), "header": f"Bearer {token}"}


def refund(outcome: dict[str, str], order: str, token: str) -> None:
    assert (outcome["with"], outcome["order"]) == (token, order)


@holdfast.effect(undo=refund, key="order")
def pay(order: str, token: str) -> dict[str, str]:
    return {"order": order, "with": token}


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def carrier(run: holdfast.Run, place: str, given: dict[str, str]) -> dict[str, Any]:
    brain = Brain()
    run.attach("brain", brain)
    for turn in run.turns():
        brain.key = key()
        brain.log.append(f"use {key()}")
        think(turn, key())
        pay(f"order-{turn}", key())
        if turn == 1 and not Path(place, "died").exists():
            Path(place, "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if turn == 2:
            answer = run.ask(f"may {key()} go?", ["yes", "no"])
            return {"given": given, "key": brain.key, "log": brain.log, "answer": answer}
    raise AssertionError
