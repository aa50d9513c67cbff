"""An open store encrypted in place, an encrypted one under new keys: the same history, resealed."""

import contextlib
import shutil
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import Damaged, StoreInUse, WrongKey
from holdfast.policy.retention import Retention
from holdfast.store.rekey import clean, encrypt, rotate
from holdfast.store.seal.unlock import facts
from tests.engine.test_retain import forgetful
from tests.sealed import kit
from tests.unit.store.builders import tampering


@holdfast.agent
def asker(run: holdfast.Run) -> str:
    return str(run.ask("Ship it?", ["yes", "no"]))


@pytest.fixture(scope="module")
def _open(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "store"
    kit.fill(path, None, turns=30)
    return path


@pytest.fixture
def path(_open: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_open, tmp_path / "store"))


def sealed(path: Path) -> Path:
    with contextlib.closing(kit.opened(path, None, alone=True)) as found:
        encrypt(found, kit.KEY)
        assert [] == kit.found_in(path, *kit.WORDS), "gone when it returns, not at the close"
    return path


def test_an_encrypted_store_holds_what_the_open_one_held_and_nothing_in_clear(path: Path) -> None:
    expected = kit.states(path, None)
    assert kit.found_in(path, *kit.WORDS)

    sealed(path)

    assert [] == kit.found_in(path, *kit.WORDS)
    assert [] == kit.findings(path)
    assert expected == kit.states(path)
    with pytest.raises(holdfast.KeyNeeded):
        holdfast.open(path)


def test_runs_go_on_in_a_store_that_was_encrypted_in_place(path: Path) -> None:
    sealed(path)

    with holdfast.open(path, key=kit.KEY) as store:
        assert "planted-argument" == store.run(
            kit.keeper, "planted-argument", turns=30, id="planted-run-0"
        )
        with pytest.raises(kit.Crash):
            store.restart("planted-run-dies", agent=kit.keeper)
        assert "again" == store.run(kit.keeper, "again", id="planted-run-new")
    assert [] == kit.findings(path)


def test_what_was_acknowledged_is_still_noted_after_it_was_encrypted(path: Path) -> None:
    sealed(path)
    with tampering(path) as link:
        link.execute("DELETE FROM j WHERE id=(SELECT max(id) FROM j)")

    with pytest.raises(Damaged, match="acknowledged rows are missing"):
        holdfast.open(path, key=kit.KEY)


def test_a_damaged_store_is_not_encrypted_and_not_changed(path: Path) -> None:
    with tampering(path) as link:
        link.execute("UPDATE pack SET body=body || x'00' WHERE id=(SELECT min(id) FROM pack)")
    before = {file: data for file, data in kit.files(path).items() if file.name == "store.db"}

    with (
        contextlib.closing(kit.opened(path, None, alone=True, whole=False)) as found,
        pytest.raises(Damaged),
    ):
        encrypt(found, kit.KEY)

    assert not facts(path).is_encrypted
    assert before.keys() <= kit.files(path).keys()


def test_rows_that_belong_to_nothing_keep_a_store_from_being_encrypted(path: Path) -> None:
    with holdfast.open(path) as store:
        branch = store.fork("planted-run-0").branch
    with tampering(path) as link:
        link.execute("INSERT INTO j VALUES (? << 32, x'00', x'00')", (branch,))

    with (
        contextlib.closing(kit.opened(path, None, alone=True)) as found,
        pytest.raises(Damaged, match=r"1 rows belong to no branch; `holdfast repair` first"),
    ):
        encrypt(found, kit.KEY)

    assert not facts(path).is_encrypted


@pytest.mark.parametrize("data", [False, True], ids=["the store key", "every key"])
def test_after_a_rotation_only_the_new_key_opens_and_history_is_the_same(
    path: Path, data: bool
) -> None:
    expected = kit.states(sealed(path))
    before = _bodies(path)

    with contextlib.closing(kit.opened(path, alone=True)) as found:
        rotate(found, kit.OTHER, data=data)
        assert [] == kit.found_in(path, *before["keys"])

    assert expected == kit.states(path, kit.OTHER)
    assert [] == kit.findings(path, kit.OTHER)
    assert 2 == facts(path).key
    with pytest.raises(WrongKey):
        holdfast.open(path, key=kit.KEY)
    assert data == before["rows"].isdisjoint(_bodies(path)["rows"])
    assert before["keys"].isdisjoint(_bodies(path)["keys"])
    assert [] == kit.found_in(path, *before["keys"])


