"""Whether several processes on one store do at least the work of one."""

import json
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench import child
from bench.figures import Result, Table, Target, ratio, show, times
from bench.job import Job
from bench.session import Session
from bench.systems.catalog import OURS

MODULE = "bench.systems.ours"
MANY = 4


def measure(session: Session) -> Result:
    """One process, then four, block after block; all begin when the last is ready."""
    blocks = session.scale.process_blocks
    rates: dict[int, list[float]] = {1: [], MANY: []}
    for block in range(blocks):
        for count, rate in rates.items():
            with child.scratch() as place:
                rate.append(_rate(session, place, count))
        said = ", ".join(f"{count}: {rate[-1]:,.0f}" for count, rate in rates.items())
        session.say(f"block {block + 1} of {blocks}, turns/s by processes: {said}")
    return _result(session, rates)


def _rate(session: Session, place: Path, count: int) -> float:
    """Turns per second of `count` processes, from the first begin to the last end."""
    turns = session.scale.process_turns
    job = replace(session.job("share", turns=turns), directory=str(place / "store"))
    jobs = [
        replace(job, result=str(place / f"{number}.json"), first_run=number)
        for number in range(count)
    ]
    with ExitStack() as stack:
        started = [stack.enter_context(_start(job)) for job in jobs]
        for process in started:
            assert process.stdout is not None
            if not process.stdout.readline():
                _, said = process.communicate()
                raise child.ChildFailed(MODULE, process.returncode, said[-2000:])
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in started:
            _, said = process.communicate(timeout=child.WAIT_S_MAX)
            if process.returncode != 0:
                raise child.ChildFailed(MODULE, process.returncode, said[-2000:])
    seen = [json.loads(Path(job.result).read_text()) for job in jobs]
    begin = min(one["begin_ns"] for one in seen)
    end = max(one["begin_ns"] + one["wall_ns"] for one in seen)
    return float(turns * count / ((end - begin) / 1e9))


def _start(job: Job) -> subprocess.Popen[str]:
    return subprocess.Popen(
        child.python(MODULE, job),
        cwd=child.ROOT,
        env=child.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _result(session: Session, rates: dict[int, list[float]]) -> Result:
    scale = session.scale
    return Result(
        subject="processes",
        title=f"Processes on one store, {scale.process_turns:,} turns each",
        table=Table(
            columns=("processes", "turns/s together", "against one"),
            rows=[
                [str(count), show(median(rate), ",.0f"), times(ratio(rate, rates[1]))]
                for count, rate in rates.items()
            ],
        ),
        targets=[
            Target(
                promise=f"turns/s of {MANY} processes on one store against one",
                measured=ratio(rates[MANY], rates[1]),
                limit=1,
                unit="x",
                at_least=True,
            )
        ],
        numbers={OURS: {str(count): {"turns_per_s": rate} for count, rate in rates.items()}},
        note=f"Medians of {scale.process_blocks} blocks, in each one process, then {MANY}.",
    )
