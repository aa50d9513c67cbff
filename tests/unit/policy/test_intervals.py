"""Closed forms: published optima, and the same in money."""

import math

import pytest

from holdfast.policy.advise.intervals import (
    checkpoint_units,
    clamp,
    daly,
    exact,
    lambert,
    money,
    young,
)
from holdfast.policy.advise.worth import outages


@pytest.mark.parametrize(
    ("mtbf", "published", "first_order", "by_daly", "by_lambert"),
    [
        (1440, 117, 120.0, 116.7, 116.7),
        (360, 57, 60.0, 56.7, 56.7),
        (15, 9.1, 12.2, 9.1, 9.2),
    ],
)
def test_dalys_published_optima_in_minutes(
    mtbf: float, published: float, first_order: float, by_daly: float, by_lambert: float
) -> None:
    assert published == pytest.approx(daly(5, mtbf), abs=0.5 if published > 10 else 0.05)
    assert (first_order, by_daly, by_lambert) == (
        round(young(5, mtbf), 1),
        round(daly(5, mtbf), 1),
        round(exact(5, mtbf), 1),
    )


def test_saves_that_last_longer_than_two_failures_take_dalys_other_branch() -> None:
    assert 10 == daly(20, 10) == daly(30, 10)


@pytest.mark.parametrize("x", [-1 / math.e, -0.367, -0.2, -1e-9, 0.0, 0.5, 1.0, 20.0, 1e9])
def test_lambert_is_the_inverse_of_w_times_its_power(x: float) -> None:
    w = lambert(x)

    assert x == pytest.approx(w * math.exp(w), rel=1e-9, abs=1e-12)


def test_the_exact_interval_beats_its_neighbours() -> None:
    def waste(work: float) -> float:
        return math.expm1((work + 5) / 15) / work

    best = exact(5, 15)

    assert waste(best) < min(waste(best * 1.01), waste(best * 0.99))


def test_intervals_in_money_and_between_checkpoints() -> None:
    assert 18.97 == round(money(1e-4, 1 / 3600, 0.002), 2)
    assert 4.8 == round(money(1.5e-5, -math.log(0.91) / 180, 0.0025), 1)
    assert 43.8 == round(checkpoint_units(0.02, 1 / 7200, 0.005, 30), 1)
    assert math.inf == money(1e-4, 0, 0.002) == checkpoint_units(0.02, 0, 0.005, 30)


def test_an_interval_is_clamped_by_overhead_and_recovery_time() -> None:
    fits = clamp(0.02, overhead=0.15, max_recovery_s=30, detect_s=3, restore_s=1)
    slow = clamp(0.5, overhead=0.15, max_recovery_s=3, detect_s=1, restore_s=1)
    late = clamp(0.001, overhead=0.15, max_recovery_s=5, detect_s=5, restore_s=1)

    assert (26, True, False, False) == (
        fits.high_s,
        fits.is_possible,
        slow.is_possible,
        late.is_possible,
    )
    assert (26, 10, 0.02 / 0.15) == (fits.put(60), fits.put(10), fits.put(0.01))


def test_the_return_of_the_seeds_inputs_is_68_7_and_67_7_net() -> None:
    worth = outages(
        hours_before=72,
        hours_after=7.2,
        usd_per_hour=12_400,
        costs={"storage": 8_400, "IOPS": 2_100, "recovery": 1_200},
    )

    assert (68.7, 67.7) == (round(worth.benefit_cost_ratio, 1), round(worth.net_roi, 1))
    assert (803_520, 11_700) == pytest.approx((worth.benefit_usd, worth.cost_usd))
    assert {
        "outage hours before": 72,
        "outage hours after": 7.2,
        "USD per outage hour": 12_400,
        "storage": 8_400,
        "IOPS": 2_100,
        "recovery": 1_200,
    } == worth.inputs


def test_what_costs_nothing_returns_without_bound() -> None:
    free = outages(hours_before=2, hours_after=1, usd_per_hour=5, costs={})
    idle = outages(hours_before=1, hours_after=1, usd_per_hour=5, costs={})

    assert (math.inf, math.inf) == (free.benefit_cost_ratio, free.net_roi)
    assert (0.0, 0.0) == (idle.benefit_cost_ratio, idle.net_roi)
