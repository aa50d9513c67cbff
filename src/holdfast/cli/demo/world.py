"""The world outside the store: a scripted model, a bank and a mail server, each with its own log.

The logs are append-only files that know nothing of Holdfast. What the demo claims is counted here.
"""

import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MODEL, BANK, MAIL, COST = "model.jsonl", "bank.jsonl", "mail.jsonl", "cost.jsonl"

MODEL_WAIT_MS = 15
BANK_WAIT_MS = 20
MAIL_WAIT_MS = 12


class World:
    """What the agent reaches outside itself. `pace` stretches or shortens every wait."""

    def __init__(self, folder: Path, pace: float) -> None:
        self._folder, self._pace = folder, pace
        self._inside_s = 0.0
        self._turn_began: float | None = None

    def turn(self, number: int) -> None:
        """Note a turn's begin, and what the turn before cost beside the world's own time."""
        now = time.perf_counter()
        if self._turn_began is not None:
            own_s = now - self._turn_began - self._inside_s
            _append(self._folder / COST, {"turn": number - 1, "own_ms": own_s * 1000})
        tell("turn", number)
        self._inside_s, self._turn_began = 0.0, time.perf_counter()

    def think(self, ticket: str, stage: str, messages: int) -> dict[str, Any]:
        """The model: the same question has the same answer, some milliseconds later."""
        question = f"{ticket} {stage}"
        with self._visited("asking the model", question):
            _append(self._folder / MODEL, {"question": question})
            chance = zlib.crc32(question.encode())
            self._wait(MODEL_WAIT_MS + chance % MODEL_WAIT_MS)
            tokens = {"input_tokens": 40 * (messages + 1), "output_tokens": 20 + chance % 60}
            answer = {"question": question, "model": "scripted-1", "usage": tokens}
            if stage == "decide":
                return {**answer, "cents": 0 if chance % 4 == 0 else 500 + chance % 4500}
            return {**answer, "text": f"Dear customer, about {ticket}: it is done."}

    def pay(self, ticket: str, cents: int) -> dict[str, Any]:
        """The bank: books the payment half-way through its own time, and asks no questions."""
        with self._visited("paying", ticket):
            self._wait(BANK_WAIT_MS / 2)
            payment = {"ticket": ticket, "cents": cents}
            _append(self._folder / BANK, payment)
            self._wait(BANK_WAIT_MS / 2)
            return payment

    def find_payment(self, ticket: str) -> dict[str, Any] | None:
        """What the bank's book says of a ticket."""
        with self._visited("looking up the payment of", ticket):
            return next((it for it in lines(self._folder / BANK) if it["ticket"] == ticket), None)

    def send(self, ticket: str, text: str, key: str) -> str:
        """The mail server: delivers a key once, however often it is sent."""
        with self._visited("mailing", ticket):
            self._wait(MAIL_WAIT_MS / 2)
            is_new = all(it["key"] != key for it in lines(self._folder / MAIL))
            mail = {"ticket": ticket, "key": key, "is_new": is_new, "text": text}
            _append(self._folder / MAIL, mail)
            self._wait(MAIL_WAIT_MS / 2)
            return f"mail-{key[:8]}"

    @contextmanager
    def _visited(self, what: str, about: str) -> Iterator[None]:
        began = time.perf_counter()
        tell(what, about)
        try:
            yield
        finally:
            self._inside_s += time.perf_counter() - began

    def _wait(self, milliseconds: float) -> None:
        time.sleep(milliseconds / 1000 * self._pace)


def lines(path: Path) -> list[dict[str, Any]]:
    """What a log holds; one that was never written holds nothing."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def tell(what: str, about: object) -> None:
    """Tell whoever started this process what is going on, in one line that a kill cannot tear."""
    os.write(1, (json.dumps([what, about]) + "\n").encode())


def _append(path: Path, line: dict[str, Any]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, (json.dumps(line) + "\n").encode())
    finally:
        os.close(fd)
