"""What the golden stores were made with; tests continue their runs with the same agents."""

import asyncio
import contextlib
import dataclasses
import datetime as dt
import decimal
import enum
import hashlib
import uuid
from pathlib import PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pydantic

import holdfast


class Crash(BaseException):
    """The process dies here, as far as the run can tell."""


class Mood(enum.Enum):
    CALM = "calm"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Tool:
    name: str
    uses: int


class Profile(pydantic.BaseModel):
    name: str
    age: int = 7


@dataclasses.dataclass
class Account:
    """As the program had it when the store was made: version 1 of `golden.account`."""

    owner: str
    euros: int


holdfast.register(Mood, name="golden.mood")
holdfast.register(Rights, name="golden.rights")
holdfast.register(Tool, name="golden.tool")
holdfast.register(Profile, name="golden.profile")

SHARED = ["the same list"]
VALUES: dict[str, Any] = {
    "nothing": None,
    "truth": [True, False],
    "numbers": [0, -1, 2**63 - 1, -(2**63), 2**64, -(2**200), 0.1, -0.0, float("inf")],
    "text": ["", "kelp 🌿", "\ud800 alone"],
    "bytes": [b"", b"\x00\xff", bytearray(b"changes")],
    "times": [
        dt.datetime(2026, 11, 15, 22, 17, 8, 123456, tzinfo=dt.UTC),
        dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        dt.datetime(2026, 1, 1),  # noqa: DTZ001 one without a zone
        dt.date(2026, 11, 15),
        dt.time(23, 59, 59, 999999),
        dt.timedelta(days=-1, microseconds=7),
        dt.timezone(dt.timedelta(hours=5, minutes=45), "NPT"),
    ],
    "exact": [decimal.Decimal("1.10"), uuid.UUID(int=2**100 + 7), 1 + 2j, range(3, 9, 2)],
    "place": PurePosixPath("a/b"),
    "tuple": (1, (2, "three")),
    "keys": {1: "one", (2, 3): "pair", "text": "word"},
    "sets": [{1, 2}, frozenset({"a"})],
    "shared": [SHARED, SHARED],
    "classes": [Mood.CALM, Rights.READ | Rights.WRITE, Tool("saw", 3), Profile(name="Ada")],
    "arrays": [np.arange(6, dtype="<i4").reshape(2, 3), np.float32(1.5)],
}
"""One of every kind of value that the format has."""


@holdfast.step
def think(what: str) -> dict[str, Any]:
    return {"thought": f"{what}, thought through", "of": [what, {"n": len(what)}]}


@holdfast.step
def look(letter: str) -> str:
    return letter * 70_000


@holdfast.step
def stumble() -> str:
    raise ConnectionError("no answer")


@holdfast.effect(key="order")
def place(order: str) -> str:
    if order.startswith("lost"):
        raise Crash(order)
    if order.startswith("refused"):
        raise holdfast.NotDone(order)
    return f"placed {order}"


@holdfast.agent(version="1", sla=holdfast.SLA(max_recovery="30s"))
def collector(run: holdfast.Run) -> dict[str, Any]:
    """Every kind of value, in the state and as a result; readings; two loops."""
    run.state["begun"] = run.now()
    run.state["id"], run.state["drawn"] = run.uuid(), run.random.random()
    with contextlib.suppress(ConnectionError):
        stumble()
    for turn in run.turns():
        names = sorted(VALUES)[turn * 5 : turn * 5 + 5]
        if not names:
            break
        run.state.setdefault("values", {}).update({name: VALUES[name] for name in names})
    for turn in run.turns():
        run.state["later"] = think(f"second loop {turn >= 0}")
        break
    return dict(run.state["values"])


