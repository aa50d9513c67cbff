"""Garbage is collected while others read, fork, pin and open: nothing is lost or called damaged."""
# ruff: noqa: SLF001 the test stands between two looks at the database

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engine import fork, retain
from holdfast.engine.handle import Store
from holdfast.policy.retention import Retention
from holdfast.store import writer
from holdfast.store.backends import sweep
from holdfast.store.backends.reads import SqliteReads
from holdfast.store.gc import pins, rows, runs
from holdfast.store.reader import Reader
from holdfast.store.verify import verify, walk
from tests.engine.kit import text

POINTS = Retention(last=1)
RUNS = Retention(runs_last=1)
OLD = 5

Between = Callable[[object, str, Callable[[], object]], None]


@holdfast.step
def draft(turn: int) -> str:
    return text(turn, 6000)


@holdfast.agent
def author(run: holdfast.Run) -> list[int]:
    seen = run.state.setdefault("seen", [])
    for turn in run.turns():
        run.state["draft"] = draft(turn)
        seen.append(turn)
        if turn == 60:
            return [*seen]
    raise AssertionError


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """Do something once, before a function of the store is called for the first time."""

    def interpose(owner: object, name: str, act: Callable[[], object]) -> None:
        original, acts = getattr(owner, name), [act]

        def called(*args: Any, **options: Any) -> Any:  # noqa: ANN401 the function's own
            while acts:
                acts.pop()()
            return original(*args, **options)

        monkeypatch.setattr(owner, name, called)

    return interpose


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with holdfast.open(tmp_path / "store") as store:
        for id_ in ("run", "newer"):
            store.run(author, id=id_)
        yield store


@pytest.fixture
def other(store: Store) -> Iterator[Store]:
    """Another process has the store open too."""
    with holdfast.open(store.path) as other:
        yield other


def test_a_fork_that_is_made_while_garbage_is_collected_keeps_its_state(
    store: Store, other: Store, between: Between
) -> None:
    before = store.restore(f"run@{OLD}")[1]
    between(rows, "prune", lambda: other.fork("run", at=OLD, new_id="fork"))

    done = store.gc(POINTS)

    assert "run" in done.passed_over
    assert before == store.restore("fork")[1]
    assert list(range(61)) == store.restart("fork")


def test_a_fork_of_a_fork_keeps_what_is_older_than_both(
    store: Store, other: Store, between: Between
) -> None:
    store.fork("run", at=40, new_id="fork")
    store.restart("fork")
    before = store.restore(f"fork@{OLD}")[1]
    between(rows, "prune", lambda: other.fork("fork", at=OLD, new_id="second"))

    store.gc(POINTS)

    assert before == store.restore("second")[1]


def test_what_is_pinned_while_garbage_is_collected_stays(
    store: Store, other: Store, between: Between
) -> None:
    before = store.restore(f"run@{OLD}")[1]
    between(rows, "prune", lambda: other.pin(f"run@{OLD}"))
    between(runs, "remove", lambda: other.pin("run"))

    assert not store.gc(RUNS).runs
    other.unpin("run")
    store.gc(POINTS)

    assert before == store.restore(f"run@{OLD}")[1]


def test_a_fork_of_what_is_collected_before_it_is_there_is_refused(
    store: Store, other: Store, between: Between
) -> None:
    between(writer, "fork", lambda: other.gc(POINTS))

    with pytest.raises(holdfast.UnknownCheckpoint, match=r"garbage collection removed what"):
        store.fork("run", at=OLD, new_id="fork")

    with pytest.raises(holdfast.UnknownRun):
        store.get("fork")


def test_a_fork_of_what_is_kept_is_made_though_other_rows_were_collected(
    store: Store, other: Store, between: Between
) -> None:
    before = store.restore("run@59")[1]
    between(writer, "fork", lambda: other.gc(POINTS))

    store.fork("run", at=59, new_id="fork")

    assert before == store.restore("fork")[1]


def test_a_fork_of_a_run_that_nothing_was_collected_of_does_not_look_at_its_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.gc(POINTS).rows
    store.run(author, id="newest")
    monkeypatch.setattr(fork, "is_there", lambda *_: False)

    store.fork("newest", at=OLD, new_id="fork")
    with pytest.raises(holdfast.UnknownCheckpoint, match="garbage collection"):
        store.fork("run", at=59, new_id="looked at")

    assert [*range(61)] == store.restart("fork")