def test_a_new_run_and_an_old_one_go_on_after_a_rotation(path: Path) -> None:
    sealed(path)
    with contextlib.closing(kit.opened(path, alone=True)) as found:
        rotate(found, kit.KEY, data=False)

    with holdfast.open(path, key=kit.KEY) as store:
        with pytest.raises(kit.Crash):
            store.restart("planted-run-dies", agent=kit.keeper)
        store.run(kit.keeper, "again", turns=30, id="planted-run-new")

    assert [] == kit.findings(path)


def test_forks_ledgers_and_pruned_rows_are_carried_over(path: Path) -> None:
    with holdfast.open(path) as store:
        store.run(forgetful, 100, id="pruned")
        assert store.gc(Retention(last=3)).rows > 30
        fork = store.fork("pruned", at=98)
        store.run(forgetful, id=fork.id)
        with pytest.raises(holdfast.Waiting):
            store.run(asker, id="asked")
        [question] = [item for item in store.inbox() if item.run == "asked"]
        store.answer(question.id, "yes")
    expected = kit.states(path, None)

    sealed(path)
    assert expected == kit.states(path)
    assert [] == kit.findings(path)
    with contextlib.closing(kit.opened(path, alone=True)) as found:
        rotate(found, kit.OTHER, data=True)

    assert expected == kit.states(path, kit.OTHER)
    assert [] == kit.findings(path, kit.OTHER)
    with holdfast.open(path, key=kit.OTHER) as store:
        assert "yes" == store.run(asker, id="asked")
        assert 99 == store.run(forgetful, id=fork.id)
    assert [] == kit.findings(path, kit.OTHER)


def test_keys_change_only_while_nobody_else_has_the_store_open(path: Path) -> None:
    with holdfast.open(path), pytest.raises(StoreInUse, match="open in another process"):
        kit.opened(path, None, alone=True)

    with (
        contextlib.closing(kit.opened(path, None, alone=True)),
        pytest.raises(StoreInUse, match="given other keys"),
    ):
        holdfast.open(path)
    holdfast.open(path).close()


def test_what_a_cut_off_encryption_left_in_clear_is_named_and_removed(path: Path) -> None:
    spare = shutil.copytree(path / "objects", path.parent / "spare")
    sealed(path)
    shutil.copytree(spare, path / "objects", dirs_exist_ok=True)
    (path / "objects" / "ab").mkdir(exist_ok=True)
    (path / "objects" / "ab" / "abcd.1.part").write_text("planted-large")
    left = len(list(spare.glob("??/*")))

    found = kit.findings(path)
    with contextlib.closing(kit.opened(path, alone=True)) as opened:
        cleaned = clean(opened)

    assert left == len(found) > 0
    assert all("not sealed" in each and "holdfast keys init" in each for each in found)
    assert left + 1 == cleaned
    assert [] == kit.findings(path)
    assert [] == kit.found_in(path, *kit.WORDS)


def test_a_repair_moves_aside_what_is_not_sealed_and_a_header_cut_off_is_no_clear_text(
    path: Path,
) -> None:
    spare = shutil.copytree(path / "objects", path.parent / "spare")
    sealed(path)
    shutil.copytree(spare, path / "objects", dirs_exist_ok=True)
    cut = path / "objects" / "ab" / ("ab" * 32)
    cut.parent.mkdir(exist_ok=True)
    cut.write_bytes(b"cut")
    left = {file.name for file in spare.glob("??/*")}

    plan = holdfast.plan_repair(path, key=kit.KEY)
    aside = plan.apply()

    assert left == set(plan.objects)
    assert aside is not None
    assert left <= {file.name for file in aside.rglob("*")}
    assert [] == kit.findings(path)
    assert cut.exists()


def _bodies(path: Path) -> dict[str, set[bytes]]:
    """Macs of rows, and wrapped keys."""
    with tampering(path) as link:
        rows = {mac for (mac,) in link.execute("SELECT mac FROM j UNION SELECT mac FROM run")}
        keys = {body[-48:] for (body,) in link.execute("SELECT body FROM key")}
    return {"rows": rows, "keys": keys}