@holdfast.agent(checkpoint=holdfast.every(turns=2))
def worker(run: holdfast.Run, name: str, last: int, end: str = "") -> list[Any]:
    """Some turns with a step and an effect each, ended as `end` says."""
    run.state["seen"], run.state["large"] = [think(f"{name} before")], {}
    for turn in run.turns():
        run.state["seen"].append(think(f"{name} {turn}"))
        run.state["order"] = place(f"{end} {name} {turn}" if turn == last else f"{name} {turn}")
        if end == "large":
            run.state["large"][str(turn)] = look("kelp"[turn % 4])
        if turn == 1:
            run.checkpoint(label="asked", only=["order"])
            run.checkpoint(label="whole")
        if turn == last:
            if end == "fails":
                raise ValueError(name)
            if end == "stops":
                raise Crash(name)
            return list(run.state["seen"])
    raise AssertionError


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def banker(run: holdfast.Run) -> int:
    """Holds an object of a class that has changed since."""
    for turn in run.turns():
        run.state["account"] = Account("Ada", 5 + turn)
        if turn == 1:
            return 7
    raise AssertionError


@holdfast.agent
def asker(run: holdfast.Run) -> str:
    """Asks a person."""
    return f"they said {run.ask('Go on?', ['yes', 'no'])}"


@holdfast.step
def reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"author": "model", "text": f"The tide has turned {len(messages)} times since we began."}


@holdfast.agent
def talker(run: holdfast.Run, last: int) -> int:
    """A conversation: messages of the agent's own, and answers, one after the other."""
    messages = run.state.setdefault("messages", [])
    for turn in run.turns():
        text = f"What does the kelp do while the sea goes out for the {turn}. time?"
        messages.append({"author": "user", "text": text, "of": {"turn": turn}})
        messages.append(reply(messages))
        if turn == last:
            break
    return len(messages)


@holdfast.step
def send(turn: int) -> Tool | tuple[str, str]:
    text = f"The {turn}. letter about kelp, holdfasts and the sea that goes out and comes in; " * 2
    return Tool(text, turn) if turn % 2 else ("letter", text)


@holdfast.agent
def writer(run: holdfast.Run, last: int) -> int:
    """A correspondence in objects: answers, alone and in dicts, and one that changes."""
    letters = run.state.setdefault("letters", [])
    for turn in run.turns():
        letters.append(send(turn))
        letters.append({"by": "user", "said": ("note", f"Read the {turn}. letter. " * 8)})
        if isinstance(letters[0], tuple) and turn > 2:
            letters[2].uses += 1
        if turn == last:
            break
    return len(letters)


@holdfast.step
def tell(tale: str) -> str:
    """The whole tale, with what comes next in it: a patch on the tale before."""
    return tale + f"And then, after {len(tale)} letters, the tide came in. "


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def teller(run: holdfast.Run, last: int) -> int:
    """A long text that grows, given back whole by every step."""
    run.state.setdefault("tale", "Once upon a time there was a reef. " * 2_000)
    for turn in run.turns():
        run.state["tale"] = tell(run.state["tale"])
        if turn == last:
            break
    return len(run.state["tale"])


async def calm(turn: int) -> None:
    """What the sea does at a turn's end; where the golden stores are made, something worse."""


@holdfast.step
async def sight(name: str, turn: int) -> dict[str, Any]:
    """What is seen; in one turn a picture besides, which is longer than a slot of the tail."""
    await asyncio.sleep(0.01)
    parts = [hashlib.sha256(f"{name} {turn} {n}".encode()).digest() for n in range(150)]
    return {"seen": f"kelp, {turn} miles off", "picture": b"".join(parts) if turn == 10 else b""}


@holdfast.effect(key="name")
async def anchor(name: str) -> str:
    return f"{name} at anchor"


@holdfast.agent
async def sailor(run: holdfast.Run, name: str, last: int) -> int:
    """Steps, and one effect, which takes what was recorded before it into the database."""
    log = run.state.setdefault("log", [])
    async for turn in run.turns():
        log.append((await sight(name, turn))["seen"])
        if turn == 8:
            run.state["place"] = await anchor(name)
        await calm(turn)
        if turn == last:
            break
    return len(log)
