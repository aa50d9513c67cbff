"""P3, P4, P11: runs killed at a failpoint, again while they restart, and again: `... soak.kills`.

A trial is one run with a world outside it: it dies one to four times, at failpoints drawn by the
seed, goes on to its end, and is judged by what the world saw (`tests.crash.verdict`): no recorded
answer asked again, no effect doubled, nothing lost, what is in doubt listed, the store whole.
"""

import contextlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from holdfast.testing.kill import Failpoint
from tests.crash.agents import KILLED
from tests.crash.trial import Tally
from tests.crash.ward import Ward
from tests.soak.part import Outcome, Part, Trial, main, memory

DEATHS_MAX = 4


def counted(tally: Tally) -> Outcome:
    """What a trial of the crash tests counted, as this suite counts."""
    outcome = Outcome(findings=tally.findings)
    kills = len(tally.killed_at)
    outcome.counts.update(
        {
            "runs": tally.trials,
            "kills": kills,
            "kills while restarting": max(0, kills - 1),
            "in doubt and listed": tally.doubts,
            "answers asked again": len(tally.asked_again),
            "effects doubled": len(tally.doubled),
            "answers or effects lost": len(tally.lost),
        }
    )
    return outcome


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:
    """Runs in a ward of their own."""
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        ward = Ward(Path(folder), workers=1)

        def trial(number: int) -> Outcome:
            chance = random.Random(f"{seed} {number}")  # noqa: S311 a seed, not a secret
            agent = KILLED[number % len(KILLED)]
            reached = sorted(ward.known(agent).reached.items())
            deaths = [
                Failpoint(name=name, nth=chance.randint(1, times))
                for name, times in chance.choices(reached, k=chance.randint(1, DEATHS_MAX))
            ]
            return counted(ward.try_all(agent, [deaths]))

        try:
            yield trial
        finally:
            ward.close()


PART = Part(
    id="P3, P4, P11",
    name="kills",
    what="Runs killed up to four times at failpoints, then continued and judged from outside.",
    counted="kills",
    goal=3_000,
    trials=trials,
)

if __name__ == "__main__":
    raise SystemExit(main(PART))
