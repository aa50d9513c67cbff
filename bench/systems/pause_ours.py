"""The same task of 100 ms steps bare, saved in two ways, and with one INSERT a step, by turns."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from time import perf_counter_ns, sleep

import msgspec

import holdfast
from bench.job import Job, Seen
from bench.systems.beside import INSERT, grown

JOB = Job.from_argument()
STEP_S = 0.1


def think(number: int) -> dict[str, int]:
    """A model that takes its time."""
    sleep(STEP_S)
    return {"number": number}


recorded = holdfast.step(think)


@holdfast.agent
def saved(run: holdfast.Run, steps: int) -> int:
    """The default policy: every answer is recorded, every turn's end is a recovery point."""
    run.state.setdefault("answers", [])
    for turn in run.turns():
        run.state["answers"].append(recorded(turn))
        if turn == steps - 1:
            break
    return len(run.state["answers"])


def bare(steps: int) -> int:
    """The same without a store."""
    answers = [think(turn) for turn in range(steps)]
    return len(answers)


def inserted(link: sqlite3.Connection, steps: int) -> int:
    """The floor: each answer durable by one INSERT into a log that does not grow."""
    for turn in range(steps):
        link.execute(INSERT, (msgspec.msgpack.encode(think(turn)),))
    return steps


def pairs(seen: Seen) -> None:
    """A task each way, again and again; which comes first changes."""
    folder = Path(JOB.directory)
    with holdfast.open(folder / "store") as store, closing(grown(folder / "floor.db")) as link:
        store.run(saved, 1, id="warm")
        ways: dict[str, Callable[..., int]] = {
            "saved": partial(store.run, saved),
            "bounded": partial(store.run, saved, durability="bounded"),
            "inserted": partial(inserted, link),
            "bare": bare,
        }
        took: dict[str, list[int]] = {way: [] for way in ways}
        for number in range(JOB.runs):
            first = number % len(ways)
            for way in [*ways, *ways][first : first + len(ways)]:
                begin = perf_counter_ns()
                ways[way](JOB.turns)
                took[way].append(perf_counter_ns() - begin)
            link.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    seen |= took


if __name__ == "__main__":
    found: Seen = {}
    pairs(found)
    JOB.report(found)
