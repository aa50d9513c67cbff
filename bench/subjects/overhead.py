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

Pair = tuple[float, float]


def measure(session: Session) -> Result:
    """The same task with and without Holdfast, by turns, in one process."""
    scale = session.scale
    job = session.job("pairs", turns=scale.paired_steps, runs=scale.pairs)
    seen = child.measure_fresh(MODULE, job)
    pairs = list(zip(seen.series("saved"), seen.series("bare"), strict=True))
    found = overhead(pairs)
    low, high = bootstrap(pairs, overhead)
    step_ms = sum(saved - bare for saved, bare in pairs) / len(pairs) / scale.paired_steps
    session.say(f"overhead {found:.3f} % (95 %: {low:.3f} to {high:.3f})")
    return Result(
        subject="overhead",
        title=f"A task of {scale.paired_steps} steps of 100 ms, saved by the default policy",
        table=Table(
            columns=("pairs of tasks", "overhead %", "95 % interval", "ms per step"),
            rows=[
                [
                    str(len(pairs)),
                    show(found, ".3f"),
                    f"{low:.3f} to {high:.3f}",
                    show(step_ms / NS_PER_MS, ".3f"),
                ]
            ],
        ),
        targets=[
            Target(
                promise="latency added to a task of 100 ms steps, upper end of the 95 % interval",
                measured=high,
                limit=LIMIT,
                unit=" %",
            )
        ],
        numbers={"saved_ns": seen.series("saved"), "bare_ns": seen.series("bare")},
        note="Time of all saved tasks over that of all bare ones; which of a pair comes first "
        "alternates. The interval is a bootstrap over pairs. The limit of operation is 15 %.",
    )


def overhead(pairs: Sequence[Pair]) -> float:
    """How much longer all saved tasks took than all bare ones, in per cent."""
    return 100 * (sum(saved for saved, _ in pairs) / sum(bare for _, bare in pairs) - 1)
