"""Whether a turn of an old run costs what one of a young run does."""

from collections.abc import Sequence
from statistics import median

from bench import child
from bench.figures import Result, Table, Target, middle, percentile, show, times
from bench.session import Session
from bench.systems.beside import BLOCK, GROWN

NS_PER_MS = 1e6
RATIO_MAX = 1.2
YOUNG = slice(100, 200)
WINDOW = 100
CHAT, LARGE, FLOOR = "conversation", "10 MB, 1 % changes", "bare INSERT beside the conversation"


def measure(session: Session) -> Result:
    """Long runs; the p50 of an early window of turns against that of the last."""
    scale = session.scale
    windows: dict[str, list[tuple[float, float]]] = {CHAT: [], FLOOR: [], LARGE: []}
    for block in range(scale.flat_blocks):
        job = session.long_job("beside one", turns=scale.flat_turns)
        measured = child.measure_fresh("bench.systems.chat_ours", job)
        # The first turn after bare commits is not timed, so a block has one fewer.
        windows[CHAT].append(_windows(measured.series("ours"), (BLOCK - 1) / BLOCK))
        windows[FLOOR].append(_windows(measured.series(GROWN), 1))
        session.say(f"run {block + 1} of {scale.flat_blocks}: {scale.flat_turns:,} turns")
        job = session.long_job("large", turns=scale.large_turns)
        measured = child.measure_fresh("bench.systems.state_ours", job)
        windows[LARGE].append(_windows(measured.series("ours"), 1))
        session.say(f"10 MB of state: {scale.large_turns:,} turns")
    return _result(session, windows)


def _windows(turn_ns: Sequence[int], part: float) -> tuple[float, float]:
    """The p50 of turns 100 to 200 and of the last 100; only `part` of the turns were timed."""
    young = turn_ns[int(YOUNG.start * part) : int(YOUNG.stop * part)]
    old = turn_ns[-int(WINDOW * part) :]
    return percentile(young, 0.5) / NS_PER_MS, percentile(old, 0.5) / NS_PER_MS


def _result(session: Session, windows: dict[str, list[tuple[float, float]]]) -> Result:
    scale = session.scale
    turns = {CHAT: scale.flat_turns, FLOOR: scale.flat_turns, LARGE: scale.large_turns}
    growth = {
        name: middle([old / young for young, old in pairs]) for name, pairs in windows.items()
    }
    return Result(
        subject="flat",
        title="Turns of an old run against those of a young one",
        table=Table(
            columns=("state", "turns", "p50 ms, turns 100-200", "p50 ms, last 100", "last / first"),
            rows=[
                [
                    name,
                    f"{turns[name]:,}",
                    show(median(young for young, _ in pairs), ".3f"),
                    show(median(old for _, old in pairs), ".3f"),
                    times(growth[name]),
                ]
                for name, pairs in windows.items()
            ],
        ),
        targets=[
            Target(
                promise=f"p50 of the last 100 of {turns[name]:,} turns against 100-200, {name}",
                measured=growth[name],
                limit=RATIO_MAX,
                unit="x",
            )
            for name in (CHAT, LARGE)
        ],
        numbers={name: {"p50_ms_young_and_old": pairs} for name, pairs in windows.items()},
        note=f"Medians of {scale.flat_blocks} runs of each. "
        "How the bare INSERT fared says how far the disk itself changed meanwhile.",
    )
