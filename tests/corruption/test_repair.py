"""Repair: what is true stays and goes on, what is not is moved aside, nothing is made up."""

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine.restores import try_points
from holdfast.model.ids import row_id
from holdfast.store.open import open_store
from holdfast.store.repair import rebuild
from holdfast.store.verify import verify
from tests.corruption.scene import Crash, Scene, keeper, place, small_parts
from tests.corruption.test_findings import change, page_of, store_id
from tests.corruption.test_offer import newest_object, spoil
from tests.corruption.trial import Contents, contents

Harm = Callable[[Path], None]


@pytest.fixture(scope="session")
def known(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """What the store told before it was damaged."""
    return contents(Path(shutil.copytree(scene.closed, tmp_path_factory.mktemp("known") / "store")))


def sql(statement: str, *values: Any) -> Harm:  # noqa: ANN401 what SQLite takes
    def harm(path: Path) -> None:
        with closing(sqlite3.connect(path / "store.db")) as link, link:
            assert link.execute(statement, values).rowcount

    return harm


def bad_row(branch: int, seq: int) -> Harm:
    return lambda path: spoil(path, branch, seq)


def bad_object(path: Path) -> None:
    file = newest_object(path)
    file.write_bytes(file.read_bytes()[:-1])


def no_object(path: Path) -> None:
    newest_object(path).unlink()


def bad_heads(path: Path) -> None:
    (path / "heads").write_bytes(bytes(range(256)) * 2)


def torn_page(name: str) -> Harm:
    def harm(path: Path) -> None:
        start = page_of(path, name)
        with (path / "store.db").open("r+b") as file:
            file.seek(start)
            file.write(b"\xff" * 4096)

    return harm


def bad_id(path: Path) -> None:
    id_ = store_id(path)
    change(path, page_of(path, "meta"), id_, bytes([id_[0] ^ 16]) + id_[1:])


def bad_index(path: Path) -> None:
    with closing(sqlite3.connect(path / "store.db")) as link:
        kid = link.execute("SELECT kid FROM run WHERE no=1").fetchone()[0]
    index = page_of(path, "sqlite_autoindex_run_1")
    change(path, index, kid, bytes([kid[0] ^ 1]) + kid[1:])


SPOIL_FIRST_PACK = """UPDATE pack SET body=zeroblob(99)
    WHERE id=(SELECT min(id) FROM pack WHERE id>>32=1)"""
SPOIL_LAST_PACK = """UPDATE pack SET body=zeroblob(99)
    WHERE id=(SELECT max(id) FROM pack WHERE id>>32=1)"""
LOSE_LAST_PACK = "DELETE FROM pack WHERE id=(SELECT max(id) FROM pack WHERE id>>32=1)"

HARMS: dict[str, tuple[Harm, set[str]]] = {
    "a row in the middle": (bad_row(1, 8), {"packed"}),
    "a row at the end": (bad_row(1, 23), {"packed"}),
    "the first row": (bad_row(1, 0), {"packed"}),
    "a loose row": (bad_row(4, 12), {"branched"}),
    "a row of an old branch": (bad_row(3, 12), {"branched"}),
    "a row that branches grew from": (bad_row(2, 10), {"branched"}),
    "a lost row": (sql("DELETE FROM j WHERE id=?", row_id(4, 12)), {"branched"}),
    "a lost last row": (sql("DELETE FROM j WHERE id=?", row_id(4, 13)), {"branched"}),
    "a bad pack": (sql(SPOIL_FIRST_PACK), {"packed"}),
    "a lost pack": (sql(LOSE_LAST_PACK), {"packed"}),
    "a bad object": (bad_object, {"large"}),
    "a missing object": (no_object, {"large"}),
    "a catalog row's hash": (sql("UPDATE run SET mac=zeroblob(32) WHERE no=1"), {"packed"}),
    "a catalog row's entry": (sql("UPDATE run SET body=zeroblob(90) WHERE no=1"), {"packed"}),
    "a catalog row's head": (sql("UPDATE run SET head=3 WHERE no=2"), {"branched"}),
    "a lost catalog row": (sql("DELETE FROM run WHERE no=3"), {"large"}),
    "a branch's hash": (sql("UPDATE branch SET mac=zeroblob(32) WHERE no=4"), {"branched"}),
    "a branch's run": (sql("UPDATE branch SET run=1 WHERE no=4"), {"branched"}),
    "a lost branch": (sql("DELETE FROM branch WHERE no=1"), {"packed"}),
    "a lost old branch": (sql("DELETE FROM branch WHERE no=3"), {"branched"}),
    "an index": (bad_index, set()),
    "a lost intent": (sql("DELETE FROM effect WHERE run=1"), set()),
    "a stray intent": (sql("INSERT INTO effect VALUES (1, 'x', 7)"), set()),
    "stray rows": (sql("INSERT INTO j VALUES (?, zeroblob(32), zeroblob(9))", 99 << 32), set()),
    "the head note": (bad_heads, set()),
    "a page of the journal": (torn_page("j"), {"packed", "branched"}),
    "a page of the packs": (torn_page("pack"), {"packed", "branched", "large"}),
    "a page of the catalog": (torn_page("run"), {"packed", "branched", "large"}),
    "a page of the branches": (torn_page("branch"), set()),
    "a page of an index": (torn_page("branch_run"), set()),
    "a page of the intents": (torn_page("effect"), set()),
    "a bit of the store's id": (bad_id, set()),
}
"""What is damaged → how, and which runs may lose something by it."""


def whole(path: Path) -> list[str]:
    opened = open_store(path, SystemClock(), must_exist=True)
    try:
        found = [*verify(opened, deep=True).findings, *try_points(opened).findings]
        return [f"{each.where}: {each.why}" for each in found]
    finally:
        opened.close()


@pytest.mark.parametrize("what", HARMS)
def test_a_repaired_store_is_whole_and_what_it_restores_is_true(
    path: Path, known: Contents, what: str
) -> None:
    harm, hurt = HARMS[what]
    harm(path)

    plan = holdfast.plan_repair(path)
    into = plan.apply()

    assert [] == whole(path)
    states = [state for _, state in known.points.values()]
    with holdfast.open(path) as store:
        for run in known.runs.keys() - hurt:
            assert known.runs[run] == store.get(run)
        for id_, point in known.points.items():
            if point[0].run not in hurt:
                assert point == store.restore(id_)
        for fate in plan.fates:
            assert fate.run in hurt or fate.run.startswith("lost-")
            if fate.point is not None:
                assert store.restore(fate.point)[1] in states
        for info in store.runs():
            for told in store.checkpoints(info.id, every_turn=True):
                assert store.restore(told.id)[1] in states
    assert plan.is_needed is (into is not None)
    assert into is None or (into / "store.db").exists()
    assert holdfast.plan_repair(path).is_needed is False


@pytest.mark.parametrize("what", HARMS)
def test_a_plan_changes_nothing(path: Path, what: str) -> None:
    HARMS[what][0](path)
    before = {file: file.read_bytes() for file in files(path)}

    holdfast.plan_repair(path)

    assert before == {file: file.read_bytes() for file in files(path)}


def files(path: Path) -> Iterator[Path]:
    """The files of a store that hold work; the others are of whoever has it open."""
    found = (file for file in sorted(path.rglob("*")) if file.is_file())
    return (file for file in found if file.name not in {"beats", "lock"})


def test_the_newest_state_behind_a_bad_row_is_kept_and_the_result_too(
    path: Path, known: Contents
) -> None:
    with holdfast.open(path) as store:
        result = store.run(keeper, "packed", 6, id="packed")
        end = store.restore("packed")[1]
    spoil(path, 1, 3)

    [fate] = holdfast.plan_repair(path).fates
    holdfast.plan_repair(path).apply()

    assert ("carried", "packed", holdfast.Status.FINISHED) == (fate.act, fate.run, fate.status)
    with holdfast.open(path) as store:
        assert end == store.restore("packed")[1]
        assert result == store.run(keeper, "packed", 6, id="packed")
    assert known.runs["packed"].status is holdfast.Status.FINISHED


def test_a_run_whose_effects_may_be_forgotten_waits_for_a_person(path: Path) -> None:
    sql(SPOIL_LAST_PACK)(path)

    [fate] = holdfast.plan_repair(path).fates
    holdfast.plan_repair(path).apply()

    assert "cut" == fate.act
    assert ["one that cannot be read"] * 4 == fate.effects_unsure
    with holdfast.open(path) as store:
        with pytest.raises(holdfast.RunFailed, match="holdfast restart packed"):
            store.run(keeper, "packed", 6, id="packed")
        assert 7 == len(store.restart("packed", agent=keeper))
    assert [] == whole(path)


def test_effects_behind_a_cut_are_told_by_what_their_records_say(tmp_path: Path) -> None:
    @holdfast.agent
    def buyer(run: holdfast.Run) -> None:
        for turn in run.turns():
            place(f"lost {turn}" if turn == 2 else f"order {turn}")

    with holdfast.open(tmp_path) as store, pytest.raises(Crash):
        store.run(buyer, id="run")
    spoil(tmp_path, 1, 1)

    [fate] = holdfast.plan_repair(tmp_path).fates
    holdfast.plan_repair(tmp_path).apply()

    assert "cut" == fate.act
    assert ["place(order='order 1')"] == fate.effects_done
    assert ["place(order='lost 2')", "one that cannot be read"] == fate.effects_unsure
    with holdfast.open(tmp_path) as store:
        told = (
            r"done after what is left: place\(order='order 1'\); of these effects it is not known"
        )
        with pytest.raises(holdfast.RunFailed, match=told):
            store.run(buyer, id="run")
    assert [] == whole(tmp_path)


def test_a_run_whose_newest_branch_cannot_be_placed_waits_for_a_person(tmp_path: Path) -> None:
    lives = [0]

    @holdfast.effect(key="n")
    def pay(n: int) -> int:
        return n

    @holdfast.agent(checkpoint=holdfast.every(turns=1))
    def payer(run: holdfast.Run) -> int:
        for turn in run.turns():
            pay(100 * lives[0] + turn)
            if turn == 6:
                return turn
        raise AssertionError

    with holdfast.open(tmp_path) as store:
        store.run(payer, id="one")
        third = store.checkpoints("one")[3]
        store.plan_rollback("one", to=third).apply()
        lives[0] = 1
        store.restart("one", agent=payer)
    with closing(sqlite3.connect(tmp_path / "store.db")) as link, link:
        assert link.execute("DELETE FROM branch").rowcount > 1
    spoil(tmp_path, 1, 4)

    plan = holdfast.plan_repair(tmp_path)
    plan.apply()

    assert not holdfast.plan_repair(tmp_path).is_needed
    with holdfast.open(tmp_path) as store:
        found = store.get("one")
        assert "failed" == found.status
        assert "of these effects it is not known whether they are done" in str(found.error)


def test_what_the_log_lost_is_told_and_the_rest_goes_on(scene: Scene, tmp_path: Path) -> None:
    path = Path(shutil.copytree(scene.killed, tmp_path / "store"))
    (path / "store.db-wal").unlink()
    (path / "tail").unlink()
    with pytest.raises(holdfast.Damaged, match="acknowledged rows are missing"):
        holdfast.open(path)

    plan = holdfast.plan_repair(path)
    plan.apply()

    assert [] == whole(path)
    assert {"young"} == {fate.run for fate in plan.fates} or plan.strays
    with holdfast.open(path) as store:
        for fate in plan.fates:
            assert holdfast.Status.FAILED is store.get(fate.run).status


def test_a_healthy_store_is_left_alone(path: Path) -> None:
    before = {file: file.read_bytes() for file in files(path)}

    plan = holdfast.plan_repair(path)

    assert (False, [], None) == (plan.is_needed, plan.fates, plan.apply())
    assert before == {file: file.read_bytes() for file in files(path)}


def test_a_store_that_somebody_has_open_is_not_repaired(path: Path) -> None:
    spoil(path, 1, 8)
    plan = holdfast.plan_repair(path)

    with holdfast.open(path), pytest.raises(holdfast.StoreBusy):
        plan.apply()

    assert not (path / "lost").exists()
    assert plan.apply() is not None


def test_a_store_with_a_run_under_way_is_not_repaired(path: Path) -> None:
    spoil(path, 1, 8)
    plan = holdfast.plan_repair(path)
    opened = open_store(path, SystemClock(), must_be_whole=False)

    assert opened.leases.take(2)
    with pytest.raises(holdfast.RunHeld, match="branched"):
        plan.apply()
    opened.close()

    assert not (path / "lost").exists()


def test_a_store_that_changed_since_it_was_planned_is_not_repaired(path: Path) -> None:
    spoil(path, 1, 8)
    plan = holdfast.plan_repair(path)
    with holdfast.open(path) as store:
        store.run(keeper, "new", 1, id="new")

    with pytest.raises(holdfast.StoreChanged):
        plan.apply()

    holdfast.plan_repair(path).apply()
    with holdfast.open(path) as store:
        assert holdfast.Status.FINISHED is store.get("new").status


def test_a_file_that_is_no_database_cannot_be_repaired_and_says_so(path: Path) -> None:
    (path / "store.db").write_bytes(b"no database at all" * 500)

    with pytest.raises(holdfast.Damaged, match=r"store\.db"):
        holdfast.plan_repair(path)


def test_a_repaired_run_goes_on_and_can_be_damaged_and_repaired_again(path: Path) -> None:
    spoil(path, 4, 12)
    holdfast.plan_repair(path).apply()
    with holdfast.open(path) as store:
        with pytest.raises(holdfast.RunFailed):
            store.restart("branched", agent=keeper)
        known = store.restore("branched")[1]
        head = store.get("branched").branch
    spoil(path, head, 12)

    holdfast.plan_repair(path).apply()

    assert [] == whole(path)
    assert 2 == len(list((path / "lost").iterdir()))
    with holdfast.open(path) as store:
        assert known == store.restore("branched")[1]


def test_an_encrypted_store_is_repaired_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_TEST_KEY", "6b656c70" * 8)
    key = "env:HOLDFAST_TEST_KEY"
    with small_parts(), holdfast.open(tmp_path, key=key) as store:
        store.run(keeper, "one", 6, id="one")
        store.run(keeper, "two", 6, id="two")
        known = {
            point.id: store.restore(point)[1]
            for run in ("one", "two")
            for point in store.checkpoints(run, every_turn=True)
        }
    with closing(sqlite3.connect(tmp_path / "store.db")) as link, link:
        last = link.execute("SELECT max(id) FROM pack WHERE id>>32=1").fetchone()
        link.execute("UPDATE pack SET body=zeroblob(400) WHERE id=?", last)

    plan = holdfast.plan_repair(tmp_path, key=key)
    plan.apply()

    assert ["one"] == [fate.run for fate in plan.fates]
    with holdfast.open(tmp_path, key=key) as store:
        for id_, state in known.items():
            if id_.startswith("two"):
                assert state == store.restore(id_)[1]
        assert store.restore("one")[1] in known.values()
        assert 7 == len(store.restart("one", agent=keeper))
    assert not holdfast.plan_repair(tmp_path, key=key).is_needed


@holdfast.step
def noise(turn: int) -> str:
    return random.Random(turn).randbytes(2000).hex()  # noqa: S311 bytes that do not shrink


@holdfast.agent
def noisy(run: holdfast.Run, turns: int) -> int:
    for turn in run.turns():
        run.state["noise"] = noise(turn)
        if turn == turns:
            return turn
    raise AssertionError


@holdfast.agent
def laden(run: holdfast.Run, turns: int) -> int:
    run.state["large"] = ""
    for turn in run.turns():
        run.state["noise"] = noise(turn)
        if turn == 2:
            run.state["large"] = noise(turn) * 100
        if turn == turns:
            return turn
    raise AssertionError


def test_a_run_of_which_nothing_restores_any_more_says_so(tmp_path: Path) -> None:
    with holdfast.open(tmp_path) as store:
        store.run(laden, 60, id="one")
        assert store.gc(holdfast.Retention(last=2)).rows
    newest_object(tmp_path).unlink()

    holdfast.plan_repair(tmp_path).apply()

    assert [] == whole(tmp_path)
    assert not holdfast.plan_repair(tmp_path).is_needed
    with holdfast.open(tmp_path) as store:
        assert [] == store.checkpoints("one", every_turn=True)
        found = store.get("one")
    assert holdfast.Status.FAILED is found.status
    assert "nothing is left that it could go on from" in str(found.error)
    assert "holdfast restart" not in str(found.error)


@holdfast.agent(checkpoint=holdfast.every(turns=2))
def talker(run: holdfast.Run, turns: int) -> int:
    run.state["said"] = []
    for turn in run.turns():
        run.state["said"].append({"turn": turn, "noise": noise(turn)})
        if turn == turns:
            return turn
    raise AssertionError


def test_a_repair_of_a_pruned_run_names_no_point_that_was_pruned_away(tmp_path: Path) -> None:
    with holdfast.open(tmp_path) as store:
        store.run(talker, 140, id="one")
        assert store.gc(holdfast.Retention(last=2)).rows
    with closing(sqlite3.connect(tmp_path / "store.db")) as link, link:
        [_, (second,), *_] = link.execute("SELECT id FROM pack ORDER BY id").fetchall()
        link.execute("UPDATE pack SET body=zeroblob(40) WHERE id=?", (second,))

    plan = holdfast.plan_repair(tmp_path)
    plan.apply()

    [fate] = plan.fates
    with holdfast.open(tmp_path) as store:
        assert [] == store.checkpoints("one", every_turn=True)
    assert fate.point is None


@pytest.mark.parametrize("key", ["", "env:HOLDFAST_TEST_KEY"])
def test_packs_beside_one_with_an_unreadable_page_are_kept_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("HOLDFAST_TEST_KEY", "6b656c70" * 8)
    with holdfast.open(tmp_path, key=key) as store:
        store.run(noisy, 60, id="one")
        points = [point.id for point in store.checkpoints("one", every_turn=True)]
    with closing(sqlite3.connect(tmp_path / "store.db")) as link:
        (before,), (_, _, body) = (
            link.execute("SELECT id FROM pack ORDER BY id").fetchone(),
            link.execute("SELECT * FROM pack ORDER BY id LIMIT 1 OFFSET 1").fetchone(),
        )
    database = (tmp_path / "store.db").read_bytes()
    page = database.index(body[9000:9064]) // 4096 * 4096
    with (tmp_path / "store.db").open("r+b") as file:
        file.seek(page)
        file.write(bytes(4096))

    plan = holdfast.plan_repair(tmp_path, key=key or None)
    plan.apply()

    assert not holdfast.plan_repair(tmp_path, key=key or None).is_needed
    with closing(sqlite3.connect(tmp_path / "store.db")) as link:
        assert [(before,)] == link.execute("SELECT min(id) FROM pack").fetchall()
    with holdfast.open(tmp_path, key=key) as store:
        kept = [point.id for point in store.checkpoints("one", every_turn=True)]
        assert points[:10] == kept[:10]


def test_a_repair_keeps_the_index_of_effects_that_forks_and_children_share(tmp_path: Path) -> None:
    done: list[int] = []

    @holdfast.effect(key="n")
    def send(n: int) -> int:
        done.append(n)
        return n

    @holdfast.agent
    def child(run: holdfast.Run, n: int) -> int:  # noqa: ARG001 it needs none of it
        return send(n)

    @holdfast.agent
    def sender(run: holdfast.Run) -> None:
        for turn in run.turns():
            send(turn)
            run.child(child, 10 + turn, id=f"{run.id}-{turn}")
            if turn == run.state.get("last", 2):
                return

    path = tmp_path / "store"
    with holdfast.open(path) as store:
        store.run(sender, id="victim")
        store.run(sender, id="root")
        store.fork("root", at=1, new_id="fork", state={"last": 4})
        store.run(sender, id="fork")
    spoil(path, 1, 1)

    holdfast.plan_repair(path).apply()

    assert [] == whole(path)
    before = list(done)
    with holdfast.open(path) as store:
        store.fork("root", at=0, new_id="again", state={"last": 4})
        store.run(sender, id="again")
    assert before == done  # The fence knows all that the others did.


def test_a_bad_pack_that_was_read_does_not_keep_the_database_open(path: Path) -> None:
    with closing(sqlite3.connect(path / "store.db")) as link, link:
        ((first, last),) = link.execute("SELECT min(first), max(id) FROM pack WHERE id >> 32 = 1")
        link.execute("UPDATE pack SET body=zeroblob(99)")
    opened = open_store(path, SystemClock(), must_be_whole=False)

    with pytest.raises(holdfast.Damaged) as found:
        opened.records.rows(first, last)
    opened.close()

    assert found.value.__traceback__ is not None  # It holds what was being read.
    with rebuild.alone(path, SystemClock()):
        pass
