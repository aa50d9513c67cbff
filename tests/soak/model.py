"""P12: the store against plain dicts, step by step: `python -m tests.soak.model`.

A trial is a handful of lives of the state machine in `tests.property.test_store_model`, longer
than those of `make test`; every seventh has a real process that is killed. Where the store and the
dicts differ, the machine prints the shortest way there that it found.
"""

import contextlib
import random
from collections.abc import Iterator

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.test_store_model import Model, WithRealProcess, steps
from tests.soak.part import Outcome, Part, Trial, main

EXAMPLES, STEPS_EACH = 3, 150
KILLED_EVERY = 7


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:
    """Lives of the machine, drawn by the seed."""

    def trial(number: int) -> Outcome:
        chosen = WithRealProcess if number % KILLED_EVERY == KILLED_EVERY - 1 else Model
        drawn = random.Random(f"{seed} {number}").getrandbits(64)  # noqa: S311 not a secret
        return live(chosen, drawn)

    try:
        yield trial
    finally:
        WithRealProcess.remote.drop()


def live(machine: type[Model], drawn: int, *, is_shrunk: bool = True) -> Outcome:
    """A few lives; a difference is a finding, told by the shortest way there if `is_shrunk`."""
    outcome = Outcome()
    steps.clear()
    seeded = hypothesis.seed(drawn)(type(machine.__name__, (machine,), {}))
    try:
        run_state_machine_as_test(seeded, settings=_settings(is_shrunk=is_shrunk))
    except Exception as error:  # noqa: BLE001 whatever it is, it is a finding
        outcome.findings.append(f"{type(error).__name__}: {error} {_way(error)}")
    outcome.counts["steps"] = sum(steps.values())
    outcome.counts["steps beside a process that is killed"] = steps[WithRealProcess.kind]
    return outcome


def _way(error: Exception) -> str:
    return " | ".join(getattr(error, "__notes__", ()))


def _settings(*, is_shrunk: bool) -> settings:
    return settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS_EACH,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if is_shrunk else (Phase.generate,),
    )


PART = Part(
    id="P12",
    name="model",
    what="The store against plain dicts: several processes, restarts, kills, takeovers.",
    counted="steps",
    goal=20_000,
    trials=trials,
)

if __name__ == "__main__":
    raise SystemExit(main(PART))
