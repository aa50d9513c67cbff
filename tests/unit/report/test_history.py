"""What a store's history says of the cost of saving."""

import re
from pathlib import Path

import pytest

import holdfast
from holdfast.report.history import Seen, case_of, costs_of


def seen(gaps_s: list[float], blocked_s: list[float]) -> Seen:
    return Seen(
        is_fork=False,
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


@holdfast.step
def look(n: int) -> int:
    return n


@holdfast.agent
def busy(run: holdfast.Run) -> int:
    for _ in run.turns():
        return sum(look(n) for n in range(6))
    return 0


def test_a_turn_is_blocked_as_often_as_it_makes_records(tmp_path: Path) -> None:
    with holdfast.open(tmp_path) as store:
        store.run(busy, id="a")
        case = case_of(store.opened)

    [turn] = case.units
    record_s = float(re.findall(r"a record blocks ([\d.e-]+) ms", " ".join(case.notes))[0]) / 1000
    assert turn.seconds > 0
    assert 6 * record_s == pytest.approx(case.saving.journal_local_s, rel=0.01)
    assert "a turn makes 6 records on average, so it is blocked as often" in case.notes


@holdfast.agent
def patient(run: holdfast.Run) -> int:
    for turn in run.turns():
        look(turn)
        if turn == 3:
            break
    return 0


def test_turns_that_were_done_again_and_those_of_forks_are_no_further_work(tmp_path: Path) -> None:
    with holdfast.open(tmp_path) as store:
        store.run(patient, id="a")
        store.run(patient, id=store.fork("a", at=2).id)
        store.plan_rollback("a", to="a@0").apply()
        store.run(patient, id="a")
        case = case_of(store.opened)

    assert 4 == len(case.units)
    assert not [note for note in case.notes if "records on average" in note]
