"""Conversations of one process, all at once: turns per second beside LangGraph's SQLite saver."""

from statistics import median

from bench import child
from bench.figures import Result, Table, Target, middle, show, times
from bench.session import Session, rotated
from bench.systems.catalog import LANGGRAPH_CROWDS, OURS_CROWDS

TIMES_MIN = 5


def measure(session: Session) -> Result:
    """All systems in every block."""
    scale = session.scale
    systems = session.installed((*OURS_CROWDS, *LANGGRAPH_CROWDS))
    turns = scale.crowd_runs * scale.crowd_turns
    rates: dict[str, list[float]] = {system.name: [] for system in systems}
    for block in range(scale.crowd_blocks):
        for system in rotated(systems, block):
            job = session.long_job(system.what, turns=scale.crowd_turns, runs=scale.crowd_runs)
            measured = child.measure_fresh(system.module, job)
            rates[system.name].append(turns / (measured.number("wall_ns") / 1e9))
        said = ", ".join(f"{name} {rate[-1]:,.0f}" for name, rate in rates.items())
        session.say(f"block {block + 1} of {scale.crowd_blocks}, turns/s: {said}")
    ours = _best([rates[system.name] for system in OURS_CROWDS])
    theirs = _best([rates[system.name] for system in LANGGRAPH_CROWDS if system.name in rates])
    return Result(
        subject="crowd",
        title=f"{scale.crowd_runs} conversations at once, {scale.crowd_turns} turns each",
        table=Table(
            columns=("system", "turns/s", "holdfast's best / it"),
            rows=[
                [
                    name,
                    show(median(rate), ",.0f"),
                    times(middle([a / b for a, b in zip(ours, rate, strict=True)])),
                ]
                for name, rate in rates.items()
            ],
        ),
        targets=[
            Target(
                promise=f"turns/s of {scale.crowd_runs} runs at once against LangGraph's best",
                measured=middle([a / b for a, b in zip(ours, theirs, strict=False)]),
                limit=TIMES_MIN,
                unit="x",
                at_least=True,
            )
        ],
        numbers={name: {"turns_per_s_of_blocks": rate} for name, rate in rates.items()},
        note=f"Medians of {scale.crowd_blocks} blocks. The better of Holdfast's two ways is set "
        "against the better of LangGraph's two, block by block.",
    )


def _best(rates: list[list[float]]) -> list[float]:
    """The highest rate of each block."""
    return [max(block) for block in zip(*rates, strict=True)]
