"""Garbage collection as a user meets it: what goes, what stays and why, and that the rest works."""

import random
from pathlib import Path

import msgspec
import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine import restores
from holdfast.engine.handle import Store
from holdfast.engine.handle import open as open_store
from holdfast.engine.retain import MADE_OF_WHAT_STAYS, Collector
from holdfast.policy.retention import Retention
from holdfast.report.timeline import timeline
from holdfast.store.codec.values import registry
from holdfast.store.gc import objects, runs
from holdfast.store.verify import verify
from holdfast.testing.fakes import ManualClock

KEPT = Retention(last=3)
ALL_GO = Retention(runs_within=0.001)


def blob(number: int) -> str:
    """A text large enough to lie in a file of its own."""
    return f"{number:06d}" * 20_000


@holdfast.step
def think(turn: int) -> str:
    return f"thought {turn} " * 40


@holdfast.step
def write(turn: int) -> dict[str, str]:
    return {"text": think.bare(turn), "place": f"page {turn}"}


@holdfast.effect(key="turn")
def pay(turn: int) -> str:
    return f"paid {turn}"


@holdfast.agent(checkpoint=holdfast.every(turns=2))
def forgetful(run: holdfast.Run, turns: int) -> int:
    """Keeps its last thoughts only, and one large text that changes."""
    run.state.setdefault("thoughts", [])
    for turn in run.turns():
        run.state["thoughts"] = [*run.state["thoughts"][-2:], think(turn)]
        run.state["document"] = blob(turn // 5)
        if turn % 20 == 7:
            pay(turn)
        if turn + 1 == turns:
            return turn
    raise AssertionError


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def drafts(run: holdfast.Run, turns: int) -> int:
    """Writes one large text anew at every turn."""
    for turn in run.turns():
        think(turn)
        run.state["draft"] = random.Random(turn).randbytes(300_000).hex()  # noqa: S311 a seed
        if turn + 1 == turns:
            return turn
    raise AssertionError


@holdfast.agent(checkpoint=holdfast.every(turns=2))
def picky(run: holdfast.Run, turns: int) -> int:
    """Keeps one answer in three."""
    run.state["pages"] = []
    for turn in run.turns():
        page = write(turn)
        if turn % 3 == 0:
            run.state["pages"].append(page)
        if turn + 1 == turns:
            return turn
    raise AssertionError


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


def states(store: Store, run: str) -> dict[str, object]:
    return {each.id: store.restore(each.id)[1] for each in store.checkpoints(run)}


def files(store: Store) -> int:
    return sum(1 for path in (store.path / "objects").rglob("*") if path.is_file())


def effects(store: Store) -> list[tuple[str | None, str | None]]:
    """Keys and outcomes of the run's effects, as `show` tells them."""
    reader = store._opened.reader  # noqa: SLF001 a timeline is read without a handle
    run = reader.find("run")
    assert run is not None
    events = timeline(reader, run).events
    return [(event.key, event.value) for event in events if event.kind == "effect"]


def is_whole(store: Store) -> bool:
    return [] == verify(store._opened, deep=True).findings  # noqa: SLF001 no public way in yet


def test_old_checkpoints_go_and_what_is_kept_is_restored_as_it_was(store: Store) -> None:
    store.run(forgetful, 100, id="run")
    before = states(store, "run")
    newest = store.restore("run")[1]
    plan = store.plan_gc(KEPT)
    stay = [fate.id for fate in plan.checkpoints if fate.is_kept]

    done = store.gc(KEPT)

    assert 3 == sum(
        fate.is_kept and MADE_OF_WHAT_STAYS not in fate.why for fate in plan.checkpoints
    )
    assert plan.rows == done.rows > 30
    after = states(store, "run")
    assert set(stay) == set(after) < set(before)
    assert all(before[name] == state for name, state in after.items())
    assert newest == store.restore("run")[1]
    assert is_whole(store)
    assert store.plan_gc(KEPT).is_empty


def test_of_a_run_whose_rows_all_stay_no_checkpoint_is_said_to_go(store: Store) -> None:
    store.run(forgetful, 30, id="run")

    plan = store.plan_gc(KEPT)

    assert plan.is_empty
    assert [] == [fate.id for fate in plan.checkpoints if not fate.is_kept]
    assert {(MADE_OF_WHAT_STAYS,)} < {tuple(fate.why) for fate in plan.checkpoints}


def test_a_pruned_point_is_said_to_be_removed(store: Store) -> None:
    store.run(forgetful, 100, id="run")
    gone = {each.id for each in store.checkpoints("run")}
    store.gc(KEPT)
    gone -= {each.id for each in store.checkpoints("run")}

    for name in [*sorted(gone)[:3], "run@12"]:
        with pytest.raises(
            holdfast.UnknownCheckpoint, match=r"garbage collection removed|no check"
        ):
            store.restore(name)


def test_large_texts_of_a_short_run_go_at_once_and_few_are_left(store: Store) -> None:
    store.run(drafts, 30, id="run")
    before = states(store, "run")
    assert 30 == files(store)
    plan = store.plan_gc(KEPT)

    done = store.gc(KEPT)

    assert (plan.rows, plan.values) == (done.rows, done.values)
    assert done.values == 30 - files(store)
    assert files(store) < 10
    kept = states(store, "run")
    assert kept.keys() < before.keys()
    assert all(before[point] == state for point, state in kept.items())
    assert is_whole(store)
    assert store.plan_gc(KEPT).is_empty


def test_what_was_pruned_is_gone_for_a_handle_that_had_read_it(
    store: Store, tmp_path: Path
) -> None:
    store.run(drafts, 30, id="run")
    with open_store(tmp_path / "store") as other:
        before = states(other, "run")
        store.gc(KEPT)

        kept = states(other, "run")

    assert kept.keys() < before.keys()
    assert all(before[point] == state for point, state in kept.items())


def test_effects_are_never_pruned(store: Store) -> None:
    store.run(forgetful, 100, id="run")
    before = effects(store)

    assert store.gc(KEPT).rows > 30

    assert before == effects(store)
    assert [f"'paid {turn}'" for turn in (7, 27, 47, 67, 87)] == [value for _, value in before]


def test_large_values_that_nothing_names_go(store: Store) -> None:
    store.run(forgetful, 100, id="run")
    assert 20 == files(store)

    done = store.gc(KEPT)

    assert done.values == 20 - files(store) > 10
    assert is_whole(store)


def test_a_value_kept_but_not_yet_named_is_written_again_by_its_commit(store: Store) -> None:
    @holdfast.agent
    def collecting(run: holdfast.Run) -> str:
        for _turn in run.turns():
            run.state["document"] = blob(1)
            run.state["answer"] = produce()
            break
        run.state["document"] = blob(2)
        return "done"

    @holdfast.step
    def produce() -> str:
        # The state's own text is kept when the turn ends; here garbage goes in between.
        store.gc(KEPT)
        return blob(3)

    assert "done" == store.run(collecting, id="run")
    store.gc(KEPT)
    assert is_whole(store)
    assert blob(2) == store.restore("run")[1]["document"]


def test_a_value_that_is_named_between_the_marks_stays(store: Store) -> None:
    opened = store._opened  # noqa: SLF001 the moment between the marks is not public
    opened.chunks.keep(blob(5 // 5).encode())
    named = objects.Named(opened)
    garbage = objects.unnamed(opened, named)
    data = blob(0)

    @holdfast.agent
    def keeper(run: holdfast.Run) -> str:
        for _turn in run.turns():
            run.state["document"] = data
            break
        return "kept"

    assert 1 == len(garbage)
    store.run(keeper, id="run")
    late = objects.unnamed(opened, objects.Named(opened))
    assert garbage == late
    assert 2 == len(list(opened.objects.ids()))
    assert garbage == objects.remove(opened, named, list(opened.objects.ids()))
    assert is_whole(store)


def test_ended_runs_go_and_their_numbers_are_not_given_again(store: Store) -> None:
    for number in range(4):
        store.run(forgetful, 10, id=f"run-{number}")
    store.pin("run-0")
    rules = Retention(runs_last=1)
    plan = {fate.id: fate for fate in store.plan_gc(rules).runs}

    done = store.gc(rules)

    assert ["pinned"] == list(plan["run-0"].why)
    assert ["run-1", "run-2"] == list(done.runs)
    assert ["run-3", "run-0"] == [run.id for run in store.runs()]
    store.unpin("run-0")
    assert ["run-0"] == list(store.gc(rules).runs)
    store.run(forgetful, 10, id="new")
    assert store.get("new").branch > 4
    assert is_whole(store)


def test_a_run_that_a_fork_grows_from_stays(store: Store) -> None:
    store.run(forgetful, 10, id="parent")
    store.fork("parent", at="parent@3", new_id="child")

    plan = {fate.id: fate for fate in store.plan_gc(Retention(runs_last=1)).runs}

    assert "a fork grows from it" in plan["parent"].why
    assert "it has not ended: running" in plan["child"].why
    assert not store.gc(Retention(runs_last=1)).runs


def test_forks_and_rollbacks_go_on_beside_what_was_pruned(store: Store) -> None:
    store.run(forgetful, 100, id="run")
    store.fork("run", at="run@40", new_id="fork")
    state = store.restore("fork")[1]

    assert store.gc(Retention(last=1)).rows > 30
    assert state == store.restore("fork")[1]
    assert 99 == store.run(forgetful, 100, id="fork")
    store.plan_rollback("run", to=store.checkpoints("run")[-1].id).apply()
    assert store.gc(Retention(last=1)).rows > 10

    assert is_whole(store)
    assert store.restore("run")[1]
    assert store.restore("fork")[1]


@pytest.mark.parametrize("pinned", ["run", "fork"])
def test_of_a_pinned_run_every_checkpoint_and_turn_stays_until_it_is_unpinned(
    store: Store, pinned: str
) -> None:
    store.run(forgetful, 60, id="run")
    store.fork("run", at=40, new_id="fork")
    store.run(forgetful, id="fork")
    turns = [each.id for each in store.checkpoints(pinned, every_turn=True)]
    before = {id_: store.restore(id_)[1] for id_ in turns}
    store.pin(pinned)

    plan = store.plan_gc(KEPT)
    store.gc(KEPT)

    marked = {each.id for each in store.checkpoints(pinned)}
    fates = {fate.id: fate.why for fate in plan.checkpoints if fate.id in marked}
    assert len(fates) > 20
    assert all("its run is pinned" in why for why in fates.values())
    assert before == {id_: store.restore(id_)[1] for id_ in turns}
    assert is_whole(store)

    store.unpin(pinned)
    assert store.gc(KEPT).rows > 0


def test_a_pinned_checkpoint_stays_and_restores(store: Store) -> None:
    store.run(forgetful, 100, id="run")
    chosen = store.checkpoints("run")[4].id
    state = store.restore(chosen)[1]
    store.pin(chosen)

    store.gc(Retention(last=1))

    assert state == store.restore(chosen)[1]
    assert is_whole(store)


def test_what_is_kept_is_listed_and_stays_however_often_garbage_is_collected(store: Store) -> None:
    store.run(picky, 400, id="run")
    chosen = store.checkpoints("run")[100].id
    store.pin(chosen)
    known = states(store, "run")

    for _ in range(3):
        store.gc(Retention(last=2))
        kept = states(store, "run")

        assert {chosen, *list(known)[-2:]} <= set(kept)
        assert kept.items() <= known.items()
    assert [] == restores.try_points(store._opened).findings  # noqa: SLF001


@pytest.mark.parametrize("turn", [34, 99])
def test_a_pinned_turn_stays_that_is_no_checkpoint(store: Store, turn: int) -> None:
    store.run(picky, 100, id="run")
    pinned, state = store.restore(f"run@{turn}")
    assert pinned.root is None
    store.pin(pinned.id)

    plan = store.plan_gc(Retention(last=2))
    store.plan_rollback("run", to=50).apply()
    store.run(picky, 100, id="run")
    store.gc(Retention(last=2))

    assert ["pinned"] == [
        why for fate in plan.checkpoints if fate.id == pinned.id for why in fate.why
    ]
    assert state == store.restore(pinned.id)[1]


def test_what_a_rollback_left_stays_when_it_was_no_checkpoint(store: Store) -> None:
    store.run(picky, 100, id="run")
    newest, state = store.restore("run")

    store.plan_rollback("run", to=50).apply()
    store.run(picky, 100, id="run")
    for _ in range(2):
        store.gc(Retention(last=2))

    assert newest.root is None
    assert state == store.restore(newest.id)[1]


def test_a_damaged_store_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        store.run(forgetful, 30, id="run")
    victim = next(path for path in (tmp_path / "store" / "objects").rglob("*") if path.is_file())
    victim.write_bytes(b"damage")

    with open_store(tmp_path / "store") as store:
        with pytest.raises(holdfast.Damaged, match="garbage is not collected in a damaged store"):
            store.gc(KEPT)
        assert victim.exists()


def test_an_unfinished_run_goes_on_after_garbage_was_collected(store: Store) -> None:
    class Stop(BaseException):
        pass

    turns = 60
    is_stopping = True

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def stopping(run: holdfast.Run) -> list[str]:
        run.state.setdefault("thoughts", [])
        for turn in run.turns():
            run.state["thoughts"] = [*run.state["thoughts"][-3:], think(turn)]
            if turn == turns - 2 and is_stopping:
                raise Stop
            if turn + 1 == turns:
                return list(run.state["thoughts"])
        raise AssertionError

    with pytest.raises(Stop):
        store.run(stopping, id="run")
    assert store.gc(Retention(last=2)).rows > 10
    is_stopping = False

    assert [think.bare(turn) for turn in range(56, 60)] == store.run(stopping, id="run")
    assert is_whole(store)


def test_rows_that_the_kept_state_still_names_stay_however_old(store: Store) -> None:
    @holdfast.agent(checkpoint=holdfast.every(turns=2))
    def keeper(run: holdfast.Run) -> int:
        run.state["notes"] = {}
        for turn in run.turns():
            run.state["turn"] = think(turn)
            if turn < 20:
                note = random.Random(turn).randbytes(3000).hex()  # noqa: S311 a seed
                run.state["notes"][f"note {turn}"] = note
            if turn == 99:
                break
        return turn

    store.run(keeper, id="run")
    before = store.restore("run")[1]

    assert store.gc(Retention(last=1)).rows > 30

    assert before == store.restore("run")[1]
    assert is_whole(store)


def test_an_answer_that_stands_inside_what_the_agent_made_stays(store: Store) -> None:
    @holdfast.agent
    def keeper(run: holdfast.Run) -> int:
        run.state["messages"] = []
        for turn in run.turns():
            run.state["messages"].append({"turn": turn, "reply": write(turn)})
            run.state["draft"] = random.Random(turn).randbytes(3000).hex()  # noqa: S311 a seed
            if turn == 99:
                break
        return turn

    store.run(keeper, id="run")
    before = store.restore("run")[1]

    store.gc(Retention(last=1))

    assert before == store.restore("run")[1]
    assert is_whole(store)


def test_a_run_of_many_loops_goes_on_after_garbage_was_collected(store: Store) -> None:
    is_broken = True

    @holdfast.agent
    def looping(run: holdfast.Run) -> list[int]:
        counts = []
        for loop in range(3):
            for turn in run.turns():
                run.state[f"note {loop}"] = write(turn)
                run.state["draft"] = random.Random(turn).randbytes(3000).hex()  # noqa: S311 a seed
                if turn % 40 == 39:
                    break
            counts.append(len(run.state))
            if loop == 2 and is_broken:
                raise RuntimeError
        return counts

    with pytest.raises(holdfast.RunFailed):
        store.run(looping, id="run")
    assert store.gc(Retention(last=1)).rows > 30

    is_broken = False
    assert [2, 3, 4] == store.restart("run", agent=looping)
    assert is_whole(store)


def test_nothing_goes_of_a_run_that_somebody_took_up_since_it_was_judged(store: Store) -> None:
    store.run(forgetful, 60, id="run")
    opened = store.opened
    run = opened.reader.find("run")
    assert run is not None
    collector = Collector(opened, KEPT, SystemClock().now())
    whole = Collector(opened, ALL_GO, SystemClock().now() + 9)
    before = states(store, "run")

    with open_store(store.path) as other:
        assert other.opened.leases.take(run.row.no)  # To roll it back, say, or to fork it.
        fate = next(iter(store.plan_gc(ALL_GO).runs))
        assert "a process works on it" in fate.why
        assert not runs.remove(opened, [run])
        assert 0 == collector.collect().rows
        assert [] == whole.collect().runs
        other.opened.leases.give(run.row.no)
    store.plan_rollback("run", to=next(iter(before))).apply()
    late = collector.collect()

    assert (0, ["run"]) == (late.rows, list(dict.fromkeys(late.passed_over)))
    assert before == {point: store.restore(point)[1] for point in before}


def test_a_quota_lets_the_oldest_ended_runs_go(store: Store) -> None:
    for number in range(5):
        store.run(forgetful, 40, id=f"run-{number}")

    assert ["run-0"] == list(store.gc(Retention(quota=_used(store) - 1)).runs)
    assert [] == list(store.gc(Retention(quota=10 * _used(store))).runs)


def _used(store: Store) -> int:
    return sum(path.stat().st_size for path in store.path.rglob("*") if path.is_file())


def test_garbage_is_collected_at_close_where_the_store_was_opened_with_rules(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    rules = Retention(runs_last=1)
    for number in range(3):
        with open_store(tmp_path / "store", retention=rules, clock=clock) as store:
            store.run(forgetful, 5, id=f"run-{number}")
    with open_store(tmp_path / "store", clock=clock) as store:
        assert 3 == len(store.runs()), "not twice within the hour"

    clock.advance(3601)
    open_store(tmp_path / "store", retention=rules, clock=clock).close()

    with open_store(tmp_path / "store", clock=clock) as store:
        assert ["run-2"] == [run.id for run in store.runs()]
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


def test_a_clock_that_was_set_back_does_not_put_off_the_next_collection(tmp_path: Path) -> None:
    rules, ahead = Retention(runs_last=1), ManualClock()
    open_store(tmp_path / "store", retention=rules, clock=ahead).close()

    with open_store(tmp_path / "store", retention=rules, clock=ManualClock(now=1.0)) as store:
        for number in range(2):
            store.run(forgetful, 5, id=f"run-{number}")

    with open_store(tmp_path / "store") as store:
        assert ["run-1"] == [run.id for run in store.runs()]


def test_what_goes_wrong_in_a_collection_at_close_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_store(tmp_path / "store") as store:
        store.run(forgetful, 10, id="run")
    victim = next(path for path in (tmp_path / "store" / "objects").rglob("*") if path.is_file())
    victim.write_bytes(b"damage")

    open_store(tmp_path / "store", retention=KEPT).close()

    assert "garbage was not collected" in caplog.text


class Note(msgspec.Struct):
    text: str


@holdfast.agent
def noter(run: holdfast.Run) -> None:
    for turn in run.turns():
        run.state["note"] = Note(f"note {turn}")
        if turn == 5:
            return


def test_a_store_closes_that_holds_classes_this_program_does_not_know(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holdfast.register(Note)
    store.run(noter, id="run")
    monkeypatch.setattr(registry, "_by_name", {})

    open_store(tmp_path / "store", retention=KEPT).close()

    kept = [fate.why[-1] for fate in store.plan_gc(KEPT).checkpoints if fate.is_kept]
    assert ["second newest that verifies", "newest that verifies"] == kept[-2:]


def test_what_is_left_takes_little_more_than_a_fresh_copy_of_it(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        for number in range(24):
            store.run(forgetful, 60, id=f"run-{number}")
        before = _used(store)
        store.gc(Retention(last=2, runs_last=4))
    with open_store(tmp_path / "fresh") as fresh:
        for number in range(20, 24):
            fresh.run(forgetful, 60, id=f"run-{number}")
        fresh.gc(Retention(last=2))

    with open_store(tmp_path / "store") as store, open_store(tmp_path / "fresh") as fresh:
        assert 4 == len(store.runs())
        assert _database(store) <= 1.1 * _database(fresh) < before / 4


def _database(store: Store) -> int:
    """Bytes of what lies on the disk, but for the log, which has a length of its own."""
    return sum(
        path.stat().st_size
        for path in store.path.rglob("*")
        if path.is_file() and path.name not in ("store.db-wal", "store.db-shm", "beats")
    )
