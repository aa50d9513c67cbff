"""Those who use one store side by side: workers whose clocks jump, a collector, a verifier.

One more has a run of its own and stops itself in the midst of a step: it sleeps until its run was
taken and ended by another, so each round has a process that is surely too late.

A worker notes `got` as soon as an answer was handed to it, which proves that it was recorded. The
world takes each idempotency key once, as a payment service does: a process that was stopped in the
midst of an effect does it when it wakes, and nobody can keep it from that.
"""

import contextlib
import json
import os
import random
import secrets
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import holdfast
from holdfast.drill.bent import BentClock
from holdfast.store.leases import BEAT_S
from holdfast.store.verify import verify
from tests.crash.outside import Outside

STORE, KEYS = "store", "keys"
RUNS = ("ann", "bob", "cem", "dan")
TURNS = 24
SLEEPER, SLEEPS_AT, ASLEEP = "eve", 0, "asleep"
"""The run whose holder falls asleep, in which turn (a redone one may say another thing), and the
file that says that it does."""
STALL_S = 0.5
TAKEN_S = STALL_S + 2 * BEAT_S
"""After so long a stopped process has lost its run to whoever asks for it."""
DAY_S = 86_400.0
LARGE_BYTES = 20_000
KEEP = holdfast.Retention(last=2)

Answer = dict[str, str]

outside = Outside(Path())
"""The world of this process; who begins a life says where it is."""


def _linger() -> None:
    time.sleep(random.uniform(0.0, 0.1))  # noqa: S311 moments, not secrets


@holdfast.step
def think(name: str, turn: int) -> Answer:
    """What a model would say: another thing each time it is asked."""
    what = f"think {name} {turn}"
    token = outside.asked(what)
    if (name, turn) == (SLEEPER, SLEEPS_AT):
        _sleep_once()
    _linger()
    return {"what": what, "token": token, "text": secrets.token_hex(LARGE_BYTES)}


def _sleep_once() -> None:
    try:
        (outside.place / ASLEEP).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGSTOP)


@holdfast.effect(idempotent=True, key="order")
def book(order: str, idempotency_key: str = "") -> Answer:
    """Done once in the world for each key, whoever comes first."""
    _linger()
    return {"what": f"book {order}", "token": _once(idempotency_key, order)}


def _once(key: str, order: str) -> str:
    token = secrets.token_hex(6)
    made = outside.place / token
    made.write_text(token, encoding="ascii")
    place = outside.place / KEYS / key
    try:
        # A link is made whole or not at all.
        os.link(made, place)
    except FileExistsError:
        return place.read_text(encoding="ascii")
    outside.done(key, order, token)
    return token


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def worker(run: holdfast.Run, name: str) -> list[Answer]:
    """Thinks and books in every turn."""
    run.state["answers"] = []
    for turn in run.turns():
        for answer in (think(name, turn), book(f"{name} {turn}")):
            outside.note("got", answer["what"], answer["token"])
            run.state["answers"].append({"what": answer["what"], "token": answer["token"]})
        if turn + 1 == TURNS:
            return list(run.state["answers"])
    raise AssertionError


def work(place: Path, seed: str, end: float) -> None:
    """Carry runs on, whichever is to be had, with a wall clock that is up to a day off."""
    chance, clock = random.Random(seed), BentClock()  # noqa: S311 a seed, not a secret
    with holdfast.open(place / STORE, stall=STALL_S, clock=clock) as store:
        while time.monotonic() < end:
            clock.off_s = chance.uniform(-DAY_S, DAY_S)
            outside.note("jump")
            name = chance.choice(RUNS)
            try:
                told = store.run(worker, name, id=name)
            except (holdfast.Fenced, holdfast.RunHeld) as error:
                outside.note(type(error).__name__, name)
                time.sleep(0.02)
            else:
                outside.note("result", name, json.dumps(told))


def oversleep(place: Path, seed: str, end: float) -> None:  # noqa: ARG001 nothing is drawn
    """Hold the sleeper's run; whoever wakes this process is told what it was told."""
    with holdfast.open(place / STORE, stall=STALL_S) as store:
        try:
            store.run(worker, SLEEPER, id=SLEEPER)
        except holdfast.Fenced as error:
            outside.note(type(error).__name__, SLEEPER)


def collect(place: Path, seed: str, end: float) -> None:  # noqa: ARG001 nothing is drawn
    """Collect garbage again and again."""
    with holdfast.open(place / STORE) as store:
        while time.monotonic() < end:
            store.gc(KEEP)
            outside.note("gc")
            time.sleep(0.05)


def look(place: Path, seed: str, end: float) -> None:  # noqa: ARG001 nothing is drawn
    """Verify every byte again and again."""
    with holdfast.open(place / STORE) as store:
        while time.monotonic() < end:
            found = verify(store._opened, deep=True).findings  # noqa: SLF001 as a verification does
            outside.note("verify", "; ".join(f"{each.where}: {each.why}" for each in found))
            time.sleep(0.05)


Life = Callable[[Path, str, float], None]


def begin(life: Life, place: Path, seed: str, end: float) -> int:
    """A process that lives this life; forked, since ten interpreters would take too long."""
    pid = os.fork()
    if pid == 0:
        outside.place = place
        try:
            life(place, seed, end)
        except BaseException as error:  # noqa: BLE001 a child ends here, whatever it was
            with contextlib.suppress(OSError):
                told = "".join(traceback.format_exception(error)).replace("\n", " | ")
                outside.note("broken", told.replace("\t", " "))
        finally:
            os._exit(0)
    return pid
