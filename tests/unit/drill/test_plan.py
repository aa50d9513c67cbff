"""Which run gets which fault: the seed alone says it, and every fault comes equally often."""

from collections import Counter

import pytest

from holdfast.drill.faults import FAULTS, Corrupt, Hang, Kill, KillAny
from holdfast.drill.plan import Plan, Trial

FOUR = ("kill", "hang", "corrupt", "timeout")


def plan(share: float = 0.5, seed: int = 1) -> Plan:
    return Plan(seed=seed, cases=3, faults=FOUR, share=share)


@pytest.mark.parametrize(("share", "struck"), [(0.5, 400), (1.0, 800), (0.8, 640), (0.25, 200)])
def test_the_share_is_kept_and_faults_come_equally_often(share: float, struck: int) -> None:
    found = Counter(plan(share).trial(no).fault for no in range(800))

    assert 800 - struck == found.pop(None, 0)
    assert dict.fromkeys(FOUR, struck // 4) == found


def test_a_trial_is_known_by_its_number_alone() -> None:
    once, again = plan(), plan()

    assert once.trial(321) == again.trial(321)
    assert [once.trial(no) for no in range(50)] != [plan(seed=2).trial(no) for no in range(50)]


def test_no_faults_are_no_trouble() -> None:
    assert Plan(seed=1, cases=1, faults=(), share=0.5).trial(3).fault is None
    assert plan(share=0).trial(3).fault is None


def test_a_fault_strikes_inside_the_run_and_where_it_can() -> None:
    counts = {"moments": 100.0, "steps": 6.0}
    trials = [plan().trial(no) for no in range(300)]

    kills = {each.nth(Kill(), counts) for each in trials}
    hangs = {each.nth(Hang(), counts) for each in trials}
    damage = {each.nth(Corrupt(), counts) for each in trials}

    assert 0 == min(kills)
    assert 90 < max(kills) < 97
    assert {0, 1, 2, 3, 4} == hangs
    assert 25 == min(damage)
    assert 0 == Trial(no=0, case=0, seed="0").nth(Kill(), {})


def test_a_kill_at_any_time_strikes_as_often_in_each_second_of_the_run() -> None:
    counts = {"moments": 100.0, "run_s": 20.0}

    times_s = sorted(plan().trial(no).nth(KillAny(), counts) for no in range(400))

    assert 0 <= times_s[0] < 1
    assert 18 < times_s[-1] <= 0.97 * 20
    assert 9.7 == pytest.approx(times_s[200], abs=1.5)


def test_every_fault_says_what_it_is() -> None:
    for name, kind in FAULTS.items():
        traits = kind().traits
        assert name == traits.name
        assert traits.about
