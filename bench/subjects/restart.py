"""How long a killed program needs from its start to its first new question, long run or short."""

import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns

from bench import child
from bench.figures import Result, Table, Target, ratio, show, times
from bench.session import Session
from bench.systems.catalog import OURS

RATIO_MAX = 1.5
MODULE = "bench.systems.interrupted"


def measure(session: Session) -> Result:
    """Build both stores, each by a program that dies in mid-run; then restart copies of them."""
    lengths = (session.scale.short_turns, session.scale.long_turns)
    ms: dict[int, list[float]] = {turns: [] for turns in lengths}
    with child.scratch() as place:
        for turns in lengths:
            begin = perf_counter()
            _start(session, place / str(turns), turns)
            session.say(f"built a run of {turns:,} turns in {perf_counter() - begin:.1f} s")
        sizes = {turns: child.bytes_under(place / str(turns)) for turns in lengths}
        for _ in range(session.scale.restarts):
            for turns in lengths:
                copy = place / "copy"
                shutil.copytree(place / str(turns), copy)
                ms[turns].append(_start(session, copy, turns))
                shutil.rmtree(copy)
    said = ", ".join(f"{turns:,} turns {show(median(time), '.1f')}" for turns, time in ms.items())
    session.say(f"{session.scale.restarts} restarts each, ms to the first new question: {said}")
    return _result(session, ms, sizes)


def _start(session: Session, store: Path, turns: int) -> float:
    """Milliseconds from the start of a process to the question of turn number `turns`."""
    begin = perf_counter_ns()
    ended = subprocess.run(
        [sys.executable, "-m", MODULE, str(store), str(turns), session.texts],
        cwd=child.ROOT,
        env=child.environment(),
        capture_output=True,
        check=False,
        timeout=child.WAIT_S_MAX,
    )
    if ended.returncode != 0 or not ended.stdout:
        raise child.ChildFailed(MODULE, ended.returncode, ended.stderr.decode()[-2000:])
    # Both processes read the same clock: CLOCK_MONOTONIC counts from the machine's boot.
    return (int(ended.stdout) - begin) / 1e6


def _result(session: Session, ms: dict[int, list[float]], sizes: dict[int, int]) -> Result:
    short, long = ms
    return Result(
        subject="restart",
        title="From process start to the first new question, after a crash",
        table=Table(
            columns=("turns before the crash", "ms", "against the short run", "kB in the store"),
            rows=[
                [
                    f"{turns:,}",
                    show(median(time), ".1f"),
                    times(ratio(time, ms[short])),
                    show(sizes[turns] / 1000, ",.0f"),
                ]
                for turns, time in ms.items()
            ],
        ),
        targets=[
            Target(
                promise=f"restart after {long:,} turns against {short:,}",
                measured=ratio(ms[long], ms[short]),
                limit=RATIO_MAX,
                unit="x",
            )
        ],
        numbers={OURS: {str(turns): {"ms_of_starts": time} for turns, time in ms.items()}},
        note="The state is the same size in both: the last 10 messages of 1 KB. "
        f"Medians of {session.scale.restarts} restarts of fresh copies, taken in turn.",
    )
