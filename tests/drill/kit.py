"""A module whose agents are drilled, sound ones and some with planted mistakes."""

CLINIC = '''
import asyncio
import os
import signal

import holdfast
from holdfast.drill import fake
from holdfast.drill.faults import Traits, Trouble, Where


@holdfast.step
def think(n: int) -> int:
    return 10 * n


def never_found(order: str) -> str | None:
    return None


@holdfast.effect(probe=never_found, key="order")
def pay(order: str) -> str:
    return f"paid {order}"


@holdfast.effect(idempotent=True, key="order")
def mail(order: str, *, idempotency_key: str = "") -> None:
    pass


def room_comes_back(error):
    return "transient" if isinstance(error, holdfast.StoreUnwritable) else None


@holdfast.agent(checkpoint=holdfast.every(turns=1), classify=room_comes_back)
def sound(run: holdfast.Run, order: str = "o-1") -> int:
    run.state["seen"] = []
    for turn in run.turns():
        run.state["seen"].append(think(turn))
        if turn == 3:
            pay(order)
        if turn == 4:
            break
    mail(order)
    return len(run.state["seen"])


@holdfast.agent
def leaky(run: holdfast.Run) -> int:
    total = 0  # Kept in a local, so a restart forgets it.
    for turn in run.turns():
        total += think(turn)
        run.state["total"] = total
        if turn == 4:
            break
    return total


@holdfast.agent
def sleepy(run: holdfast.Run) -> int:
    for turn in run.turns():
        rest(turn)
        if turn == 9:
            break
    return turn


@holdfast.agent
def napping(run: holdfast.Run) -> int:
    return rest(1)


@holdfast.step
def rest(n: int) -> int:
    fake.pause(0.5)
    return n


def say(text: str, prefix: list[str]):
    yield from text.split()[len(prefix) :]


@holdfast.agent
def talker(run: holdfast.Run) -> str:
    for turn in run.turns():
        words = list(run.stream(say, "kelp holds fast to the rock", every=2))
        run.state["said"] = words
        break
    return " ".join(words)


async def asay(text: str, prefix: list[str]):
    raise ConnectionError("the model is asked for real")
    yield


@holdfast.agent
async def atalker(run: holdfast.Run) -> str:
    async for turn in run.turns():
        run.state["said"] = [word async for word in run.stream(asay, "kelp holds", every=1)]
        return " ".join(run.state["said"])


@holdfast.agent
def kid(run: holdfast.Run, n: int) -> int:
    run.state["sum"] = 0
    for turn in run.turns():
        run.state["sum"] += think(n + turn)
        if turn == 1:
            break
    return run.state["sum"]


@holdfast.agent
def mother(run: holdfast.Run) -> int:
    run.state["sums"] = []
    for turn in run.turns():
        run.state["sums"].append(think(turn) + run.child(kid, turn))
        if turn == 2:
            break
    return sum(run.state["sums"])


@holdfast.step
async def wait_for_it(n: int) -> int:
    await asyncio.sleep(0.2)
    return n


@holdfast.agent
async def twofold(run: holdfast.Run) -> int:
    return sum(await asyncio.gather(wait_for_it(1), wait_for_it(2)))


@holdfast.agent
def broken(run: holdfast.Run) -> int:
    raise ValueError("out of kelp")


def fake_pay(order: str) -> str:
    return f"paid {order}"


def fake_mail(*_asked: str, **_key: str) -> None:
    pass


class Needy(Trouble):
    def __init__(self, more):
        pass


class Nameless(Trouble):
    traits = "nameless"


class Clumsy(Trouble):
    traits = Traits(name="clumsy", about="killed, then the fault itself fails")

    def strike(self, scene):
        scene.note("clumsy")
        os.kill(os.getpid(), signal.SIGKILL)

    def between(self, damage, chance):
        raise RuntimeError("dropped the disk")


class AfterPay(Trouble):
    """Killed when the effect is done and nobody has recorded it."""

    traits = Traits(name="after-pay", about="killed after an effect", where=Where.EFFECT)

    def strike(self, scene):
        scene.note("after-pay")

    def reached(self, scene, name):
        if name == "effect.called":
            os.kill(os.getpid(), signal.SIGKILL)
'''

STUBS = ("--stub", "pay=clinic:fake_pay", "--stub", "mail=clinic:fake_mail")
SCENARIO = """
cases = 2
stall = "1s"
input = { order = "o-{case}" }

[stubs]
pay = "clinic:fake_pay"
mail = "clinic:fake_mail"
"""
