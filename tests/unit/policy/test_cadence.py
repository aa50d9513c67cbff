"""Whether a checkpoint is due."""

import pytest

from holdfast.model.cadence import Cadence, adaptive, every, never
from holdfast.policy.cadence import Progress, due, is_timed, is_within_turns

SINCE = Progress(steps=10, tokens=500, now=100.0)


@pytest.mark.parametrize(
    ("cadence", "at", "turn", "why"),
    [
        (never(), Progress(steps=99, tokens=9999, now=9999.0), 7, None),
        (every(turns=4), SINCE, 7, "turns"),
        (every(turns=4), SINCE, 6, None),
        (every(turns=4), SINCE, None, None),
        (every(steps=3), Progress(steps=12, now=100.0), None, None),
        (every(steps=3), Progress(steps=13, now=100.0), None, "steps"),
        (every(tokens=100), Progress(tokens=599), None, None),
        (every(tokens=100), Progress(tokens=600), 0, "tokens"),
        (every(seconds=30), Progress(now=129.9), 0, None),
        (every(seconds=30), Progress(now=130.0), None, "seconds"),
        (every(turns=9, steps=1), Progress(steps=11), None, "steps"),
    ],
)
def test_work_is_counted_since_the_last_checkpoint(
    cadence: Cadence, at: Progress, turn: int | None, why: str | None
) -> None:
    assert why == due(cadence, SINCE, at, turn=turn)


class Hourly:
    """Lets an hour pass, whatever happens."""

    def due(self, now: float) -> bool:
        return now >= 3600.0

    def affords(self, now: float) -> bool:
        return now < 7200.0

    def saved(self, cost_s: float, now: float) -> None:
        """Does not count."""

    def spent(self, cost_s: float) -> None:
        """Does not count either."""

    def interval(self) -> float:
        return 3600.0


@pytest.mark.parametrize(("now", "why"), [(3599.0, None), (3600.0, "adaptive")])
def test_an_adaptive_cadence_asks_its_controller(now: float, why: str | None) -> None:
    assert why == due(adaptive(), Progress(), Progress(now=now), controller=Hourly())
    assert due(every(turns=2), Progress(), Progress(now=now), controller=Hourly()) is None


@pytest.mark.parametrize(("now", "why"), [(3599.0, None), (3600.0, "adaptive"), (7200.0, None)])
def test_in_the_middle_of_work_an_adaptive_cadence_waits_out_its_interval_and_keeps_its_cap(
    now: float, why: str | None
) -> None:
    at = Progress(now=now)

    assert why == due(adaptive(), Progress(), at, controller=Hourly(), is_between=False)


@pytest.mark.parametrize(
    ("cadence", "timed", "within"),
    [
        (never(), False, False),
        (every(turns=1), False, False),
        (every(steps=1), False, True),
        (every(tokens=1), False, True),
        (every(seconds=1), True, True),
        (Cadence(is_adaptive=True), True, True),
    ],
)
def test_what_may_come_due_in_a_turn(cadence: Cadence, timed: bool, within: bool) -> None:
    assert (timed, within) == (is_timed(cadence), is_within_turns(cadence))