def test_a_run_without_what_it_goes_on_from_is_damaged_and_does_not_begin_anew(
    store: Store, other: Store, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "is_grown", lambda *_: False)  # As a store may have lost it before.
    between(rows, "prune", lambda: other.fork("run", at=OLD, new_id="fork"))
    assert store.gc(POINTS).rows

    with pytest.raises(holdfast.Damaged, match="garbage collection removed what it goes on from"):
        store.restart("fork")


@pytest.mark.parametrize("name", ["line", "rows"])
def test_a_run_that_is_removed_while_it_is_read_is_said_to_be_gone(
    store: Store, other: Store, between: Between, name: str
) -> None:
    between(Reader, name, lambda: other.gc(RUNS))

    with pytest.raises((holdfast.UnknownRun, holdfast.UnknownCheckpoint)):
        store.checkpoints("run")
    with pytest.raises((holdfast.UnknownRun, holdfast.UnknownCheckpoint)):
        store.restore(f"run@{OLD}")


@pytest.mark.parametrize(
    "asked",
    [lambda store: store.restore("run@3"), lambda store: store.diff("run@3", "run@4")],
    ids=["restore", "diff"],
)
def test_a_state_is_not_called_damaged_because_its_run_is_removed_meanwhile(
    store: Store, other: Store, between: Between, asked: Callable[[Store], object]
) -> None:
    between(Reader, "rows", lambda: other.gc(RUNS))

    with pytest.raises(holdfast.UnknownCheckpoint):
        asked(store)


@pytest.mark.parametrize("name", ["_body", "_read_branch", "_rows_of"])
def test_a_run_that_is_removed_while_the_store_is_verified_is_no_finding(
    store: Store, other: Store, between: Between, name: str
) -> None:
    between(walk._Verification, name, lambda: other.gc(RUNS))

    report = verify(store._opened, deep=True)

    assert ([], 1) == (report.findings, report.runs)


def test_two_may_collect_garbage_at_once(store: Store, other: Store, between: Between) -> None:
    between(retain.Collector, "_judge_points", lambda: other.gc(RUNS))

    store.gc(POINTS)

    assert ["newer"] == [each.id for each in store.runs()]
    assert verify(store._opened, deep=True).is_whole


def test_a_store_is_opened_though_a_run_that_was_noted_is_removed_in_that_moment(
    store: Store, other: Store, between: Between
) -> None:
    between(SqliteReads, "_holds", lambda: other.gc(RUNS))

    with holdfast.open(store.path) as opened:
        assert ["newer"] == [each.id for each in opened.runs()]


def test_a_rollback_to_what_was_collected_since_it_was_planned_is_refused_and_the_run_is_as_it_was(
    store: Store, other: Store
) -> None:
    store.fork("run", at=40, new_id="fork")
    store.restart("fork")
    before = store.restore("fork")[1]
    plan = store.plan_rollback("fork", to=OLD)
    assert other.gc(POINTS).rows

    with pytest.raises(holdfast.UnknownCheckpoint, match=r"garbage collection removed what"):
        plan.apply()

    assert "finished" == store.get("fork").status
    assert before == store.restore("fork")[1]


def test_nothing_is_collected_of_a_run_while_a_fork_of_it_is_rolled_back(
    store: Store, other: Store, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.fork("run", at=40, new_id="fork")
    store.restart("fork")
    before = store.restore(f"fork@{OLD}")[1]
    plan = store.plan_rollback("fork", to=OLD)
    original, pruned = rows.prune, list[int]()

    def prune(*args: Any, **options: Any) -> int:  # noqa: ANN401 the function's own
        if not pruned:
            between(pins, "pin", lambda: pruned.append(original(*args, **options)))
            plan.apply()
        return 0

    monkeypatch.setattr(rows, "prune", prune)

    other.gc(POINTS)

    assert [0] == pruned
    after = store.restore("fork")[1]
    assert before == {name: after[name] for name in before}


@holdfast.effect(key="turn")
def pay(turn: int) -> str:
    return f"paid {turn}"


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def payer(run: holdfast.Run) -> None:
    for turn in run.turns():
        pay(turn)  # In one row with the end of the turn before, which therefore stays.
        run.state["draft"] = draft(turn)
        if turn == 30:
            return


def test_a_point_of_which_only_its_end_is_left_is_neither_forked_nor_gone_back_to(
    store: Store,
) -> None:
    store.run(payer, id="payer")
    old = store.checkpoints("payer")[OLD].id
    assert store.gc(POINTS).rows
    assert old not in [each.id for each in store.checkpoints("payer")]

    with pytest.raises(holdfast.UnknownCheckpoint):
        store.fork("payer", at=old)
    with pytest.raises(holdfast.UnknownCheckpoint):
        store.plan_rollback("payer", to=old).apply()

    assert "finished" == store.get("payer").status
