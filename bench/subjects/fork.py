"""What a fork of a large state costs: it refers to what is there and copies nothing."""

from dataclasses import replace
from statistics import median

from bench import child
from bench.figures import Result, Table, Target, middle, show
from bench.session import Session

MODULE = "bench.systems.restore_ours"
NS_PER_MS = 1e6
MS_MAX = 20
KB_MAX = 20


def measure(session: Session) -> Result:
    """Build a run with a large state; fork it in another process."""
    scale = session.scale
    with child.scratch() as place:
        job = session.long_job("build", turns=scale.fork_mb)
        own = replace(job, directory=str(place / "data"), result=str(place / "seen.json"))
        before = child.measure(MODULE, own).bytes_left
        session.say(f"built a state of {scale.fork_mb} MB in {before / 1e6:.1f} MB")
        forked = child.measure(MODULE, replace(own, what="fork", runs=scale.forks))
    ms = [ns / NS_PER_MS for ns in forked.series("fork_ns")]
    kb = (forked.bytes_left - before) / scale.forks / 1000 if ms else None
    return Result(
        subject="fork",
        title=f"Fork of a state of {scale.fork_mb} MB",
        table=Table(
            columns=("what", "measured"),
            rows=[
                ["first fork of a process, ms", show(ms[0] if ms else None)],
                ["median fork, ms", show(median(ms) if ms else None)],
                ["kB that a fork adds to the store", show(kb)],
            ],
        ),
        targets=[
            Target(
                promise=f"fork of a state of {scale.fork_mb} MB",
                measured=middle(ms),
                limit=MS_MAX,
                unit=" ms",
            ),
            Target(
                promise=f"kB that a fork of {scale.fork_mb} MB adds",
                measured=kb,
                limit=KB_MAX,
                unit=" kB",
            ),
        ],
        numbers={"fork_ms": ms, "kb_added": kb, "bytes_before": before},
        note=f"{scale.forks} forks of one turn's end, by a process that did not write it; the "
        "state of a fork is compared with the original's. Not measured where `Store` has no "
        "`fork`.",
    )
