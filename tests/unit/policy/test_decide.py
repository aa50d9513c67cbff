"""What is decided about a failure: the tables, the limits, and that nothing loops."""

import itertools
from typing import Any

import pytest

from holdfast.model.decision import Action, Decision
from holdfast.model.failure import Failure, FailureKind
from holdfast.model.limits import SLA, Retry
from holdfast.policy.decide import RECOVERIES_MAX, Place, Situation, backoff_s, decide
from holdfast.policy.estimate import PRIORS, Seen, odds, percentile

NEWEST = Place(point="run@4", turns_lost=1)
OLDER = Place(point="run@3", turns_lost=2)
ACTING = (Action.RETRY, Action.RESTART, Action.ROLLBACK)


def failure(kind: FailureKind | str, **more: Any) -> Failure:  # noqa: ANN401 fields of a failure
    return Failure(kind=FailureKind(kind), what="it", why="said so", **{"sign": "X", **more})


def at(**more: Any) -> Situation:  # noqa: ANN401 fields of a situation
    return Situation(**{"verified": NEWEST, "earlier": OLDER, **more})


@pytest.mark.parametrize(
    ("expected", "kind", "situation"),
    [
        ("retry", "transient", at(retry=Retry())),
        ("retry", "timeout", at(retry=Retry())),
        ("retry", "bug", at(retry=Retry(on="bug"))),
        ("restart", "transient", at()),
        ("restart", "transient", at(retry=Retry(attempts=2), attempt=2)),
        ("restart", "transient", at(repeats=3)),
        ("restart", "timeout", at()),
        ("restart", "crash", at()),
        ("rollback", "corruption", at()),
        ("rollback", "invalid state", at()),
        ("rollback", "poison", at()),
        ("rollback", "crash", at(repeats=1)),
        ("rollback", "timeout", at(repeats=1)),
        ("rollback", "bug", at(repeats=1)),
        ("escalate", "crash", at(repeats=1, earlier=None)),
        ("escalate", "crash", at(repeats=1, rollbacks=1)),
        ("escalate", "corruption", at(verified=None)),
        ("escalate", "corruption", at(rollbacks=2)),
        ("escalate", "partial", at()),
        ("escalate", "in doubt", at(retry=Retry())),
        ("escalate", "budget", at()),
        ("escalate", "bug", at()),
        ("escalate", "unknown", at()),
        ("escalate", "crash", at(is_held=True)),
    ],
)
def test_each_kind_has_its_action(expected: str, kind: str, situation: Situation) -> None:
    assert expected == decide(failure(kind), situation).action


def test_every_kind_in_every_situation_has_a_decision_with_a_reason() -> None:
    slas = [
        None,
        SLA(),
        SLA(max_recovery=0, deadline=0, on_exhausted="fail"),
        SLA(max_recovery="30s", deadline="1h", recovery_budget=1, turn_usd=0.1, task_usd=5),
    ]
    places = [None, NEWEST, Place(point="p", turns_lost=0, standing=2)]
    count = 0
    for (
        kind,
        sla,
        verified,
        earlier,
        retry,
        repeats,
        recoveries,
        rollbacks,
        held,
    ) in itertools.product(
        FailureKind, slas, places, places, (None, Retry()), (0, 1), (0, 9), (0, 1, 2), (False, True)
    ):
        situation = Situation(
            verified=verified,
            earlier=earlier,
            retry=retry,
            repeats=repeats,
            recoveries=recoveries,
            rollbacks=rollbacks,
            is_held=held,
        )
        made = decide(failure(kind), situation, sla)
        count += 1
        assert made.reason
        assert (made.action is Action.ROLLBACK) == (made.to is not None)
        if made.action is Action.GIVE_UP:
            assert sla is not None
            assert "fail" == sla.on_exhausted
        if made.action in ACTING:
            assert made.p_success is not None
            assert made.time_s is not None
            assert 0 < made.p_success < 1
    assert 11 * 4 * 9 * 2 * 2 * 2 * 3 * 2 == count


def test_the_wait_is_full_jitter_under_a_bound_that_doubles_up_to_the_cap() -> None:
    assert [1.0, 2.0, 4.0, 8.0, 10.0, 10.0] == [backoff_s(n, 1.0, 10.0, 1.0) for n in range(1, 7)]
    assert 0.0 == backoff_s(3, 1.0, 10.0, 0.0)
    assert 2.0 == backoff_s(3, 1.0, 10.0, 0.5)
    assert 10.0 == backoff_s(10_000, 1.0, 10.0, 1.0)


