"""The same task of 100 ms steps with and without Holdfast, by turns: what saving adds."""

from pathlib import Path
from time import perf_counter_ns, sleep

import holdfast
from bench.job import Job, Seen

JOB = Job.from_argument()
STEP_S = 0.1


def think(number: int) -> dict[str, int]:
    """A model that takes its time."""
    sleep(STEP_S)
    return {"number": number}


recorded = holdfast.step(think)


@holdfast.agent
def saved(run: holdfast.Run, steps: int) -> int:
    """The default policy: every answer is recorded, every turn's end is a recovery point."""
    run.state.setdefault("answers", [])
    for turn in run.turns():
        run.state["answers"].append(recorded(turn))
        if turn == steps - 1:
            break
    return len(run.state["answers"])


def bare(steps: int) -> int:
    """The same without a store."""
    answers = [think(turn) for turn in range(steps)]
    return len(answers)


def pairs(seen: Seen) -> None:
    """A task each way, again and again; which comes first alternates."""
    took: dict[str, list[int]] = {"saved": [], "bare": []}
    with holdfast.open(Path(JOB.directory) / "store") as store:
        store.run(saved, 1, id="warm")
        for number in range(JOB.runs):
            for way in ("saved", "bare") if number % 2 else ("bare", "saved"):
                begin = perf_counter_ns()
                if way == "saved":
                    store.run(saved, JOB.turns, id=f"task-{number}")
                else:
                    bare(JOB.turns)
                took[way].append(perf_counter_ns() - begin)
    seen |= took


if __name__ == "__main__":
    found: Seen = {}
    pairs(found)
    JOB.report(found)
