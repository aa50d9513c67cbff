"""A run erased: no file holds its key or a row of it any more, and others read on."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import RunHeld, UnknownRun, UsageError
from holdfast.store.erase import erase
from tests.docs.blocks import ROOT
from tests.sealed import kit
from tests.unit.store.builders import tampering

WRITER = """
import sys
import holdfast
from tests.sealed import kit

with holdfast.open(sys.argv[1], key=kit.KEY) as store:
    for number in range(10):
        store.run(kit.keeper, "planted-argument", id=f"written-{number}")
        print(f"written-{number}", flush=True)
        store.run(kit.keeper, "planted-argument", id=f"written-kept-{number}")
"""
ERASED, KEPT = "planted-run-0", "planted-run-1"


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "store"
    kit.fill(path, turns=30)
    return path


@pytest.fixture
def path(_made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_made, tmp_path / "store"))


def traces(path: Path, run: str) -> list[bytes]:
    """Bytes that stand in the files because of a run: its wrapped key, its rows, its name."""
    with contextlib.closing(kit.opened(path)) as found:
        row = found.reader.find(run)
        assert row is not None
        no, kid = row.row.no, row.row.kid
    with tampering(path) as link:
        [key] = link.execute("SELECT body FROM key WHERE no=?", (no,)).fetchone()
        branches = [each[0] for each in link.execute("SELECT no FROM branch WHERE run=?", (no,))]
        bodies = [
            body
            for branch in branches
            for table in ("j", "pack")
            for (body,) in link.execute(
                f"SELECT body FROM {table} WHERE id>>32=?",
                (branch,),
            )
        ]
    # A long body is spread over pages: a piece of it is enough to be found by.
    return [key[-48:], kid, *(body[16:80] for body in bodies if len(body) > 80)]


def test_nothing_of_an_erased_run_is_left_in_any_file(path: Path) -> None:
    mine, others = traces(path, ERASED), traces(path, KEPT)
    assert {*mine} == {needle for _, needle in kit.found_in(path, *mine)}

    with contextlib.closing(kit.opened(path)) as found:
        assert [ERASED] == erase(found, ERASED)

        assert [] == kit.found_in(path, *mine)
        assert (path / "store.db-wal").stat().st_size == 0
    assert [] == kit.found_in(path, *mine)
    assert {*others} == {needle for _, needle in kit.found_in(path, *others)}


def test_other_runs_keep_all_they_had_also_what_they_shared(path: Path) -> None:
    expected = kit.states(path)
    with contextlib.closing(kit.opened(path)) as found:
        gone = {each.no for each in found.reader.branches(found.reader.find(ERASED))}  # type: ignore[arg-type]
        erase(found, ERASED)

    left = kit.states(path)

    assert left == {key: expected[key] for key in left}
    assert 0 < len(left) < len(expected)
    assert gone
    assert [] == kit.findings(path)
    with holdfast.open(path, key=kit.KEY) as store, pytest.raises(UnknownRun):
        store.get(ERASED)


def test_a_number_that_was_erased_is_never_given_again(path: Path) -> None:
    with holdfast.open(path, key=kit.KEY) as store:
        newest = store.runs()[0].id
    with contextlib.closing(kit.opened(path)) as found:
        before = found.reader.find(newest)
        assert before is not None
        erase(found, newest)

    with holdfast.open(path, key=kit.KEY) as store:
        store.run(kit.keeper, "again", id=newest)

    with contextlib.closing(kit.opened(path)) as found:
        after = found.reader.find(newest)
    assert after is not None
    assert after.row.no > before.row.no
    assert [] == kit.findings(path)


def test_an_erased_run_is_unknown_when_it_is_erased_again(path: Path) -> None:
    with contextlib.closing(kit.opened(path)) as found:
        erase(found, ERASED)
        with pytest.raises(UnknownRun):
            erase(found, ERASED)


def test_a_run_that_somebody_works_on_is_not_erased(path: Path) -> None:
    with (
        contextlib.closing(kit.opened(path)) as found,
        contextlib.closing(kit.opened(path)) as other,
    ):
        run = other.reader.find("planted-run-dies")
        assert run is not None
        assert other.leases.take(run.row.no)

        with pytest.raises(RunHeld):
            erase(found, "planted-run-dies")

    assert "planted-run-dies" in kit.runs(path)


def test_runs_are_erased_while_others_are_written(path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(path)]
    erased = 0

    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writing:
        assert writing.stdout is not None
        for line in writing.stdout:  # Each names a run that has just finished.
            with contextlib.closing(kit.opened(path)) as found:
                erased += len(erase(found, line.strip()))

    assert (0, 10) == (writing.returncode, erased)
    assert [] == kit.findings(path)
    left = [run for run in kit.runs(path) if run.startswith("written")]
    assert [f"written-kept-{number}" for number in reversed(range(10))] == left


def test_an_open_store_has_nothing_that_could_be_erased_for_good(tmp_path: Path) -> None:
    kit.fill(tmp_path / "open", None)

    with (
        contextlib.closing(kit.opened(tmp_path / "open", None)) as found,
        pytest.raises(UsageError, match="holdfast keys init"),
    ):
        erase(found, ERASED)


@pytest.mark.crash
@pytest.mark.parametrize(
    "failpoint",
    ["heads.forgetting", "heads.forgotten", "gc.deleting", "gc.deleted", "store.emptying"],
)
def test_an_erase_that_was_killed_is_gone_on_with(path: Path, failpoint: str) -> None:
    mine = traces(path, ERASED)
    key = path.parent / "key"
    key.write_text((b"k" * 32).hex())
    key.chmod(0o600)
    command = [sys.executable, "-m", "holdfast", "--key", f"file:{key}", "erase", ERASED, "--yes"]
    env = {**os.environ, "HOLDFAST_STORE": str(path)}

    killed = subprocess.run(
        command, env={**env, "HOLDFAST_FAILPOINT": f"{failpoint}:1"}, check=False
    )
    assert [] == kit.findings(path)
    again = subprocess.run(command, env=env, check=False)

    assert -9 == killed.returncode
    assert again.returncode in {0, 3}
    assert [] == kit.found_in(path, *mine)
    assert ERASED not in kit.runs(path)


def test_a_fork_keeps_its_history_from_being_erased(path: Path) -> None:
    with holdfast.open(path, key=kit.KEY) as store:
        fork = store.fork(KEPT).id
        second = store.fork(fork).id

    with contextlib.closing(kit.opened(path)) as found:
        with pytest.raises(holdfast.RunShared, match=f"run {KEPT} is the history of {fork}"):
            erase(found, KEPT)
        assert [second, fork, KEPT] == erase(found, KEPT, with_forks=True)

    assert [] == kit.findings(path)
