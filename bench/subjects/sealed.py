"""What encryption costs: a durable turn and its bytes, encrypted against open."""

from bench import child
from bench.figures import Result, Table, Target, middle, percentile, ratio, show, times
from bench.session import Session
from bench.systems.beside import BLOCK

MODULE = "bench.systems.pair_ours"
OPEN, SEALED = "open", "sealed"
NS_PER_MS = 1e6
TIME_RATIO_MAX, BYTES_RATIO_MAX = 1.25, 1.1


def measure(session: Session) -> Result:
    """Runs of the conversation in two stores at once, a block of turns in each by turns."""
    scale = session.scale
    p50: dict[str, list[float]] = {OPEN: [], SEALED: []}
    left: dict[str, list[float]] = {OPEN: [], SEALED: []}
    for block in range(scale.chat_blocks):
        job = session.long_job("pair", turns=scale.chat_turns)
        measured = child.measure_fresh(MODULE, job)
        for name, taken in p50.items():
            taken.append(percentile(measured.series(name), 0.5) / NS_PER_MS)
            left[name].append(measured.number(f"{name}_bytes"))
        said = ", ".join(f"{name} {show(taken[-1], '.3f')}" for name, taken in p50.items())
        session.say(f"run {block + 1} of {scale.chat_blocks}, p50 ms: {said}")
    return _result(session, p50, left)


def _result(session: Session, p50: dict[str, list[float]], left: dict[str, list[float]]) -> Result:
    scale = session.scale
    return Result(
        subject="sealed",
        title=f"A durable turn of the conversation ({scale.chat_turns} turns), encrypted",
        table=Table(
            columns=("store", "p50 ms", "p50 / open", "kB on disk", "kB / open"),
            rows=[
                [
                    name,
                    show(middle(p50[name]), ".3f"),
                    times(ratio(p50[name], p50[OPEN])),
                    show((middle(left[name]) or 0) / 1000, ",.0f"),
                    times(ratio(left[name], left[OPEN])),
                ]
                for name in p50
            ],
        ),
        targets=[
            Target(
                promise="p50 of a durable turn, encrypted and compressed, against open",
                measured=ratio(p50[SEALED], p50[OPEN]),
                limit=TIME_RATIO_MAX,
                unit="x",
            ),
            Target(
                promise="bytes after close, encrypted against open",
                measured=ratio(left[SEALED], left[OPEN]),
                limit=BYTES_RATIO_MAX,
                unit="x",
            ),
        ],
        numbers={name: {"p50_ms_of_runs": p50[name], "bytes_of_runs": left[name]} for name in p50},
        note=f"Medians of {scale.chat_blocks} runs. In each, one process has both stores open and "
        f"blocks of {BLOCK} turns alternate between them; ratios are taken inside a run. The bytes "
        "are those of the same turns with the same texts, after both stores were closed.",
    )
