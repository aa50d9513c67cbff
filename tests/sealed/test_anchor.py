"""An anchor kept elsewhere: a store set back, cut or replaced is found, though whole in itself."""

import contextlib
import shutil
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import UsageError
from holdfast.store import anchor
from holdfast.store.anchor import Anchor
from holdfast.store.keys.local import RootKey
from tests.sealed import kit
from tests.unit.store.builders import tampering


@pytest.fixture(params=[kit.KEY, None], ids=["encrypted", "open"])
def key(request: pytest.FixtureRequest) -> RootKey | None:
    found: RootKey | None = request.param
    return found


@pytest.fixture
def path(tmp_path: Path, key: RootKey | None) -> Path:
    kit.fill(tmp_path / "store", key, runs=1)
    return tmp_path / "store"


def taken(path: Path, key: RootKey | None) -> Anchor:
    with contextlib.closing(kit.opened(path, key)) as found:
        made = anchor.take(found, found.reader.runs(), 5.0)
    again = anchor.parse(f" {made}\n")
    assert made == again
    return again


def missed(path: Path, key: RootKey | None, seen: Anchor) -> list[str]:
    with contextlib.closing(kit.opened(path, key, whole=False)) as found:
        return [f"{each.where}: {each.why}" for each in anchor.check(found, seen)]


def test_a_store_that_went_on_holds_all_that_its_anchor_saw(
    path: Path, key: RootKey | None
) -> None:
    seen = taken(path, key)
    with holdfast.open(path, key=key or "") as store:
        store.run(kit.keeper, "again", id="planted-run-new")
        with pytest.raises(kit.Crash):
            store.restart("planted-run-dies", agent=kit.keeper)

    assert [] == missed(path, key, seen)


def test_a_store_set_back_to_an_older_copy_is_found(path: Path, key: RootKey | None) -> None:
    older = shutil.copytree(path, path.parent / "older")
    with holdfast.open(path, key=key or "") as store:
        store.run(kit.keeper, "again", id="planted-run-new")
        with pytest.raises(kit.Crash):
            store.restart("planted-run-dies", agent=kit.keeper)
    seen = taken(path, key)

    found = missed(Path(older), key, seen)

    assert [] == kit.findings(Path(older), key)
    assert any("it is gone" in each for each in found)
    assert any("it was set back: the anchor saw epoch 2" in each for each in found)
    assert any("the end was cut off" in each for each in found)


def test_a_row_of_the_catalog_put_back_is_found(path: Path, key: RootKey | None) -> None:
    with tampering(path) as link:
        columns = link.execute("SELECT epoch, head, mac, body, kid FROM run").fetchall()
    with holdfast.open(path, key=key or "") as store, pytest.raises(kit.Crash):
        store.restart("planted-run-dies", agent=kit.keeper)
    seen = taken(path, key)

    with tampering(path) as link:
        link.executemany("UPDATE run SET epoch=?, head=?, mac=?, body=? WHERE kid=?", columns)

    assert any("it was set back" in each for each in missed(path, key, seen))
    assert kit.findings(path, key)


def test_a_cut_end_is_found(path: Path, key: RootKey | None) -> None:
    seen = taken(path, key)
    with tampering(path) as link:
        link.execute("DELETE FROM j WHERE id=(SELECT max(id) FROM j)")
    (path / "heads").unlink()

    assert any("the end was cut off" in each for each in missed(path, key, seen))


def test_a_replaced_history_is_found(path: Path, key: RootKey | None) -> None:
    seen = taken(path, key)
    with tampering(path) as link:
        link.execute("UPDATE j SET mac=zeroblob(length(mac)) WHERE id=(SELECT max(id) FROM j)")
    (path / "heads").unlink()

    assert any("history was replaced" in each for each in missed(path, key, seen))


def test_an_anchor_of_another_store_says_so(
    path: Path, key: RootKey | None, tmp_path: Path
) -> None:
    kit.fill(tmp_path / "other", key, runs=1)

    with pytest.raises(UsageError, match="of another store"):
        missed(path, key, taken(tmp_path / "other", key))


@pytest.mark.parametrize("text", ["", "nonsense", "holdfast-anchor-1:", "holdfast-anchor-1:é!"])
def test_what_is_no_anchor_is_said_to_be_none(text: str) -> None:
    with pytest.raises(UsageError, match="holdfast anchor"):
        anchor.parse(text)


def test_a_cut_anchor_is_none() -> None:
    whole = str(Anchor(bytes(16), 5.0, []))

    for length in range(len(whole)):
        with pytest.raises(UsageError):
            anchor.parse(whole[:length])
