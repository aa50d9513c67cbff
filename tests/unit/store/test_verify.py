"""Verification: what is whole is said to be, and each kind of damage is found and named."""

import contextlib
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

import holdfast
from holdfast.clock import SystemClock
from holdfast.errors import Damaged
from holdfast.model.journal import Answer, Call, Entry
from holdfast.store.backends.base import BranchRow
from holdfast.store.chain import branch_mac
from holdfast.store.codec.frame import seal
from holdfast.store.open import Opened, open_store
from holdfast.store.verify import Report, unreadable, verify, walk
from holdfast.store.writer import RunWriter, make_run


@holdfast.step
def ask(n: int) -> str:
    return f"answer {n}" * 20


@holdfast.effect
def do(n: int) -> None:
    """Change the world."""


@holdfast.agent(checkpoint=holdfast.every(turns=2))
def worker(run: holdfast.Run, turns: int, *, fails: bool = False) -> int:
    run.state["seen"] = []
    for turn in run.turns():
        run.state["seen"].append(ask(turn))
        if turn == turns:
            if fails:
                raise ValueError(turn)
            return turn
        do(turn)
    return -1


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: a short one whose rows lie loose, a long one whose rows are packed."""
    path = tmp_path_factory.mktemp("made") / "store"
    with holdfast.open(path) as store:
        store.run(worker, 1, id="short")
        store.run(worker, 150, id="long")
    return path


@pytest.fixture
def path(_made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_made, tmp_path / "store"))


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Opened]:
    found = open_store(path, SystemClock(), must_exist=True, must_be_whole=False)
    try:
        yield found
    finally:
        found.close()


def look(path: Path, *, deep: bool = False) -> Report:
    with opened(path) as found:
        return verify(found, deep=deep)


def change(path: Path, sql: str, *values: object) -> None:
    with sqlite3.connect(path / "store.db") as link:
        assert link.execute(sql, values).rowcount
    link.close()


def named(report: Report) -> str:
    return "\n".join(f"{each.run}: {each.where}: {each.why}" for each in report.findings)


@pytest.mark.parametrize("deep", [False, True])
def test_a_store_that_nobody_touched_is_whole(path: Path, deep: bool) -> None:
    report = look(path, deep=deep)

    assert [] == report.findings
    assert report.is_whole
    assert (2, 2, 1, deep) == (report.runs, report.branches, report.format, report.is_deep)
    assert report.rows > 300
    assert report.bytes > 10_000


def test_restarts_doubts_and_branches_are_no_damage(tmp_path: Path) -> None:
    with holdfast.open(tmp_path) as store:
        with pytest.raises(holdfast.RunFailed):
            store.run(worker, 2, id="r", fails=True)
        for is_redo in (False, True, True):
            with pytest.raises(holdfast.RunFailed):
                store.restart("r", agent=worker, redo_turn=is_redo)

    report = look(tmp_path, deep=True)

    assert [] == report.findings
    assert 3 == report.branches


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("UPDATE j SET body=zeroblob(9) WHERE id={row}", "short: journal row {row:#x}: its hash"),
        ("UPDATE j SET mac=zeroblob(32) WHERE id={row}", "short: journal row {row:#x}: its hash"),
        ("UPDATE j SET body='text' WHERE id={row}", "journal row {row:#x}"),
        ("DELETE FROM j WHERE id={row}", "short: journal row {row:#x}: it is missing"),
        ("DELETE FROM j WHERE id={last}", "journal row {last:#x}: it was acknowledged"),
        ("DELETE FROM j WHERE id={last}", "run short: its status is finished, its journal says"),
        ("DELETE FROM j WHERE id>>32=1", "short: branch 1: it holds no rows"),
        ("UPDATE branch SET mac=zeroblob(32) WHERE no=1", "short: branch 1: its hash"),
        ("UPDATE branch SET parent=-1 WHERE no=1", "short: branch 1: "),
        ("DELETE FROM branch WHERE no=1", "run number 1: its head, branch 1, is not there"),
        ("DELETE FROM branch WHERE no=1", "rows of no branch, number 0x1: nothing leads to it"),
        ("DELETE FROM run WHERE no=1", "branch of no run, number 0x1: nothing leads to it"),
        ("UPDATE run SET mac=zeroblob(32) WHERE no=1", "None: run number 1: its hash"),
        ("UPDATE run SET epoch='x' WHERE no=1", "None: run number 1: its hash"),
        ("UPDATE run SET head=-7 WHERE no=1", "None: run number 1: its hash"),
        ("UPDATE run SET kid='x' WHERE no=1", "None: run number 1: its hash"),
        ("UPDATE branch SET at='x' WHERE no=1", "short: branch 1: its hash"),
        ("UPDATE branch SET parent='x' WHERE no=1", "short: branch 1: "),
        ("UPDATE branch SET parent=1, at=7 WHERE no=1", "row 0x7 it grew from is missing"),
        ("UPDATE branch SET parent=1, at='x' WHERE no=1", "short: branch 1: it holds what"),
        ("UPDATE j SET body=5 WHERE id={row}", "journal row {row:#x}: its hash"),
        ("UPDATE run SET no=-5 WHERE no=1", "run number -5: its hash"),
        ("UPDATE pack SET first='x'", "long: pack 0x"),
        ("UPDATE pack SET body='x'", "long: pack 0x"),
        ("DELETE FROM effect WHERE run=1", "an effect's intent in it is not indexed"),
        ("UPDATE effect SET id=7 WHERE run=1", "indexed intent of no row, number 0x7"),
        ("UPDATE pack SET body=zeroblob(99)", "long: pack 0x"),
        ("UPDATE pack SET first=first+1", "long: pack 0x"),
        ("DELETE FROM pack", "long: branch 2: it holds no rows"),
    ],
)
def test_each_kind_of_damage_is_found_and_named(path: Path, sql: str, found: str) -> None:
    row, last = (1 << 32) + 2, (1 << 32) + 5
    change(path, sql.format(row=row, last=last))

    report = look(path)

    assert not report.is_whole
    assert found.format(row=row, last=last) in named(report)
    assert 2 == report.runs or "DELETE FROM run" in sql


def test_one_damaged_row_is_one_finding_and_the_rest_is_read(path: Path) -> None:
    change(path, "UPDATE j SET mac=zeroblob(32) WHERE id=?", (1 << 32) + 2)
    whole = look(path).rows

    report = look(path)

    # The row itself, and the one that follows it and was chained to it.
    assert [f"journal row {(1 << 32) + n:#x}" for n in (2, 3)] == [f.where for f in report.findings]
    assert whole == report.rows


def test_a_page_that_sqlite_cannot_read_is_named(path: Path) -> None:
    file = path / "store.db"
    with sqlite3.connect(file) as link:
        page = link.execute("SELECT rootpage FROM sqlite_master WHERE name='j'").fetchone()[0]
    link.close()
    with file.open("r+b") as stream:
        stream.seek((page - 1) * 4096)
        stream.write(b"\xff" * 4096)

    report = look(path)

    assert "database: SQLite's integrity check says" in named(report) or "store.db" in named(report)


class TestForged:
    """Damage with the right hashes: a mistake of ours, or somebody with the file in hand."""

    def test_a_run_set_back_to_an_older_epoch(self, tmp_path: Path) -> None:
        with holdfast.open(tmp_path) as store:
            with pytest.raises(holdfast.RunFailed):
                store.run(worker, 0, id="r", fails=True)
            with pytest.raises(holdfast.RunFailed):
                store.restart("r", agent=worker)
        with opened(tmp_path) as found:
            run = found.reader.find("r")
            assert run is not None
            old = make_run(found.reader.seals.of(run.row.no), replace(run.row, epoch=1), run.body)
        change(tmp_path, "UPDATE run SET epoch=?, mac=? WHERE no=1", old.epoch, old.mac)

        report = look(tmp_path)

        assert ["its epoch is 1, its journal goes up to 2"] == [f.why for f in report.findings]

    def test_a_run_that_says_another_agent(self, path: Path) -> None:
        with opened(path) as found:
            run = found.reader.find("short")
            assert run is not None
            other = make_run(
                found.reader.seals.of(run.row.no), run.row, replace(run.body, agent="other")
            )
        change(path, "UPDATE run SET body=?, mac=? WHERE no=1", other.body, other.mac)

        report = look(path)

        assert ["its agent is not the one its journal was started with"] == [
            f.why for f in report.findings
        ]

    def test_a_run_that_is_filed_under_another_id(self, path: Path) -> None:
        with opened(path) as found:
            run = found.reader.find("short")
            assert run is not None
            other = make_run(
                found.reader.seals.of(run.row.no), replace(run.row, kid=bytes(16)), run.body
            )
        change(path, "UPDATE run SET kid=?, mac=? WHERE no=1", other.kid, other.mac)

        assert "it is filed under another id than it says" in named(look(path))

    def test_a_branch_that_grew_from_itself_does_not_hang(self, path: Path) -> None:
        with opened(path) as found:
            at = (1 << 32) + 1
            before = found.records.rows(at, at)[0].mac
            bare = BranchRow(no=1, run=1, parent=1, at=at, mac=b"", body=seal(b""))
            mac = branch_mac(found.reader.store_id, bare, before)
        change(path, "UPDATE branch SET parent=1, at=?, mac=? WHERE no=1", at, mac)

        assert "it grew from branch 1, which is not an older one" in named(look(path))

    def test_a_value_that_cannot_be_read_is_found_by_the_deep_look_only(self, path: Path) -> None:
        _append(path, "short", [_answer(b"\x09never")])

        assert "what ask gave" not in named(look(path))
        assert "what ask gave: it has form 9" in named(look(path, deep=True))

    def test_a_large_value_that_is_gone_is_found(self, path: Path) -> None:
        with opened(path) as found:
            reference = found.chunks.keep(b"\x00" + bytes(100_000))
            [id_] = found.objects.ids()
        _append(path, "short", [_answer(reference)])
        whole = named(look(path))
        [file] = (path / "objects").glob("??/*")
        file.unlink()

        assert "chunk" not in whole
        assert f"chunk {id_.hex()}: it is named but not there" in named(look(path))

    def test_a_row_of_no_entries_and_a_second_start(self, path: Path) -> None:
        with opened(path) as found:
            started = found.reader.row(1 << 32).row.entries
        _append(path, "short", [])
        _append(path, "short", list(started))

        report = named(look(path))

        assert "it holds no entries" in report
        assert "the start of a run stands in its first row, alone" in report


def test_writing_meanwhile_is_no_damage(tmp_path: Path) -> None:
    reports: list[Report] = []
    with holdfast.open(tmp_path) as store:

        def write() -> None:
            for n in range(60):
                store.run(worker, 3, id=f"run-{n}")

        thread = threading.Thread(target=write)
        thread.start()
        while thread.is_alive():
            reports.append(look(tmp_path, deep=True))
        thread.join()

    assert [] == [finding for report in reports for finding in report.findings]
    assert reports
    assert 60 == look(tmp_path).runs


def test_findings_are_listed_up_to_a_limit_and_then_counted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "FINDINGS_MAX", 3)
    change(path, "UPDATE j SET mac=zeroblob(32)")

    report = look(path)

    assert 3 == len(report.findings)
    assert report.more > 0


def test_progress_is_told_in_rows(path: Path) -> None:
    told: list[tuple[int, int]] = []

    with opened(path) as found:
        rows = verify(found, progress=lambda done, total: told.append((done, total))).rows

    assert (rows, rows) == told[-1]
    assert sorted(told) == told


def test_a_store_too_damaged_to_be_opened_has_that_as_its_finding(tmp_path: Path) -> None:
    report = unreadable(tmp_path, Damaged("store.db", "it is no database"), is_deep=False)

    assert not report.is_whole
    assert [("store.db", "it is no database")] == [(f.where, f.why) for f in report.findings]


def _answer(value: bytes) -> Answer:
    call = Call(0, "ask", b"", 0, 0, False, [])
    return Answer(call, value, 0.0, 0.0, None)


def _append(path: Path, run: str, entries: list[Entry]) -> None:
    """Add a row as the engine's own writer would."""
    with opened(path) as found:
        known = found.reader.find(run)
        assert known is not None
        history = found.reader.history(known)
        writer = RunWriter(found.committer, found.reader.seals.of(known.row.no), known)
        writer.stand_at(history.last.row.base, history.last.id, history.last.mac)
        _, ticket = writer.submit(entries)
        writer.finish(ticket)
