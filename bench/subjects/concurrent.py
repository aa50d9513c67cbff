"""What many runs at once cost: syncs per answer and turns per second."""

from statistics import median

from bench import child, trace
from bench.figures import Result, Table, Target, ratio, show, times
from bench.job import Job
from bench.session import Session, rotated
from bench.systems.catalog import OURS_ASYNC, OURS_THREADS, TOGETHER

SYNCS_MAX = 0.3


def measure(session: Session) -> Result:
    """All systems in every block, timed; then each once more, traced."""
    scale = session.scale
    systems = session.installed(TOGETHER)
    answers = scale.concurrent_runs * scale.concurrent_turns
    rates: dict[str, list[float]] = {system.name: [] for system in systems}
    syncs: dict[str, float] = {}
    for block in range(scale.concurrent_blocks):
        for system in rotated(systems, block):
            measured = child.measure_fresh(system.module, _job(session, system.what))
            rates[system.name].append(answers / (measured.number("wall_ns") / 1e9))
        said = ", ".join(f"{name} {show(rate[-1], '.0f')}" for name, rate in rates.items())
        session.say(f"block {block + 1} of {scale.concurrent_blocks}, turns/s: {said}")
    for system in systems if trace.is_available() else ():
        session.say(f"counting the syncs of {system.name}")
        traced = child.measure_fresh(system.module, _job(session, system.what), traced=True)
        assert traced.syncs is not None
        syncs[system.name] = traced.syncs.total / answers
    return _result(session, rates, syncs)


def _job(session: Session, what: str) -> Job:
    scale = session.scale
    return session.job(what, turns=scale.concurrent_turns, runs=scale.concurrent_runs)


def _result(session: Session, rates: dict[str, list[float]], syncs: dict[str, float]) -> Result:
    scale = session.scale
    ours = rates[OURS_ASYNC]
    return Result(
        subject="concurrent",
        title=f"{scale.concurrent_runs} runs at once, {scale.concurrent_turns} turns each",
        table=Table(
            columns=("system", "turns/s", "turns/s / holdfast", "syncs per answer"),
            rows=[
                [
                    name,
                    show(median(rate), ",.0f"),
                    times(ratio(rate, ours)),
                    show(syncs.get(name), ".3f"),
                ]
                for name, rate in rates.items()
            ],
        ),
        targets=[
            Target(
                promise=f"syncs per answer, {name}",
                measured=syncs.get(name),
                limit=SYNCS_MAX,
            )
            for name in (OURS_ASYNC, OURS_THREADS)
        ],
        numbers={
            name: {"turns_per_s_of_blocks": rate, "syncs_per_answer": syncs.get(name)}
            for name, rate in rates.items()
        },
        note=f"Medians of {scale.concurrent_blocks} blocks. Syncs are those of the whole process, "
        "set-up and close included.",
    )
