"""P4: recovery killed at failpoints, again while it goes on, and again: `... soak.recovery`.

A trial is one act of recovery: a rollback, an undo tried again, a fork, an approval, … It dies one
to three times, at failpoints drawn by the seed, is done again, and is judged by what the world saw:
no effect and no undo done twice, and all of it can be gone on with (`tests.crash.recovering`).
"""

import contextlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.crash.recovering import LIVES, Life, Warm, begin
from tests.soak.part import Outcome, Part, Trial, main, memory

DEATHS_MAX = 3


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:
    """Acts of recovery, each made ready once."""
    with tempfile.TemporaryDirectory(dir=memory()) as top, Warm() as warm:
        begun, lives = begin(warm, Path(top) / "begun"), dict[str, Life]()

        def trial(number: int) -> Outcome:
            name = [*LIVES][number % len(LIVES)]
            if name not in lives:
                folder = Path(top) / str(number)
                folder.mkdir()
                lives[name] = Life(warm, begun, folder, name)
            chance = random.Random(f"{seed} {number}")  # noqa: S311 a seed, not a secret
            tally = lives[name].once(chance, DEATHS_MAX)
            outcome = Outcome(findings=tally.findings)
            kills = len(tally.killed_at)
            outcome.counts.update(
                {
                    "acts": tally.trials,
                    "kills": kills,
                    "kills while going on": max(0, kills - 1),
                    "effects or undos doubled": len(tally.doubled),
                    "acts not gone on with": len(tally.broken),
                }
            )
            return outcome

        yield trial


PART = Part(
    id="P4",
    name="recovery",
    what="Rollbacks, undos, forks, permissions and approvals killed up to three times each.",
    counted="kills",
    goal=1_500,
    trials=trials,
)

if __name__ == "__main__":
    raise SystemExit(main(PART))
