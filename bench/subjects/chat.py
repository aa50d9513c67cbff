"""The conversation end to end beside the peers, short and long."""

from statistics import median

from bench import child
from bench.figures import Result, Table, Target, middle, percentile, ratio, show, times
from bench.session import Session, rotated
from bench.systems.catalog import (
    CHAT,
    DBOS,
    LANGGRAPH,
    LANGGRAPH_DEFAULT,
    LANGGRAPH_DELTA,
    LONG_CHAT,
    OURS,
    System,
)

NS_PER_MS = 1e6
SHORT_MIN = {LANGGRAPH: 4, LANGGRAPH_DELTA: 3, DBOS: 5}
"""How many times faster than each peer at 200 turns."""
LONG_MIN = {LANGGRAPH_DEFAULT: 40}
"""And at 2,000 turns."""

Blocks = dict[str, list[child.Measured]]


def measure(session: Session) -> Result:
    """Every system in turn, block after block."""
    scale = session.scale
    short = _blocks(session, CHAT, scale.chat_turns, scale.chat_blocks)
    long = _blocks(session, LONG_CHAT, scale.long_chat_turns, scale.long_chat_blocks)
    lengths = ((scale.chat_turns, short, SHORT_MIN), (scale.long_chat_turns, long, LONG_MIN))
    return Result(
        subject="chat",
        title="The conversation end to end",
        table=Table(
            columns=("system", "turns", "ms a turn", "p50 ms", "time / holdfast", "kB on disk"),
            rows=[
                _row(name, turns, seen, blocks[OURS])
                for turns, blocks, _ in lengths
                for name, seen in blocks.items()
            ],
        ),
        targets=[
            Target(
                promise=f"times faster than {peer}, {turns:,} turns end to end",
                measured=ratio(_wall_ms(blocks[peer]), _wall_ms(blocks[OURS]))
                if peer in blocks
                else None,
                limit=limit,
                unit="x",
                at_least=True,
            )
            for turns, blocks, limits in lengths
            for peer, limit in limits.items()
        ],
        numbers={
            str(turns): {name: {"wall_ms": _wall_ms(seen)} for name, seen in blocks.items()}
            for turns, blocks, _ in lengths
        },
        note=f"Medians of {scale.chat_blocks} blocks of short conversations, in each of which "
        "every system runs once in a process and directory of its own; of long ones, "
        f"{scale.long_chat_blocks}. "
        "Timed from the start of the run to its recorded result. LangGraph with its documented "
        'reducers and durability="sync", or as it comes; DBOS as it comes on SQLite. The p50 of '
        "LangGraph as it comes is that of turns which it stores later.",
    )


def _blocks(session: Session, systems: tuple[System, ...], turns: int, blocks: int) -> Blocks:
    systems_here = session.installed(systems)
    seen: Blocks = {system.name: [] for system in systems_here}
    for block in range(blocks):
        for system in rotated(systems_here, block):
            job = session.long_job(system.what, turns=turns)
            seen[system.name].append(child.measure_fresh(system.module, job))
        said = ", ".join(f"{name} {_wall_ms(each)[-1]:,.0f}" for name, each in seen.items())
        session.say(f"block {block + 1} of {blocks}, ms for {turns:,} turns: {said}")
    return seen


def _wall_ms(seen: list[child.Measured]) -> list[float]:
    return [measured.number("wall_ns") / NS_PER_MS for measured in seen]


def _row(
    name: str, turns: int, seen: list[child.Measured], ours: list[child.Measured]
) -> list[str]:
    p50 = [percentile(measured.series("turn_ns"), 0.5) / NS_PER_MS for measured in seen]
    return [
        name,
        f"{turns:,}",
        show(median(_wall_ms(seen)) / turns, ".3f"),
        show(middle(p50), ".3f"),
        times(ratio(_wall_ms(seen), _wall_ms(ours))),
        show(median(measured.bytes_left for measured in seen) / 1000, ",.0f"),
    ]