def test_a_server_that_names_a_time_is_left_alone_for_that_long() -> None:
    soon = decide(failure("transient", retry_after_s=7.0), at(retry=Retry(cap=10), chance=0.0))
    late = decide(failure("transient", retry_after_s=70.0), at(retry=Retry(cap=10)))

    assert (Action.RETRY, 7.0) == (soon.action, soon.wait_s)
    assert (Action.RESTART, 70.0) == (late.action, late.wait_s)


def test_no_wait_is_begun_that_ends_past_the_deadline() -> None:
    sla = SLA(deadline="60s")
    situation = at(retry=Retry(base=40, cap=40), age_s=30.0)

    made = decide(failure("transient", retry_after_s=40.0), situation, sla)

    assert Action.ESCALATE is made.action
    assert "deadline is in 30.0 s" in made.reason


def test_a_recovery_that_would_take_longer_than_promised_is_not_begun() -> None:
    sla = SLA(max_recovery="30s")

    assert Action.RESTART is decide(failure("crash"), at(elapsed_s=27.0), sla).action
    late = decide(failure("crash"), at(elapsed_s=29.0), sla)

    assert Action.ESCALATE is late.action
    assert "more than max_recovery, 30.0 s" in late.reason


def test_what_was_lost_counts_where_the_clock_runs_until_it_is_caught_up() -> None:
    far = Place(point="p", turns_lost=5)
    situation = at(verified=far, turn_s=10.0)

    resume = decide(failure("corruption"), situation, SLA(max_recovery="30s", clock="resume"))
    caught = decide(failure("corruption"), situation, SLA(max_recovery="30s", clock="catch_up"))

    assert (Action.ROLLBACK, Action.ESCALATE) == (resume.action, caught.action)


def test_an_attempt_is_made_only_if_it_costs_less_than_it_is_worth() -> None:
    cheap = decide(failure("crash"), at(), SLA(turn_usd=1.0, task_usd=3.0))
    dear = decide(failure("crash"), at(), SLA(turn_usd=2.5, task_usd=3.0))
    hours = SLA(turn_usd=2.5, task_usd=3.0, breach_usd_per_hour=10, person="2h")

    assert (Action.RESTART, 1.0, 3.0) == (cheap.action, cheap.cost_usd, cheap.stake_usd)
    assert Action.ESCALATE is dear.action
    assert "it costs $2.50 and is worth 67% of $3.00" in dear.reason
    assert (Action.RESTART, 23.0) == (
        (made := decide(failure("crash"), at(), hours)).action,
        made.stake_usd,
    )


def test_a_critical_run_has_a_higher_stake_and_the_same_rules() -> None:
    sla = SLA(turn_usd=2.5, task_usd=3.0, criticality=10)

    assert Action.RESTART is decide(failure("crash"), at(), sla).action
    assert Action.ROLLBACK is decide(failure("corruption"), at(), sla).action
    assert Action.ESCALATE is decide(failure("in doubt"), at(), sla).action


def test_a_spent_budget_escalates_or_fails_where_the_user_says_so() -> None:
    spent = at(spent_usd=4.5)

    asks = decide(failure("crash"), spent, SLA(recovery_budget="$5", turn_usd=1))
    ends = decide(failure("crash"), spent, SLA(recovery_budget=5, turn_usd=1, on_exhausted="fail"))

    assert (Action.ESCALATE, Action.GIVE_UP) == (asks.action, ends.action)
    assert "$4.50 of $5.00 is spent on recoveries and it costs $1.00" in asks.reason


def test_only_what_is_exhausted_fails_and_not_what_is_in_doubt() -> None:
    sla = SLA(on_exhausted="fail", deadline=0)

    assert Action.GIVE_UP is decide(failure("crash"), at(), sla).action
    assert Action.ESCALATE is decide(failure("in doubt"), at(), sla).action


def test_a_rule_without_its_inputs_is_off_and_says_so() -> None:
    none = decide(failure("crash"), at())
    some = decide(failure("crash"), at(), SLA(max_recovery="30s", turn_usd=1, task_usd=9))
    old = decide(failure("crash"), at(), SLA(recovery_budget="words of an older record"))

    rules = ["time to recover", "deadline", "availability", "budget", "worth"]
    assert rules == [o.split(":")[0] for o in none.off]
    assert ["deadline", "availability", "budget"] == [o.split(":")[0] for o in some.off]
    assert Action.RESTART is old.action


