"""Bounds against values that are known from tables and from the other side of the equation."""

import math

import pytest

from holdfast.report.bounds import beta, bootstrap, trials_for, upper


@pytest.mark.parametrize(
    ("share", "failures", "trials"),
    [
        (0.002, 0, 1_497),
        (0.002, 1, 2_371),
        (0.002, 2, 3_146),
        (0.05, 0, 59),
        (0.05, 1, 93),
        (0.05, 2, 124),
        (0.001, 0, 2_995),
        (0.001, 1, 4_742),
    ],
)
def test_so_many_trials_show_a_share_and_one_fewer_does_not(
    share: float, failures: int, trials: int
) -> None:
    assert trials == trials_for(share, failures)
    assert upper(failures, trials) <= share < upper(failures, trials - 1)


def test_without_a_failure_the_bound_is_the_closed_form() -> None:
    assert 1 - 0.05 ** (1 / 100) == pytest.approx(upper(0, 100), rel=1e-12)


def test_the_bound_is_that_of_the_tables() -> None:
    # The upper end of the two-sided 95 % of 10 in 100.
    assert 0.1762 == pytest.approx(upper(10, 100, 0.975), abs=1e-4)


def test_at_the_bound_so_few_failures_are_just_as_unlikely_as_was_asked() -> None:
    for failures, trials in [(3, 40), (17, 200), (120, 150)]:
        p = upper(failures, trials)
        seen = sum(
            math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(failures + 1)
        )
        assert 0.05 == pytest.approx(seen, rel=1e-9)


def test_nothing_tried_shows_nothing() -> None:
    assert 1.0 == upper(0, 0)
    assert 1.0 == upper(5, 5)


def test_a_million_trials_are_no_trouble() -> None:
    assert 0.300755 == pytest.approx(upper(300_000, 1_000_000), abs=1e-6)


def test_the_beta_function_is_symmetric_and_stays_in_its_range() -> None:
    assert 0.0 == beta(0.0, 2, 3)
    assert 1.0 == beta(1.0, 2, 3)
    assert 1.0 == pytest.approx(beta(0.3, 2, 5) + beta(0.7, 5, 2))


def test_a_bootstrap_interval_holds_the_mean_and_repeats() -> None:
    samples = [float(n % 10) for n in range(400)]

    low, high = bootstrap(samples, lambda chosen: sum(chosen) / len(chosen))

    assert low < 4.5 < high
    assert 0.55 == pytest.approx(high - low, abs=0.1)  # 3.92 standard errors of 0.1436
    assert (low, high) == bootstrap(samples, lambda chosen: sum(chosen) / len(chosen))
