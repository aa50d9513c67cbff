"""Saving at learnt intervals wastes little more than saving at the best one known beforehand."""

import math
from random import Random

import pytest

from holdfast.model.cadence import adaptive
from holdfast.model.limits import SLA
from holdfast.policy.adaptive import (
    MEMORY,
    Controller,
    Learnt,
    Limits,
    Value,
    limits_of,
    value_of,
)
from holdfast.policy.advise.intervals import exact
from holdfast.policy.cadence import Progress, due

HOURS = 30
SAVE_S = 0.5


class Fixed:
    """Saves whenever so much work is done."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s, self.last = interval_s, 0.0

    def due(self, now: float) -> bool:
        return now - self.last >= self.interval_s

    def saved(self, cost_s: float) -> None:
        self.last += self.interval_s + cost_s

    def failed(self) -> None:
        """Nothing is learnt."""


class Played:
    """What came of playing a run: shares of its time."""

    def __init__(self) -> None:
        self.time = self.kept = self.blocked = 0.0
        self.intervals: list[float] = []
        self.worst = 0.0


def play(
    how: Controller | Fixed, mtbf_s: float, seed: int, *, jitter: float = 0.0, hours: float = HOURS
) -> Played:
    """Work unit by unit; a failure takes what was done since the last save."""
    unit_s = max(1.0, math.sqrt(mtbf_s) / 15)
    random = Random(seed)  # noqa: S311 a seed
    played, since, worked = Played(), 0.0, 0.0
    fails_at = random.expovariate(1 / mtbf_s)
    while played.time < hours * 3600:
        played.time += unit_s
        since += unit_s
        worked += unit_s
        if played.time >= fails_at:
            fails_at = played.time + random.expovariate(1 / mtbf_s)
            since = 0.0
            how.failed()
            if isinstance(how, Fixed):
                how.last = played.time
        if how.due(played.time):
            cost = SAVE_S * random.uniform(1 - jitter, 1 + jitter)
            played.time += cost
            played.blocked += cost
            played.kept += since
            since = 0.0
            if isinstance(how, Fixed):
                how.last = played.time
            else:
                how.saved(cost)
                played.intervals.append(how.interval())
            played.worst = max(played.worst, played.blocked / worked)
    played.kept += since
    return played


def waste(played: Played) -> float:
    return 1 - played.kept / played.time


@pytest.mark.parametrize("mtbf_s", [300, 3600, 36_000])
def test_the_learnt_interval_wastes_at_most_a_point_more_than_the_best_one(mtbf_s: float) -> None:
    seeds = range(2)
    learnt = [play(Controller(0.0), mtbf_s, seed) for seed in seeds]
    oracle = [play(Fixed(exact(SAVE_S, mtbf_s)), mtbf_s, seed) for seed in seeds]

    extra = [waste(one) - waste(other) for one, other in zip(learnt, oracle, strict=True)]

    assert 0.01 > max(extra)
    assert 0.15 > max(played.worst for played in learnt)
    changes = [len(set(map(round, played.intervals))) - 1 for played in learnt]
    assert 12 >= max(changes)


@pytest.mark.parametrize(("before_s", "after_s"), [(300, 3000), (3600, 360)])
def test_a_world_that_gets_better_or_worse_is_followed(before_s: float, after_s: float) -> None:
    """Each failure makes those before it count less: after 60 the rate is that of the newest."""
    learnt, now = Controller(0.0), 0.0
    for mtbf_s in [before_s] * 60 + [after_s] * 60:
        now += mtbf_s
        learnt.due(now)
        learnt.failed()

    assert after_s == pytest.approx(1 / learnt.rate(), rel=0.6)
    assert MEMORY == learnt.learnt().failures


def test_a_save_in_the_middle_of_a_unit_begins_the_next_interval() -> None:
    controller = Controller(0.0, learnt=Learnt(worked_s=1e6, save_s=1e-3))
    interval = controller.interval()

    controller.due(0.1 * interval)
    controller.saved(1e-3, now=0.9 * interval)

    assert not controller.due(interval, next_s=0.1 * interval)
    assert controller.due(1.9 * interval, next_s=0.1 * interval)


def test_what_other_saves_cost_counts_for_the_cap() -> None:
    alone, shared = (Controller(0.0, learnt=Learnt(save_s=1.0)) for _ in range(2))
    shared.spent(14.0)

    assert alone.affords(10.0)
    assert not shared.affords(100.0)
    assert shared.affords(120.0)


def test_a_fixed_second_wastes_a_third_where_the_learnt_interval_does_not() -> None:
    assert 0.3 < waste(play(Fixed(1.0), 200, 1, hours=5))
    assert 0.1 > waste(play(Controller(0.0), 200, 1, hours=5))


@pytest.mark.parametrize("overhead", [0.001, 0.01, 0.05])
def test_saving_never_takes_more_than_its_cap_even_when_failures_abound(overhead: float) -> None:
    played = play(Controller(0.0, limits=Limits(overhead=overhead)), 60, 3, jitter=0.9, hours=5)

    # The cap is kept at what a save is expected to cost; one may turn out dearer.
    assert played.intervals
    assert played.blocked <= overhead * played.time + 2 * SAVE_S


def test_the_interval_follows_the_promise_and_the_cap() -> None:
    known = Learnt(failures=0, worked_s=36_000, save_s=0.5, restore_s=2.0)

    free = Controller(0.0, learnt=known)
    bound = Controller(0.0, learnt=known, limits=Limits(max_recovery_s=30, detect_s=3))
    torn = Controller(0.0, learnt=known, limits=Limits(max_recovery_s=6, detect_s=3))

    assert math.sqrt(2 * 0.5 * 39_600) == pytest.approx(free.interval())
    assert 25 == bound.interval()
    assert not torn.clamp().is_possible
    assert 0.5 / 0.15 == pytest.approx(torn.interval())


def test_a_small_change_of_the_optimum_changes_nothing() -> None:
    steady = Controller(0.0, learnt=Learnt(worked_s=1e6, save_s=1.0))
    first = steady.interval()

    for _ in range(5):
        steady.saved(1.3)
    same = steady.interval()
    for _ in range(40):
        steady.saved(4.0)

    assert first == same
    assert 2 * first == pytest.approx(steady.interval(), rel=0.1)


def test_it_looks_ahead_to_the_end_of_the_next_unit() -> None:
    known = Learnt(worked_s=1e6, save_s=1e-3)
    early, late = (Controller(0.0, learnt=known) for _ in range(2))
    interval = early.interval()

    assert early.due(0.6 * interval, next_s=interval)
    assert not late.due(0.6 * interval, next_s=0.1 * interval)


def test_a_unit_that_is_worth_more_than_a_save_is_saved_at_once() -> None:
    value = Value(work_usd_per_s=0.001, wait_usd_per_s=0.001)
    known = Learnt(worked_s=36_000, save_s=0.01)
    cheap, dear = (Controller(0.0, learnt=known, value=value) for _ in range(2))

    assert not cheap.due(1.0, usd=0.001, next_s=1.0)
    assert dear.due(1.0, usd=5.0, next_s=1.0)


def test_what_was_learnt_goes_on_in_the_next_life() -> None:
    first = Controller(0.0, learnt=Learnt(failures=2, worked_s=100.0))
    first.due(50.0)
    first.saved(0.25)
    first.failed()
    first.restored(1.5)

    learnt = first.learnt()

    assert Learnt(failures=3, worked_s=150.0, save_s=0.25, restore_s=1.5) == learnt
    assert first.rate() == Controller(0.0, learnt=learnt).rate()


def test_limits_and_values_come_from_the_service_level() -> None:
    sla = SLA(max_recovery="30s", overhead_cap=0.05, turn_usd=0.02, breach_usd_per_hour=36)

    assert Limits(overhead=0.05, max_recovery_s=30, detect_s=8) == limits_of(sla, 8)
    assert Limits(detect_s=8) == limits_of(None, 8)
    assert Value(work_usd_per_s=0.012, wait_usd_per_s=0.01) == value_of(sla, 10.0)
    assert Value() == value_of(sla, None) == value_of(None, 10.0)
    assert Value() == value_of(SLA(turn_usd=1), 10.0) == value_of(SLA(breach_usd_per_hour=1), 10.0)


def test_by_the_clock_too_a_save_waits_until_the_cap_pays_for_all_of_them() -> None:
    """Those that come while a step runs: the interval alone would let every second one pass."""
    controller = Controller(0.0, limits=Limits(overhead=0.02, max_recovery_s=2.0))
    blocked_s = last_s = 0.0
    for now in range(1, 2_000):
        since, at = Progress(now=last_s), Progress(now=float(now))
        if due(adaptive(), since, at, controller=controller, is_between=False):
            controller.saved(0.8)
            blocked_s, last_s = blocked_s + 0.8, float(now)
            assert blocked_s <= 0.02 * now or blocked_s == 0.8  # What the first costs is not known.

    assert blocked_s > 0.015 * 2_000
