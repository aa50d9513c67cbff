"""How long an agent stands still while it is saved, by mode, granularity and size of state."""

from bench import child
from bench.figures import Result, Table, Target, percentile, show
from bench.session import Session

MODULE = "bench.systems.state_ours"
NS_PER_MS = 1e6
LIMITS_MS = {"checkpoint": (200, 500), "snapshot": (50, 150), "recovery point": (10, 50)}
"""What each mode may cost; the lower number is where it should be, the higher where it must."""


def measure(session: Session) -> Result:
    """Every way to save, turn after turn, in one process."""
    turns = session.scale.blocked_turns
    seen = child.measure_fresh(MODULE, session.long_job("blocked", turns=turns))
    ways = {name: [ns / NS_PER_MS for ns in seen.series(name)] for name in seen.seen}
    rows: list[list[str]] = []
    targets: list[Target] = []
    for name, ms in ways.items():
        mode, granularity, state = name.split(", ", 2)
        should, must = LIMITS_MS[mode]
        middle, worst = percentile(ms, 0.5), percentile(ms, 0.99)
        session.say(f"{name}: p50 {middle:.2f} ms, p99 {worst:.2f} ms")
        limits = f"{should}-{must}"
        rows.append([mode, granularity, state, show(middle), show(worst), limits])
        targets.append(
            Target(
                promise=f"blocked by a {mode} {granularity}, {state}, p50",
                measured=middle,
                limit=should,
                unit=" ms",
            )
        )
    return Result(
        subject="blocked",
        title="How long an agent stands still",
        table=Table(
            columns=("mode", "granularity", "state", "p50 ms", "p99 ms", "limits, ms"), rows=rows
        ),
        targets=targets,
        numbers={name: {"ms": ms} for name, ms in ways.items()},
        note=f"{turns} turns of each. At a turn's end: from the end of the turn's code to the "
        "next turn's, and from the model's answer until it is recorded and returned. After a "
        "step: the call of `run.checkpoint`, until what it saved is durable. The p50 is held "
        "against the lower of the two limits.",
    )
