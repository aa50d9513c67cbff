"""What a store's history says of the cost of saving."""

import pytest

from holdfast.report.history import Seen, costs_of


def seen(gaps_s: list[float], blocked_s: list[float]) -> Seen:
    return Seen(
        is_finished=True,
        units=[],
        calls=1 + len(gaps_s),
        worked_s=1.0,
        bytes=1,
        blocked_s=blocked_s,
        gaps_s=gaps_s,
        episodes=[],
        sla=None,
        every=None,
        is_priced=True,
    )


def test_a_record_costs_the_mean_time_between_calls_and_a_checkpoint_what_it_measured() -> None:
    costs = [seen([0.001, 0.003, 0.003], [0.01]), seen([0.005, 9.0], [0.03])]

    record_s, checkpoint_s, told = costs_of(costs)

    # Nine seconds are far beyond the others: there the agent itself was at work.
    assert 0.003 == pytest.approx(record_s)
    assert 0.02 == pytest.approx(checkpoint_s)
    assert "a record blocks 3 ms: the mean of 4 times" in told[0]
    assert "at most that" in told[0]
    assert "the mean of 2 that measured themselves" in told[1]


def test_where_nothing_was_measured_it_is_said_to_be_unknown() -> None:
    _, _, told = costs_of([seen([], [])])

    assert ["not known" in text for text in told] == [True, True]
