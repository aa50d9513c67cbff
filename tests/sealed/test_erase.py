"""A run erased: no file holds its key or a row of it any more, and others read on."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import RunErased, RunHeld, UnknownRun
from holdfast.store import erase as erasing
from holdfast.store.backends.tail import NAME as TAIL
from holdfast.store.graves import Grave
from holdfast.store.open import Opened
from holdfast.store.rekey import encrypt, rotate
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
GRAVE = Grave(1_800_000_000.0, "a test")


def erase(opened: Opened, run: str, *, with_forks: bool = False) -> list[str]:
    return erasing.erase(opened, run, GRAVE, with_forks=with_forks)


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
        store.run(kit.keeper, "again", id="another")

    with contextlib.closing(kit.opened(path)) as found:
        after = found.reader.find("another")
    assert after is not None
    assert after.row.no > before.row.no
    assert [] == kit.findings(path)


def test_an_erased_run_is_said_to_be_erased_whatever_is_asked_of_it(path: Path) -> None:
    with holdfast.open(path, key=kit.KEY) as store:
        point = store.checkpoints(ERASED, every_turn=True)[0].id
        assert [ERASED] == store.erase(ERASED)

    with holdfast.open(path, key=kit.KEY) as store:
        for ask in (
            lambda: store.get(ERASED),
            lambda: store.restore(point),
            lambda: store.restore(f"{ERASED}@0"),
            lambda: store.restart(ERASED),
            lambda: store.erase(ERASED),
            lambda: store.fork(KEPT, new_id=ERASED),
            lambda: store.run(kit.keeper, "again", id=ERASED),
        ):
            with pytest.raises(RunErased, match=r"was erased on .* UTC by `store.erase`"):
                ask()
        with pytest.raises(UnknownRun, match="no run 'nobody'"):
            store.erase("nobody")
    assert [] == kit.findings(path)


def test_that_a_run_was_erased_outlives_encryption_and_new_keys(tmp_path: Path) -> None:
    path = tmp_path / "store"
    kit.fill(path, None)
    with contextlib.closing(kit.opened(path, None)) as found:
        erase(found, ERASED)
    with contextlib.closing(kit.opened(path, None, alone=True)) as found:
        encrypt(found, kit.KEY)
    with contextlib.closing(kit.opened(path)) as found:
        erase(found, KEPT)
    with contextlib.closing(kit.opened(path, alone=True)) as found:
        rotate(found, kit.KEY, data=True)

    with contextlib.closing(kit.opened(path)) as found:
        for run in (ERASED, KEPT):
            with pytest.raises(RunErased, match="2027-01-15 08:00 UTC by a test"):
                found.reader.find(run)
        assert found.reader.find("nobody") is None


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


def test_no_file_of_an_open_store_holds_anything_of_an_erased_run(tmp_path: Path) -> None:
    @holdfast.agent
    def planted(run: holdfast.Run, word: str) -> str:
        for _ in run.turns():
            run.state["large"] = [word * 9_000, "shared " * 20_000]
            run.state["small"] = word
            return word
        raise AssertionError

    path = tmp_path / "open"
    with holdfast.open(path) as store:
        for word in ("planted-one", "planted-two"):
            store.run(planted, word, id=f"run-{word}")
        assert [] != kit.found_in(path, b"planted-one")

        assert ["run-planted-one"] == store.erase("run-planted-one")

        assert [] == kit.found_in(path, b"planted-one")
        assert "planted-two" == store.restore("run-planted-two")[1]["small"]
        assert 2 == len(list((path / "objects").glob("??/*")))
    assert [] == kit.found_in(path, b"planted-one")


@pytest.mark.crash
@pytest.mark.parametrize("act", ["erase", "encrypt"])
def test_what_a_killed_repair_had_copied_goes_with_what_is_erased_or_encrypted(
    tmp_path: Path, act: str
) -> None:
    path = tmp_path / "open"
    kit.fill(path, None, runs=1, turns=5)
    with tampering(path) as link:
        link.execute("DELETE FROM effect WHERE id=(SELECT min(id) FROM effect)")
    killed = subprocess.run(
        [sys.executable, "-m", "holdfast", "repair", "--apply"],
        env={
            **os.environ,
            "HOLDFAST_STORE": str(path),
            "HOLDFAST_FAILPOINT": "repair.written:1",
        },
        check=False,
        stdout=subprocess.DEVNULL,
    )
    assert -9 == killed.returncode
    assert (path / "repairing" / "store.db").exists()

    with contextlib.closing(kit.opened(path, None)) as found:
        if act == "erase":
            erase(found, ERASED)
        else:
            encrypt(found, kit.KEY)

    assert not (path / "repairing").exists()
    assert [] == kit.found_in(path, ERASED)


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


@pytest.mark.crash
@pytest.mark.parametrize("failpoint", ["tail.taking", "tail.taken", "tail.wiping", "tail.wiped"])
def test_of_an_erased_run_nothing_stays_in_the_tail(tmp_path: Path, failpoint: str) -> None:
    kit.kill(tmp_path / "made", tmp_path / "store", None, ERASED)
    command = [sys.executable, "-m", "holdfast", "erase", ERASED, "--yes"]
    env = {**os.environ, "HOLDFAST_STORE": str(tmp_path / "store")}
    assert TAIL in {file for file, _ in kit.found_in(tmp_path / "store", *kit.WORDS)}

    killed = subprocess.run(
        command, env={**env, "HOLDFAST_FAILPOINT": f"{failpoint}:1"}, check=False
    )
    again = subprocess.run(command, env=env, check=False)

    assert -9 == killed.returncode
    assert again.returncode in {0, 3}
    assert [] == kit.found_in(tmp_path / "store", *kit.WORDS)


def test_a_fork_keeps_its_history_from_being_erased(path: Path) -> None:
    with holdfast.open(path, key=kit.KEY) as store:
        fork = store.fork(KEPT).id
        second = store.fork(fork).id

    with contextlib.closing(kit.opened(path)) as found:
        with pytest.raises(holdfast.RunShared, match=f"run {KEPT} is the history of {fork}"):
            erase(found, KEPT)
        assert [second, fork, KEPT] == erase(found, KEPT, with_forks=True)

    assert [] == kit.findings(path)
