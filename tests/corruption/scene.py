"""A small store that holds one of everything, and what every point of it must restore to."""

import contextlib
import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Semaphore
from typing import Any
from unittest.mock import patch

import holdfast
from holdfast.engine import turns
from holdfast.store import writer
from holdfast.store.backends import packs, tail, wal

LETTERS = "kelp"


class Crash(BaseException):
    """The process dies here, as far as the run can tell."""


@holdfast.step
def think(what: str) -> dict[str, Any]:
    chance = random.Random(what)  # noqa: S311 the same thought each time
    return {"thought": chance.randbytes(40).hex(), "of": [what, {"n": len(what)}]}


@holdfast.step
def ponder(what: str) -> str:
    return random.Random(what).randbytes(4000).hex()  # noqa: S311 the same thought each time


@holdfast.step
def look(letter: str) -> str:
    return letter * 66_000


@holdfast.effect(key="order")
def place(order: str) -> str:
    if order.startswith("lost"):
        raise Crash(order)
    return f"placed {order}"


@holdfast.agent(checkpoint=holdfast.every(turns=2))
def keeper(run: holdfast.Run, name: str, last: int, end: str = "") -> list[Any]:
    """Some turns with a step and an effect each, ended as `end` says."""
    run.state["seen"], run.state["large"] = [], {}
    for turn in run.turns():
        run.state["seen"].append(think(f"{name} {turn}"))
        if turn == last and end == "lost":
            for n in range(5):  # So that the tail is longer once than what stands there at last.
                think(f"{name} {turn} {n}")
        run.state["order"] = place(f"{end} {name} {turn}" if turn == last else f"{name} {turn}")
        if end == "large":
            run.state["large"][str(turn)] = look(LETTERS[turn])
        if turn == 1:
            run.checkpoint(label="asked", only=["order"])
        if turn == last:
            if end == "fails":
                raise ValueError(name)
            return list(run.state["seen"])
    raise AssertionError


@contextlib.contextmanager
def small_parts() -> Iterator[None]:
    """Packs, bases, log and tail at a size that lets every bit of a store be tried."""
    with (
        patch.object(turns, "BASE_BYTES_MIN", 500),
        patch.object(writer, "PACK_BYTES", 2400),
        patch.object(packs, "CUT_FROM", 0),
        patch.object(writer, "PACK_BYTES_MIN", 2000),
        patch.object(wal, "WAL_PAGES", 16),
        patch.object(tail, "BYTES_MIN", 3 * 4096),
    ):
        yield


def build(path: Path) -> "Scene":
    """The store, closed (everything in the database) and as a kill leaves it.

    Then the end stands in the log, and what came after that in the tail. Both are copies: `closed`
    and `killed` below `path`.
    """
    with small_parts():
        with holdfast.open(path / "made") as store:
            store.run(keeper, "packed", 6, id="packed")
            for redo in (None, False, True, True):
                with contextlib.suppress(holdfast.RunFailed):
                    if redo is None:
                        store.run(keeper, "branched", 3, "fails", id="branched")
                    else:
                        store.restart("branched", redo_turn=redo)
            store.run(keeper, "large", 3, "large", id="large")
        shutil.copytree(path / "made", path / "closed")
        with holdfast.open(path / "made") as store:
            _die(store, "doubtful", "lost", 1)
            # From here on all stays in the log and the tail.
            with (
                patch.object(wal, "WAL_PAGES", 1 << 20),
                patch.object(writer, "PACK_BYTES", 1 << 20),
            ):
                _die(store, "young", "lost", 1)
                _think_until_death(store)
            shutil.copytree(path / "made", path / "killed")
    (path / "killed" / "store.db-shm").unlink()
    return Scene(closed=path / "closed", killed=path / "killed")


def _die(store: holdfast.Store, name: str, end: str, last: int) -> None:
    with contextlib.suppress(Crash):
        store.run(keeper, name, last, end, id=name)


def _think_until_death(store: holdfast.Store) -> None:
    """Two runs without effects, by turns: of each all rows but two stand in the tail."""
    gates = {"musing": Semaphore(1), "pensive": Semaphore(0)}

    @holdfast.agent
    def thinker(run: holdfast.Run, other: str) -> None:
        for turn in run.turns():
            run.state["thought"] = think(f"{run.id} {turn}")
            if turn == 1:
                raise Crash(run.id)
            if run.id == "pensive":
                ponder(run.id)
            gates[other].release()
            gates[run.id].acquire()

    def live(name: str, other: str) -> None:
        try:
            with gates[name], contextlib.suppress(Crash):
                store.run(thinker, other, id=name)
        finally:
            gates[other].release()

    with ThreadPoolExecutor() as pool:
        list(pool.map(live, gates, reversed(gates)))


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where the stores are; nobody changes them."""

    closed: Path
    killed: Path
