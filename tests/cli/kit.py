"""A shop whose agents the command line runs, and the command line as a child process."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.warm import Warm

WAIT_S_MAX = 60.0

warm = Warm()
"""Where commands are carried out that a test waits for."""

SHOP = """
import asyncio
import secrets
import time
from pathlib import Path

import holdfast


def say(text: str) -> None:
    with open("asked", "a") as file:
        file.write(text + "\\n")


@holdfast.step
def chat(n: int) -> dict:
    say(f"chat {n}")
    return {"n": n, "usage": {"input_tokens": 10, "output_tokens": n}, "model": "scripted"}


@holdfast.step
def wait(seconds: float) -> float:
    say(f"wait {seconds}")
    Path("waiting").touch()
    time.sleep(seconds)
    return seconds


@holdfast.step
async def await_(seconds: float) -> float:
    say(f"await {seconds}")
    Path("waiting").touch()
    await asyncio.sleep(seconds)
    return seconds


@holdfast.effect(key="order")
def pay(order: str) -> dict:
    say(f"pay {order}")
    if Path("down").exists():
        raise ConnectionError("no line")
    return {"paid": order}


@holdfast.agent(checkpoint=holdfast.every(turns=1), version="3")
def trader(run: holdfast.Run, symbol: str, rounds: int = 2) -> str:
    run.state["seen"] = []
    for turn in run.turns():
        run.state["seen"].append(chat(turn))
        if turn == rounds:
            return f"{symbol} after {turn}"
        pay(f"{symbol}-{turn}")
    return "never"


@holdfast.agent
def payer(run: holdfast.Run, order: str) -> dict:
    for _ in run.turns():
        chat(0)
        return pay(order)
    return {}


@holdfast.agent
def echo(run: holdfast.Run, *args: object, **kwargs: object) -> list:
    return [list(args), kwargs]


@holdfast.agent
def broken(run: holdfast.Run) -> str:
    chat(1)
    if Path("fixed").exists():
        return "well"
    raise ValueError("out of kelp")


@holdfast.agent
def unkept(run: holdfast.Run) -> object:
    return object()


@holdfast.agent
def sleeper(run: holdfast.Run, seconds: float) -> float:
    for _ in run.turns():
        chat(7)
        return wait(seconds)
    return 0


@holdfast.agent
async def dreamer(run: holdfast.Run, seconds: float) -> float:
    async for _ in run.turns():
        chat(7)
        return await await_(seconds)
    return 0


@holdfast.step
def hoard(n: int) -> bytes:
    say(f"hoard {n}")
    return secrets.token_bytes(30_000)


@holdfast.agent
def hoarder(run: holdfast.Run) -> int:
    for turn in run.turns():
        hoard(turn)
        if turn == 200:
            return turn
    return 0


@holdfast.agent
def fickle(run: holdfast.Run) -> str:
    for _ in run.turns():
        chat(int(Path("version").read_text()))
        pay("once")
        wait(0)
        if not Path("fixed").exists():
            raise RuntimeError("not yet")
        return "done"
    return ""
"""


@dataclass(frozen=True)
class Done:
    """What a command printed and how it ended."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:  # noqa: ANN401 whatever the JSON says
        return json.loads(self.out)


class Shop:
    """A directory with the shop's module and, after the first run, a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / ".holdfast"

    def __call__(self, *args: str, text: str = "", **env: str) -> Done:
        ended = warm.run([*args], self.folder, self.environment(env), text, WAIT_S_MAX)
        return Done(ended.returncode, ended.stdout, ended.stderr)

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "HOME": str(self.folder / "home"), "PYTHONDONTWRITEBYTECODE": "1", **more}

    def start(
        self, *args: str, before: Callable[[], object] | None = None
    ) -> subprocess.Popen[str]:
        """A command that goes on; the caller ends it. `before` is done in the child first."""
        return subprocess.Popen(
            [sys.executable, "-m", "holdfast", *args],
            cwd=self.folder,
            env=self.environment({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,  # noqa: PLW1509 what it does is safe there
        )

    def asked(self) -> list[str]:
        """What was really asked and done, in order."""
        file = self.folder / "asked"
        return file.read_text().splitlines() if file.exists() else []

    def put(self, name: str, text: str = "") -> None:
        (self.folder / name).write_text(text)

    def copy(self, to: Path) -> "Shop":
        shutil.copytree(self.folder, to)
        return Shop(to)


def new_shop(folder: Path) -> Shop:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shop.py").write_text(SHOP)
    return Shop(folder)


def wait_for(fact: Callable[[], object]) -> None:
    """Wait until it is so."""
    until = time.monotonic() + WAIT_S_MAX
    while not fact():
        if time.monotonic() > until:
            pytest.fail("what was waited for did not come")
        time.sleep(0.02)


def on_terminal(
    shop: Shop, *args: str, typed: str = "", until: str = "", end: int = 0, **env: str
) -> Done:
    """Run a command on a terminal of its own.

    `typed` is typed there once a question is asked; when `until` appears, signal `end` is sent.
    """
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *args],
        cwd=shop.folder,
        env=shop.environment({"TERM": "xterm-256color", "COLUMNS": "200", **env}),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    seen, deadline = b"", time.monotonic() + WAIT_S_MAX
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux: the other side is closed.
                break
            if not part:
                break
            seen += part
        if typed and b"[y/N]" in seen:
            os.write(master, typed.encode())
            typed = ""
        if until and seen.count(until.encode()) > 1:
            child.send_signal(end)
            until = ""
    status = child.wait(WAIT_S_MAX)
    os.close(master)
    return Done(status, seen.decode(errors="replace"), "")
