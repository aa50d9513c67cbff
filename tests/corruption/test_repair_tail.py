"""Repair of a killed store whose newest rows stand in its tail: those that are sound are kept."""

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.model.ids import branch_of, seq_of
from holdfast.store.backends import slots
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.tail import NAME as TAIL
from holdfast.store.open import open_store
from holdfast.store.repair import rebuild
from holdfast.store.verify import verify
from tests.corruption.scene import Crash, Scene, small_parts, think
from tests.corruption.test_offer import spoil
from tests.corruption.test_repair import sql, whole
from tests.corruption.trial import Contents, contents
from tests.unit.store.builders import seed_of

Harm = Callable[[Path, Contents], None]


def tail_rows(path: Path) -> list[JournalRow]:
    """The rows that stand in the tail and nowhere else."""
    data, seed = (path / TAIL).read_bytes(), seed_of(path)
    return slots.read(data, seed, slots.newest(data, seed)).rows


def flip(path: Path, row: JournalRow) -> None:
    """Change a bit of a row that stands in the tail."""
    data = bytearray((path / TAIL).read_bytes())
    data[data.index(row.body) + len(row.body) // 2] ^= 1
    (path / TAIL).write_bytes(data)


def bad_record(run: str, nth: int) -> Harm:
    def harm(path: Path, known: Contents) -> None:
        branch = known.runs[run].branch
        flip(path, [row for row in tail_rows(path) if branch_of(row.id) == branch][nth])

    return harm


def bad_row(run: str, seq: int) -> Harm:
    return lambda path, known: spoil(path, known.runs[run].branch, seq)


def both(*harms: Harm) -> Harm:
    def harm(path: Path, known: Contents) -> None:
        for each in harms:
            each(path, known)

    return harm


def in_database(statement: str) -> Harm:
    return lambda path, _: sql(statement)(path)


HARMS: dict[str, tuple[Harm, dict[str, int]]] = {
    "a record in the middle": (bad_record("pensive", 0), {"pensive": 2}),
    "a record between those of one run": (bad_record("pensive", 1), {"pensive": 3}),
    "the last record of a run": (bad_record("pensive", -1), {"pensive": 4}),
    "two records": (
        both(bad_record("pensive", 1), bad_record("musing", 0)),
        {"pensive": 3, "musing": 2},
    ),
    "the tail and the database": (
        both(bad_record("pensive", 1), bad_row("packed", 3)),
        {"pensive": 3, "packed": 0},
    ),
    "the tail and the database, of one run": (
        both(bad_record("pensive", 1), bad_row("pensive", 1)),
        {"pensive": 1},
    ),
    "only the database": (bad_row("packed", 3), {"packed": 0}),
    "only the database, of a run in the tail": (bad_row("musing", 1), {"musing": 1}),
    "an index of the database": (in_database("DELETE FROM effect WHERE run=1"), {}),
    "the generation": (in_database("UPDATE meta SET value=zeroblob(12) WHERE key='tail'"), {}),
    "a lost generation": (in_database("DELETE FROM meta WHERE key='tail'"), {}),
}
"""What is damaged → how, and which runs may lose something by it, from which row on."""


@pytest.fixture
def path(scene: Scene, tmp_path: Path) -> Path:
    """A copy of the killed store, to be damaged."""
    return Path(shutil.copytree(scene.killed, tmp_path / "store"))


@pytest.fixture(scope="session")
def known(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """What the killed store told before it was damaged."""
    return contents(Path(shutil.copytree(scene.killed, tmp_path_factory.mktemp("known") / "store")))


def journal(path: Path, rows: list[JournalRow]) -> list[JournalRow]:
    """These rows, as the store has them."""
    with contextlib.closing(open_store(path, SystemClock(), must_be_whole=False)) as opened:
        return [found for row in rows for found in opened.records.rows(row.id, row.id)]


@pytest.mark.parametrize("what", HARMS)
def test_rows_of_the_tail_are_kept_that_are_true(path: Path, known: Contents, what: str) -> None:
    harm, hurt = HARMS[what]
    first_lost = {known.runs[run].branch: seq for run, seq in hurt.items()}
    rows = tail_rows(path)
    kept = [row for row in rows if seq_of(row.id) < first_lost.get(branch_of(row.id), 99)]
    harm(path, known)
    tail = (path / TAIL).read_bytes()

    plan = holdfast.plan_repair(path)
    into = plan.apply()

    assert kept
    assert kept == journal(path, kept)
    assert hurt.keys() == {fate.run for fate in plan.fates}
    assert into is not None
    assert tail == (into / TAIL).read_bytes()
    assert not (path / TAIL).exists()
    assert [] == whole(path)
    assert not holdfast.plan_repair(path).is_needed
    after = contents(path)
    for run in known.runs.keys() - hurt:
        assert known.runs[run] == after.runs[run]
    for id_, point in known.points.items():
        assert point[0].run in hurt or point == after.points[id_]
    states = [state for _, state in known.points.values()]
    assert all(state in states for _, state in after.points.values())


@pytest.mark.parametrize("what", HARMS)
def test_a_plan_leaves_the_tail_as_it_is(path: Path, known: Contents, what: str) -> None:
    HARMS[what][0](path, known)
    before = (path / TAIL).read_bytes(), (path / "heads").read_bytes()

    assert holdfast.plan_repair(path).is_needed

    assert before == ((path / TAIL).read_bytes(), (path / "heads").read_bytes())


def test_rows_whose_beginning_the_log_has_lost_are_moved_aside(path: Path, known: Contents) -> None:
    rows, tail = tail_rows(path), (path / TAIL).read_bytes()
    (path / "store.db-wal").unlink()
    with pytest.raises(holdfast.Damaged, match="tail of the journal"):
        holdfast.open(path)

    plan = holdfast.plan_repair(path)
    into = plan.apply()

    assert [] == whole(path)
    for run in ("musing", "pensive"):
        branch = known.runs[run].branch
        assert f"branch {branch} and its rows: they belong to no run" in plan.strays
    assert [] == journal(path, rows)
    assert into is not None
    assert tail == (into / TAIL).read_bytes()


def die_thinking(store: holdfast.Store, name: str, last: int) -> None:
    """A run without effects: all of its rows but two stand in the tail when it dies."""

    @holdfast.agent
    def thinker(run: holdfast.Run) -> None:
        for turn in run.turns():
            run.state["thought"] = think(f"{name} {turn}")
            if turn == last:
                raise Crash(name)

    with contextlib.suppress(Crash):
        store.run(thinker, id=name)


def killed_thinking(path: Path, into: Path, last: int) -> Path:
    """What a kill leaves of a store in which somebody thinks."""
    with holdfast.open(path) as store:
        die_thinking(store, "new", last)
        return Path(shutil.copytree(path, into))


def test_a_repaired_store_has_a_tail_of_its_own(
    path: Path, known: Contents, tmp_path: Path
) -> None:
    bad_record("pensive", 1)(path, known)
    old = (path / TAIL).read_bytes()
    into = holdfast.plan_repair(path).apply()
    assert into is not None

    killed = killed_thinking(path, tmp_path / "killed", 4)

    seed = seed_of(killed)
    assert slots.newest(old, seed) < slots.newest((killed / TAIL).read_bytes(), seed)
    assert old == (into / TAIL).read_bytes()
    assert [] == whole(killed)
    with holdfast.open(killed) as store:
        assert known.runs["musing"] == store.get("musing")
        assert think("new 3") == store.restore("new")[1]["thought"]


def test_a_repair_that_was_cut_off_and_is_finished_later_takes_no_row_of_who_went_on(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql("DELETE FROM effect WHERE run=1")(path)
    with monkeypatch.context() as cut_off:
        cut_off.setattr(rebuild, "_finish", lambda *_: None)
        holdfast.plan_repair(path).apply()
    assert rebuild.is_unsettled(path)
    (lost,) = path.glob(f"lost/*/{TAIL}")
    old = lost.read_bytes()
    killed = killed_thinking(path, tmp_path / "killed", 4)
    rows = tail_rows(killed)

    assert not holdfast.plan_repair(killed).is_needed

    assert not rebuild.is_unsettled(killed)
    assert rows
    assert rows == journal(killed, rows)
    assert [] == whole(killed)
    assert old == lost.read_bytes()


def test_a_run_whose_beginning_the_log_has_lost_is_not_started_anew(tmp_path: Path) -> None:
    """The row that was noted last stands in the tail: what the log lost is before it."""
    with holdfast.open(tmp_path / "made"):
        pass
    killed = killed_thinking(tmp_path / "made", tmp_path / "killed", 4)
    (killed / "store.db-wal").unlink()

    with pytest.raises(holdfast.Damaged, match="1 acknowledged rows are missing"):
        holdfast.open(killed)
    holdfast.plan_repair(killed).apply()

    assert [] == whole(killed)


def test_a_record_that_cannot_be_read_is_said_though_the_head_note_is_lost(
    path: Path, known: Contents
) -> None:
    bad_record("musing", -1)(path, known)  # Of that run it is the last.
    (path / "heads").unlink()

    with pytest.raises(holdfast.Damaged, match="tail of the journal"):
        holdfast.open(path)


@pytest.mark.parametrize("last", [0, 3], ids=["its only record", "its last record"])
def test_who_looks_at_a_store_that_lost_the_end_of_its_tail_leaves_it_as_it_is(
    tmp_path: Path, last: int
) -> None:
    with small_parts():
        killed = killed_thinking(tmp_path / "made", tmp_path / "killed", last)
    flip(killed, tail_rows(killed)[-1])
    tail = (killed / TAIL).read_bytes()

    with pytest.raises(holdfast.Damaged, match="1 acknowledged rows are missing or changed"):
        holdfast.open(killed)
    plan = holdfast.plan_repair(killed)

    assert tail == (killed / TAIL).read_bytes()
    into = plan.apply()
    assert into is not None
    assert tail == (into / TAIL).read_bytes()
    assert [] == whole(killed)


def test_a_store_that_lost_its_tail_says_of_which_run_and_how_many_rows(tmp_path: Path) -> None:
    with small_parts(), holdfast.open(tmp_path / "made") as store:
        die_thinking(store, "old", 1)
        store.fork("old", new_id="fork of it")
        killed = killed_thinking(tmp_path / "made", tmp_path / "killed", 4)
    rows = tail_rows(killed)
    (killed / TAIL).unlink()

    with pytest.raises(holdfast.Damaged, match=r"first 0x\w+, of run new; run `holdfast verify`"):
        holdfast.open(killed)
    with contextlib.closing(open_store(killed, SystemClock(), must_be_whole=False)) as opened:
        (finding,) = verify(opened).findings
    (fate,) = holdfast.plan_repair(killed).fates

    assert ("new", f"journal row {rows[-1].id:#x}") == (finding.run, finding.where)
    assert 3 < len(rows)
    assert len(rows) == fate.rows_lost
    assert f"acknowledged rows are gone, {rows[0].id:#x} to {rows[-1].id:#x}" in fate.why
    holdfast.plan_repair(killed).apply()
    assert [] == whole(killed)
