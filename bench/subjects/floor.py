"""A durable turn with the whole state saved, against one bare INSERT of what the turn adds."""

from statistics import median

from bench import child
from bench.figures import Result, Table, Target, middle, percentile, ratio, show, times
from bench.session import Session
from bench.systems.beside import BLOCK, DEFAULT, FRESH, GROWN

MODULE = "bench.systems.chat_ours"
OURS = "holdfast: the turn"
NS_PER_MS = 1e6
FLOOR_RATIO_MAX = 1.5


def measure(session: Session) -> Result:
    """Runs of the conversation with blocks of bare commits between blocks of its turns."""
    scale = session.scale
    p50: dict[str, list[float]] = {OURS: [], GROWN: [], FRESH: [], DEFAULT: []}
    p99: dict[str, list[float]] = {name: [] for name in p50}
    for block in range(scale.chat_blocks):
        job = session.long_job("beside", turns=scale.chat_turns)
        measured = child.measure_fresh(MODULE, job)
        for part, of_runs in ((0.5, p50), (0.99, p99)):
            for name, ms in of_runs.items():
                taken = measured.series("ours" if name == OURS else name)
                ms.append(percentile(taken, part) / NS_PER_MS)
        said = ", ".join(f"{name} {show(taken[-1], '.3f')}" for name, taken in p50.items())
        session.say(f"run {block + 1} of {scale.chat_blocks}, p50 ms: {said}")
    return _result(session, p50, p99)


def _result(session: Session, p50: dict[str, list[float]], p99: dict[str, list[float]]) -> Result:
    scale = session.scale
    ours = p50[OURS]
    return Result(
        subject="floor",
        title=f"A durable turn of the conversation ({scale.chat_turns} turns) beside bare SQLite",
        table=Table(
            columns=("what", "p50 ms", "p99 ms", "holdfast / it, p50"),
            rows=[
                [
                    name,
                    show(median(taken), ".3f"),
                    show(median(p99[name]), ".3f"),
                    times(ratio(ours, taken)),
                ]
                for name, taken in p50.items()
            ],
        ),
        targets=[
            Target(
                promise="p50 of a turn, whole state saved, against one bare INSERT",
                measured=ratio(ours, p50[GROWN]),
                limit=FLOOR_RATIO_MAX,
                unit="x",
            )
        ],
        numbers={
            name: {"p50_ms_of_runs": taken, "p99_ms": middle(p99[name])}
            for name, taken in p50.items()
        },
        note="A conversation: 50 variables of which 2 change, two 1 KB messages a turn, one step "
        f"that takes the whole list. Medians of {scale.chat_blocks} runs; in each, blocks of "
        f"{BLOCK} turns stand between blocks of {BLOCK} INSERTs of the same bytes, of which only "
        "the INSERT is timed. Ratios are taken inside a run.",
    )
