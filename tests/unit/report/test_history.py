"""What a store's history says of the cost of saving."""

import contextlib
import re
from pathlib import Path

import pytest

import holdfast
from holdfast.model.case import Cause, Scope
from holdfast.report.history import Seen, case_of, costs_of
from holdfast.testing.fakes import ManualClock


def seen(gaps_s: list[float], blocked_s: list[float]) -> Seen:
    return Seen(
        is_fork=False,
        is_child=False,
        is_finished=True,
        units=[],
        calls=1 + len(gaps_s),
        worked_s=1.0,
        bytes=1,
        blocked_s=blocked_s,
        gaps_s=gaps_s,
        episodes=[],
        sla=None,
        every=0,
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


def test_an_agent_that_sleeps_between_its_calls_says_nothing_of_what_a_record_costs() -> None:
    record_s, checkpoint_s, told = costs_of([seen([3600.0, 3600.0, 7200.0], [0.01])])

    assert (0.0005, 0.01) == (record_s, checkpoint_s)
    assert "not known, since between all calls 1 s and more were the agent's own" in told[0]


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


@pytest.mark.parametrize(
    ("cadence", "every"),
    [
        ("turns=50", 50),
        ("steps=2", 1),
        ("steps=6", 3),
        ("tokens=1000", 5),
        ("seconds=30s", 3),
        ("turns=4 | seconds=10s", 1),
        ("never", 0),
    ],
)
def test_the_current_way_is_how_often_checkpoints_were_made(
    tmp_path: Path, cadence: str, every: int
) -> None:
    clock = ManualClock()

    @holdfast.step
    def think(_n: int) -> dict[str, object]:
        clock.advance(5.0)
        return {"model": "m", "usage": {"input_tokens": 100}}

    @holdfast.agent(checkpoint=cadence)
    def agent(run: holdfast.Run) -> None:
        for turn in run.turns():
            think(2 * turn)
            think(2 * turn + 1)
            if turn == 29:
                break

    with holdfast.open(tmp_path, clock=clock) as store:
        store.run(agent, id="a")
        case = case_of(store.opened)

    assert case.current is not None
    assert ("local", every) == (case.current.journal, case.current.local_every)


class Killed(BaseException):
    """The process ends here, as far as the run can tell."""


@holdfast.agent
def killed(_run: holdfast.Run) -> None:
    look(1)
    raise Killed


def test_crashes_that_nobody_mended_count_as_not_recovered_once_overdue(tmp_path: Path) -> None:
    clock = ManualClock()
    for n in range(9):
        with holdfast.open(tmp_path, clock=clock) as store, contextlib.suppress(Killed):
            store.run(killed, id=f"killed-{n}")
    with holdfast.open(tmp_path, clock=clock) as store:
        store.run(busy, id="well")
        [young] = case_of(store.opened, clock.now() + 29.0).causes
        [overdue] = case_of(store.opened, clock.now() + 31.0).causes
        notes = case_of(store.opened).notes

    unknown = (
        "how soon a process that died is noticed and how long a restore takes is not known here"
    )
    assert any(note.startswith(unknown) for note in notes)
    assert "going through a recorded turn again is taken to last 5 ms" in notes
    assert (Scope.PROCESS, 1, 0.95) == (young.scope, _hourly(young), young.p_recovered)
    assert (Scope.PROCESS, 10, 0.095) == (overdue.scope, _hourly(overdue), overdue.p_recovered)
    assert "10 runs, 9 failures (ended or overdue)" in notes[0]


def test_what_a_recovery_took_is_no_guess_once_one_was_seen(tmp_path: Path) -> None:
    lives: list[int] = []

    @holdfast.agent
    def dies_once(_run: holdfast.Run) -> None:
        look(1)
        lives.append(1)
        if len(lives) == 1:
            raise Killed
        look(2)

    for _ in range(2):
        with holdfast.open(tmp_path) as store, contextlib.suppress(Killed):
            store.run(dies_once, id="a")
            notes = case_of(store.opened).notes

    assert 2 == len(lives)
    assert not [note for note in notes if "0 s is taken" in note]


def _hourly(cause: Cause) -> int:
    return round(3600 * cause.per_second)