def test_a_promised_availability_cuts_the_wait_before_a_restart_and_forbids_nothing() -> None:
    often = at(recoveries=4, age_s=10_000.0, chance=1.0)
    free = decide(failure("crash"), often)
    held = decide(failure("crash"), often, SLA(availability=0.9997))
    broken = decide(failure("crash"), often, SLA(availability=1.0))
    asked = decide(failure("crash", retry_after_s=9.0), often, SLA(availability=1.0))

    assert (4.0, None) == (free.wait_s, free.down_left_s)
    assert held.time_s is not None
    assert 0.0 < held.wait_s < 4.0
    assert 3.0 == pytest.approx(held.time_s)
    assert 0.0 == pytest.approx(held.down_left_s)
    assert (Action.RESTART, 0.0) == (broken.action, broken.wait_s)
    assert broken.down_left_s is not None
    assert broken.down_left_s < 0
    assert 9.0 == asked.wait_s, "who asks to be left alone is"


def test_a_deadline_says_how_long_a_young_run_may_be_down() -> None:
    young = at(recoveries=1, age_s=1.0, chance=1.0)

    promise = SLA(availability=0.9, deadline="100s")

    assert 0.5 == decide(failure("crash"), young, promise).wait_s
    assert 0.0 == decide(failure("crash"), young, SLA(availability=0.9)).wait_s


def test_every_decision_names_the_rules_that_were_off() -> None:
    person = decide(failure("in doubt"), at(), SLA(overhead_cap=0.15, turn_usd=1))

    assert Action.ESCALATE is person.action
    assert "budget: SLA(recovery_budget=) is not given" in person.off
    assert any(each.startswith("overhead_cap: it bounds what saving costs") for each in person.off)


def test_what_cannot_be_undone_stands_in_the_way_of_a_rollback() -> None:
    paid = Place(point="p", turns_lost=1, standing=2)

    made = decide(failure("corruption"), at(verified=paid))

    assert Action.ESCALATE is made.action
    assert "2 effects after the checkpoint cannot be undone" in made.reason


def test_a_process_that_was_told_to_stop_is_no_poison() -> None:
    told = failure("crash", sign="signal SIGTERM")

    assert Action.RESTART is decide(told, at(repeats=2, recoveries=2)).action


def test_the_first_restart_is_at_once_and_later_ones_wait() -> None:
    waits = [decide(failure("transient"), at(recoveries=n)).wait_s for n in range(RECOVERIES_MAX)]

    assert [0.0, 0.5, 1.0, 2.0, 4.0] == waits


def test_what_was_seen_outweighs_what_was_believed() -> None:
    prior = odds(Action.RESTART, {})
    bad = odds(Action.RESTART, {Action.RESTART: Seen(failed=97, times_s=[9.0] * 97)})

    assert (2 / 3, PRIORS[Action.RESTART].time_s) == (prior.p_success, prior.time_s)
    assert (0.02, 9.0) == (bad.p_success, bad.time_s)


def test_a_rollback_is_never_thought_faster_than_a_restart() -> None:
    seen = {Action.RESTART: Seen(times_s=[50.0]), Action.ROLLBACK: Seen(times_s=[1.0])}

    assert 50.0 == odds(Action.ROLLBACK, seen).time_s


def test_the_time_is_the_one_that_nearly_all_keep() -> None:
    assert 95.0 == percentile([float(n) for n in range(1, 101)], 0.0)
    assert 3.0 == percentile([3.0], 0.0)
    assert 7.0 == percentile([], 7.0)


@pytest.mark.parametrize("kinds", [*itertools.product(FailureKind, repeat=2)], ids="+".join)
def test_failures_without_progress_end_with_a_person(kinds: tuple[FailureKind, ...]) -> None:
    """Two kinds in turn, forever, from one point: the worst that a run can do."""
    seen: list[tuple[str, Decision]] = []
    for nth in range(100):
        kind = kinds[nth % len(kinds)]
        past = [made for sign, made in seen if sign == kind]
        situation = at(
            repeats=len(past),
            recoveries=len(seen),
            rollbacks=sum(made.action is Action.ROLLBACK for made in past),
        )
        made = decide(failure(kind, sign=kind), situation)
        if made.action not in ACTING:
            return
        seen.append((kind, made))
    raise AssertionError(f"still going on after {len(seen)} failures")


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_failure_that_comes_back_after_every_rollback_ends_with_a_person(
    kind: FailureKind,
) -> None:
    """Each rollback is followed by progress up to the same failure; only rollbacks are counted."""
    rollbacks = 0
    while rollbacks < 10:
        made = decide(failure(kind), at(repeats=1, rollbacks=rollbacks))
        if made.action is not Action.ROLLBACK:
            break
        rollbacks += 1

    assert rollbacks <= 2
