"""`verify --deep` restores what is listed: whole bytes that make no state are damage too."""
# ruff: noqa: SLF001 the test reads what lies beneath the handle

from pathlib import Path

import msgspec
import pytest

import holdfast
from holdfast.engine import restores, retain
from holdfast.engine.handle import Store
from holdfast.engine.handle import open as open_store
from holdfast.engine.restores import try_points
from holdfast.policy.retention import Retention
from holdfast.store.codec.values import registry
from holdfast.store.verify import verify


class Note(msgspec.Struct):
    text: str


@holdfast.step
def write(turn: int) -> dict[str, str]:
    return {"text": f"page {turn} " * 40, "place": str(turn)}


@holdfast.agent(checkpoint=holdfast.every(turns=2))
def author(run: holdfast.Run, turns: int, label: int = -1) -> int:
    """Keeps one answer in three."""
    run.state["pages"] = []
    for turn in run.turns():
        page = write(turn)
        if turn % 3 == 0:
            run.state["pages"].append({"page": page})
        if turn == label:
            run.checkpoint(label="here")
        if turn + 1 == turns:
            return turn
    raise AssertionError


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def noter(run: holdfast.Run) -> int:
    for turn in run.turns():
        run.state["note"] = Note(f"note {turn}")
        if turn == 2:
            return turn
    raise AssertionError


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def late_noter(run: holdfast.Run, since: int, last: int) -> None:
    for turn in run.turns():
        run.state["turn"] = turn
        if turn >= since:
            run.state[f"note {turn}"] = Note("late")
        if turn == last:
            return


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


def test_every_checkpoint_and_the_newest_point_are_restored(store: Store) -> None:
    store.run(author, 10, id="run")
    store.fork("run", at=4, new_id="fork")
    listed = [*store.checkpoints("run"), *store.checkpoints("fork")]

    tried = try_points(store._opened)

    assert [] == tried.findings
    assert (len(listed) + 2, 0, 0) == (tried.points, tried.unknown, tried.left)


def test_a_checkpoint_that_lost_what_it_was_made_of_is_named_with_a_good_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.run(author, 400, id="run")
    newest = store.restore("run")[0].id
    monkeypatch.setattr(retain, "rows_used", lambda *_: set[int]())
    store.gc(Retention(last=2))

    (found,) = try_points(store._opened).findings

    assert verify(store._opened, deep=True).is_whole
    assert ("run", f"checkpoint {newest}") == (found.run, found.where)
    assert "cannot be restored" in found.why
    assert found.good != newest


def test_a_pinned_point_that_is_gone_is_missed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.run(author, 400, id="run")
    pinned = store.checkpoints("run")[20].id
    store.pin(pinned)
    monkeypatch.setattr(retain.Collector, "_pinned", lambda *_: [])
    monkeypatch.setattr(retain.Collector, "_pinned_besides", lambda *_: [])
    store.gc(Retention(last=2))

    (found,) = try_points(store._opened).findings

    assert f"checkpoint {pinned}" == found.where
    assert store.restore("run")[0].id == found.good


def test_what_was_collected_by_the_rules_is_not_missed(store: Store) -> None:
    store.run(author, 400, id="run")
    store.gc(Retention(last=2))

    tried = try_points(store._opened)

    assert [] == tried.findings
    assert 0 < tried.points < 200


def test_of_many_checkpoints_the_newest_and_those_with_a_label_are_tried(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restores, "POINTS_MAX", 5)
    store.run(author, 40, 7, id="run")
    listed = len(store.checkpoints("run"))

    tried = try_points(store._opened)

    assert (7, listed - 6) == (tried.points, tried.left)


def test_a_class_that_is_not_known_is_no_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    holdfast.register(Note)
    store.run(noter, id="run")
    assert 3 == try_points(store._opened).points
    monkeypatch.setattr(registry, "_by_name", {})

    tried = try_points(store._opened)

    assert ([], 0, 3) == (tried.findings, tried.points, tried.unknown)
    assert tried.unread.startswith("run@")
    assert "which this program does not know" in tried.unread


@pytest.mark.parametrize("last", [0, 1, 6, 9])
@pytest.mark.parametrize("since", [0, 1, 2, 5, 9])
def test_a_point_of_a_newer_version_is_refused_and_the_newest_before_it_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, since: int, last: int
) -> None:
    monkeypatch.setattr(registry, "_by_name", {})
    monkeypatch.setattr(registry, "_by_class", {})
    holdfast.register(Note, version=2)
    store.run(late_noter, since, last, id="run")
    points = [point.id for point in store.checkpoints("run", every_turn=True)]
    holdfast.register(Note, version=1)

    if last < since:
        assert last == store.restore("run")[1]["turn"]
        return
    with pytest.raises(holdfast.NotStorable, match="newer than version 1") as caught:
        store.restore("run")

    assert (points[since - 1] if since else None) == caught.value.good
    if caught.value.good is not None:
        assert f"`holdfast show run --at {caught.value.good}`" in str(caught.value)
        assert since - 1 == store.restore(caught.value.good)[1]["turn"]
