"""Whether a full store is as quick to open and to list as an empty one."""

from dataclasses import replace
from pathlib import Path
from statistics import median

from bench import child
from bench.figures import Result, Table, Target, ratio, show, times
from bench.session import Session

OPEN_RATIO_MAX = 2
LIST_MS_MAX = 20
MODULE = "bench.systems.ours"


def measure(session: Session) -> Result:
    """Fill one store through the public interface, then look at it and at an empty one in turn."""
    scale = session.scale
    opened: dict[int, list[float]] = {0: [], scale.stored_runs: []}
    listed: dict[int, list[float]] = {0: [], scale.stored_runs: []}
    with child.scratch() as place:
        session.say(f"filling a store with {scale.stored_runs:,} runs")
        for runs in opened:
            filled = _do(session, place, "fill", runs)
        rate = scale.stored_runs / (filled.number("wall_ns") / 1e9)
        session.say(f"filled at {rate:,.0f} runs/s, {filled.bytes_left / 1e6:.1f} MB")
        for _ in range(scale.opens):
            for runs in (0, scale.stored_runs):
                seen = _do(session, place, "look", runs)
                assert seen.number("listed") == min(runs, 50), "the list holds what was stored"
                opened[runs].append(seen.number("open_ns") / 1e6)
                listed[runs].append(seen.number("list_ns") / 1e6)
    return _result(session, opened, listed, bytes_left=filled.bytes_left, rate=rate)


def _do(session: Session, place: Path, what: str, runs: int) -> child.Measured:
    job = session.job(what, runs=runs)
    own = replace(job, directory=str(place / str(runs)), result=str(place / f"{runs}.json"))
    return child.measure(MODULE, own)


def _result(
    session: Session,
    opened: dict[int, list[float]],
    listed: dict[int, list[float]],
    *,
    bytes_left: int,
    rate: float,
) -> Result:
    runs = session.scale.stored_runs
    return Result(
        subject="many",
        title="A store with many runs",
        table=Table(
            columns=("runs in the store", "open ms", "open / empty", "runs(limit=50) ms"),
            rows=[
                [
                    f"{count:,}",
                    show(median(opened[count])),
                    times(ratio(opened[count], opened[0])),
                    show(median(listed[count])),
                ]
                for count in opened
            ],
        ),
        targets=[
            Target(
                promise=f"open with {runs:,} runs against an empty store",
                measured=ratio(opened[runs], opened[0]),
                limit=OPEN_RATIO_MAX,
                unit="x",
            ),
            Target(
                promise=f"store.runs(limit=50) of {runs:,} runs",
                measured=median(listed[runs]),
                limit=LIST_MS_MAX,
                unit=" ms",
            ),
        ],
        numbers={
            str(count): {"open_ms": opened[count], "list_ms": listed[count]} for count in opened
        }
        | {"bytes_on_disk": bytes_left, "runs_per_s_when_filled": rate},
        note=f"Medians of {session.scale.opens} processes each, in turn; the first open and the "
        f"first list of each. The store was filled at {rate:,.0f} runs/s, "
        f"{bytes_left / runs:,.0f} bytes a run.",
    )
