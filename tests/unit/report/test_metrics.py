"""The five promises: met only when shown, missed when measured so, else the bound is told."""

import pytest

from holdfast.model.failure import FailureKind
from holdfast.report.episodes import Ending, Episode
from holdfast.report.metrics import (
    Targets,
    Verdict,
    breaches,
    counted,
    is_breach,
    overhead,
    recovery_success,
    recovery_time,
    storage,
)

PROMISED = Targets()


def episode(took_s: float | None = 1.0, ending: Ending = Ending.RECOVERED) -> Episode:
    return Episode(
        kind=FailureKind.CRASH,
        failed_at=100.0,
        resumed_at=None if took_s is None else 100.0 + took_s / 2,
        caught_up_at=None if took_s is None else 100.0 + took_s,
        ending=ending,
    )


@pytest.mark.parametrize(
    ("good", "bad", "verdict"),
    [
        (1_497, 0, Verdict.MET),
        (1_496, 0, Verdict.NOT_SHOWN),
        (2_370, 1, Verdict.MET),
        (1_499, 1, Verdict.NOT_SHOWN),
        (100, 1, Verdict.MISSED),
        (0, 0, Verdict.NOT_SHOWN),
    ],
)
def test_recovery_success_is_met_only_when_it_is_shown(
    good: int, bad: int, verdict: Verdict
) -> None:
    found = recovery_success([episode()] * good + [episode(None, Ending.FAILED)] * bad, PROMISED)

    assert verdict is found.verdict
    assert 0.998 == found.target


def test_too_few_samples_tell_the_bound_and_how_many_would_do() -> None:
    found = recovery_success([episode()] * 100, PROMISED)

    assert Verdict.NOT_SHOWN is found.verdict
    assert 1.0 == found.value
    assert 0.9705 == pytest.approx(found.bound, abs=1e-4)
    assert 1_497 == found.needed


def test_a_recovery_with_a_person_or_a_repeated_effect_is_none() -> None:
    helped = recovery_success([episode()] * 99 + [episode(1.0, Ending.PERSON)], PROMISED)
    spoiled = recovery_success([episode()] * 100, PROMISED, spoiled=1)

    assert (1, 1) == (helped.failures, spoiled.failures)


@pytest.mark.parametrize(
    ("quick", "slow", "verdict"),
    [
        (59, 0, Verdict.MET),
        (58, 0, Verdict.NOT_SHOWN),
        (92, 1, Verdict.MET),
        (91, 1, Verdict.NOT_SHOWN),
        (18, 2, Verdict.MISSED),
    ],
)
def test_recovery_time_counts_what_was_slow_and_interpolates_nothing(
    quick: int, slow: int, verdict: Verdict
) -> None:
    found = recovery_time([1.0] * quick + [None] * slow, PROMISED)

    assert verdict is found.verdict


def test_the_quantile_and_its_bound_are_samples() -> None:
    found = recovery_time([float(n) for n in range(1, 101)], Targets(recovery_s=1000))

    assert 95.0 == found.value
    assert found.bound is not None
    assert 95.0 < found.bound <= 100.0


def test_storage_is_met_when_the_whole_interval_is_below() -> None:
    assert Verdict.MET is storage([40_000.0, 45_000.0] * 50, PROMISED).verdict
    assert Verdict.MISSED is storage([60_000.0] * 50, PROMISED).verdict
    assert Verdict.NOT_SHOWN is storage([1.0] * 19, PROMISED).verdict
    assert Verdict.NOT_SHOWN is storage([20_000.0] * 30 + [90_000.0] * 20, PROMISED).verdict


def test_overhead_is_that_of_all_runs_together() -> None:
    found = overhead([(1.0, 100.0)] * 30, PROMISED)

    assert 0.01 == pytest.approx(found.value)
    assert Verdict.MET is found.verdict
    assert Verdict.MISSED is overhead([(1.0, 2.0)] * 30, PROMISED).verdict


def test_a_breach_is_a_run_not_recovered_or_too_late() -> None:
    assert not is_breach([episode()], [1.0], 30.0)
    assert is_breach([episode()], [31.0], 30.0)
    assert is_breach([episode(1.0, Ending.PERSON)], [1.0], 30.0)
    assert Verdict.MET is breaches(2_995, 0, PROMISED).verdict
    assert Verdict.NOT_SHOWN is breaches(2_994, 0, PROMISED).verdict


def test_an_open_episode_counts_once_it_is_overdue() -> None:
    young = episode(None, Ending.OPEN)

    assert [] == counted([young], 110.0, PROMISED)
    assert [young] == counted([young], 131.0, PROMISED)
