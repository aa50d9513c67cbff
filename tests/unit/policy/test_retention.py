"""What is kept and why, as a pure plan."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.policy import retention
from holdfast.policy.retention import Candidate, Retention

DAY_S = 86_400.0
NOW = 1_000 * DAY_S


def points(count: int, **held: tuple[str, ...]) -> list[Candidate]:
    """One point a day, the newest today, on turns 0, 1, 2 …"""
    return [
        Candidate(
            id=f"p{n}", at=NOW - (count - 1 - n) * DAY_S, turn=n, held_by=held.get(f"p{n}", ())
        )
        for n in range(count)
    ]


def kept(found: list[Candidate], rules: Retention, sound: str = "") -> list[str]:
    """The points that stay, where all verify but those named in `sound` as not."""
    fates = retention.checkpoints(found, rules, NOW, lambda id_: id_ not in sound.split())
    assert [each.id for each in found] == [fate.id for fate in fates]
    return [fate.id for fate in fates if fate.is_kept]


def test_without_a_rule_for_checkpoints_all_are_kept() -> None:
    assert ["p0", "p1", "p2"] == kept(points(3), Retention(runs_last=1))


def test_the_last_n_are_kept() -> None:
    assert ["p6", "p7", "p8", "p9"] == kept(points(10), Retention(last=4))


def test_what_is_young_enough_is_kept() -> None:
    assert ["p7", "p8", "p9"] == kept(points(10), Retention(within=2 * DAY_S))


def test_one_in_so_many_turns_is_kept_and_the_two_newest_that_verify() -> None:
    assert ["p0", "p4", "p8", "p9"] == kept(points(10), Retention(every=4))


def test_rules_add_up() -> None:
    rules = Retention(last=1, every=5, within=1.5 * DAY_S)
    assert ["p0", "p5", "p8", "p9"] == kept(points(10), rules)


def test_what_is_pinned_is_kept_with_its_reason() -> None:
    fates = retention.checkpoints(
        points(5, p1=("pinned",)), Retention(last=1), NOW, lambda _id: True
    )
    assert ("pinned",) == fates[1].why


def test_two_generations_that_verify_stay_whatever_the_rules_say() -> None:
    assert ["p1", "p3", "p5"] == kept(points(6), Retention(last=1), sound="p5 p4 p2")
    fates = retention.checkpoints(points(4), Retention(last=1), NOW, lambda id_: id_ == "p0")
    assert [("newest that verifies",), ("among the last 1",)] == [f.why for f in fates if f.why]


def test_checkpoints_are_verified_only_until_two_are_found() -> None:
    asked: list[str] = []

    def verifies(id_: str) -> bool:
        asked.append(id_)
        return True

    retention.checkpoints(points(50), Retention(last=3), NOW, verifies)
    assert ["p49", "p48"] == asked


@given(
    st.integers(0, 30),
    st.integers(1, 9) | st.none(),
    st.integers(1, 9) | st.none(),
    st.floats(0.1, 20) | st.none(),
)
def test_what_was_kept_once_is_kept_when_asked_again(
    count: int, last: int | None, every: int | None, days: float | None
) -> None:
    rules = Retention(last=last, every=every, within=None if days is None else days * DAY_S)
    found = points(count)
    once = kept(found, rules)
    assert once == kept([each for each in found if each.id in once], rules)
    if count:
        assert found[-1].id in once, "the newest always stays"


def runs(*held: str) -> list[Candidate]:
    """Runs of 100 bytes, one a day; those named in `held` have not ended."""
    return [
        Candidate(
            id=f"r{n}",
            at=NOW - (5 - n) * DAY_S,
            bytes=100,
            held_by=("it has not ended",) if f"r{n}" in held else (),
        )
        for n in range(6)
    ]


def left(found: list[Candidate], rules: Retention, used: int = 0) -> list[str]:
    fates = retention.runs(found, rules, NOW, used=used)
    return [fate.id for fate in fates if fate.is_kept]


def test_runs_stay_unless_a_rule_speaks_of_them() -> None:
    assert 6 == len(left(runs(), Retention(last=1)))
    assert ["r4", "r5"] == left(runs(), Retention(runs_last=2))
    assert ["r3", "r4", "r5"] == left(runs(), Retention(runs_within=2 * DAY_S))


def test_a_run_that_has_not_ended_stays() -> None:
    assert ["r0", "r5"] == left(runs("r0"), Retention(runs_last=1))


def test_a_quota_takes_the_oldest_runs_and_no_more_than_it_needs() -> None:
    assert ["r2", "r3", "r4", "r5"] == left(runs(), Retention(quota=450), used=600)
    assert ["r0", "r3", "r4", "r5"] == left(runs("r0"), Retention(quota=450), used=600)
    assert 6 == len(left(runs(), Retention(quota=600), used=600))


def test_what_the_rules_take_counts_towards_the_quota() -> None:
    assert ["r4", "r5"] == left(runs(), Retention(quota=450, runs_last=2), used=600)


@pytest.mark.parametrize("rule", ["last", "within", "every", "runs_last", "runs_within", "quota"])
def test_a_rule_that_cannot_be_meant_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match=f"{rule} is 0"):
        Retention(**{rule: 0})


def test_rules_are_written_as_people_write_them() -> None:
    assert ["p7", "p8", "p9"] == kept(points(10), Retention(within="48h"))
    assert ["r2", "r3", "r4", "r5"] == left(runs(), Retention(quota="0.45kB"), used=600)


@pytest.mark.parametrize(
    ("rule", "value", "why"),
    [
        ("last", "three", "no whole number"),
        ("every", True, "no whole number"),
        ("within", "a while", "is not a duration"),
        ("runs_within", "-1d", "is not a duration"),
        ("quota", "2XB", "is no size"),
        ("quota", True, "is no size"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(rule: str, value: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Retention(**{rule: value})  # type: ignore[arg-type]
