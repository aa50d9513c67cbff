"""What stand-ins for models and tools need: pauses that are scaled, and chance that repeats.

from holdfast.drill import fake

def model(turn: int) -> str:
    fake.pause(9.0)
    return fake.chance().choice(["greet", "ask", "close"])
"""

import hashlib
import random
import threading

from holdfast.engine import context

_set: dict[str, float | str] = {"scale": 1.0, "seed": ""}


def begin(scale: float, seed: str) -> None:
    """Say by what pauses are multiplied, and what chance is drawn from."""
    _set.update(scale=scale, seed=seed)


def pause(seconds: float) -> None:
    """Let time pass: as long as the real thing would take, times the scale of the drill."""
    threading.Event().wait(seconds * float(_set["scale"]))


def chance() -> random.Random:
    """Chance that is the same each time the same call is made in the same case of a drill."""
    here = context.frame.get()
    place = b"" if here is None else here.call
    seed = hashlib.sha256(str(_set["seed"]).encode() + place).digest()
    return random.Random(seed)  # noqa: S311 it is to repeat
