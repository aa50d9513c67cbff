"""How much longer a task of 100 ms steps takes because it is saved: paired runs, with interval."""

from collections.abc import Sequence

from bench import child
from bench.figures import Result, Table, Target, show
from bench.session import Session
from holdfast.report.bounds import bootstrap

MODULE = "bench.systems.pause_ours"
NS_PER_MS = 1e6
LIMIT = 1.0
"""Per cent."""
SAVED = "saved"
WAYS = {
    SAVED: "holdfast",
    "bounded": 'holdfast, durability="bounded"',
    "inserted": "one INSERT a step, our pragmas, WAL grown",
}

Pair = tuple[float, float]


def measure(session: Session) -> Result:
    """The same task with and without Holdfast, by turns, in one process."""
    scale = session.scale
    job = session.job("pairs", turns=scale.paired_steps, runs=scale.pairs)
    seen = child.measure_fresh(MODULE, job)
    rows, found = [], {}
    for way, what in WAYS.items():
        pairs = list(zip(seen.series(way), seen.series("bare"), strict=True))
        found[way] = low, high = bootstrap(pairs, overhead)
        step_ms = sum(took - bare for took, bare in pairs) / len(pairs) / scale.paired_steps
        interval = f"{low:.3f} to {high:.3f}"
        session.say(f"{what}: {overhead(pairs):.3f} % (95 %: {interval})")
        ms = show(step_ms / NS_PER_MS, ".3f")
        rows.append([what, str(len(pairs)), show(overhead(pairs), ".3f"), interval, ms])
    return Result(
        subject="overhead",
        title=f"A task of {scale.paired_steps} steps of 100 ms, saved by the default policy",
        table=Table(
            columns=("way", "pairs of tasks", "overhead %", "95 % interval", "ms per step"),
            rows=rows,
        ),
        targets=[
            Target(
                promise="latency added to a task of 100 ms steps, upper end of the 95 % interval",
                measured=found[SAVED][1],
                limit=LIMIT,
                unit=" %",
            )
        ],
        numbers={f"{way}_ns": seen.series(way) for way in (*WAYS, "bare")},
        note="Time of all such tasks over that of all bare ones; which comes first changes. The "
        "interval is a bootstrap over pairs. After a pause of 100 ms processor and disk are cold, "
        "for a bare INSERT too. The limit of operation is 15 %.",
    )


def overhead(pairs: Sequence[Pair]) -> float:
    """How much longer all saved tasks took than all bare ones, in per cent."""
    return 100 * (sum(saved for saved, _ in pairs) / sum(bare for _, bare in pairs) - 1)
