"""What the matrix once found, each kept by name."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.store.backends import catalog, packs, sweep
from holdfast.store.chain import keyed_id
from holdfast.store.open import open_store
from holdfast.store.verify import verify
from tests.corruption.scene import keeper

PAGE = 4096


def page_of(path: Path, name: str) -> int:
    """Where the root page of a table or index begins in the database."""
    with closing(sqlite3.connect(path / "store.db")) as link:
        sql = "SELECT rootpage FROM sqlite_master WHERE name=?"
        number: int = link.execute(sql, (name,)).fetchone()[0]
    return (number - 1) * PAGE


def change(path: Path, start: int, old: bytes, new: bytes) -> None:
    """Change bytes of the database, on the page that begins at `start`."""
    file = path / "store.db"
    data = file.read_bytes()
    at = data.index(old, start, start + PAGE)
    file.write_bytes(data[:at] + new + data[at + len(old) :])


def store_id(path: Path) -> bytes:
    with closing(sqlite3.connect(path / "store.db")) as link:
        found: bytes = link.execute("SELECT value FROM meta WHERE key='store_id'").fetchone()[0]
    return found


def test_a_run_that_its_index_does_not_find_is_not_started_anew(path: Path) -> None:
    kid = keyed_id(store_id(path), "packed")
    index = page_of(path, "sqlite_autoindex_run_1")
    change(path, index, kid, bytes([kid[0] ^ 1]) + kid[1:])

    with holdfast.open(path) as store:
        for act in (
            lambda: store.run(keeper, "packed", 6, id="packed"),
            lambda: store.get("packed"),
            store.runs,
        ):
            with pytest.raises(holdfast.Damaged, match=r"number 1 is there and is not found by"):
                act()


def test_a_run_whose_row_is_lost_is_not_started_anew(path: Path) -> None:
    with closing(sqlite3.connect(path / "store.db")) as link, link:
        link.execute("DELETE FROM run WHERE no=1")

    with (
        holdfast.open(path) as store,
        pytest.raises(holdfast.Damaged, match="number 1 is there and is not listed"),
    ):
        store.run(keeper, "packed", 6, id="packed")


@pytest.mark.parametrize("no", [1, 3])
def test_a_run_whose_row_is_lost_is_not_left_out_of_a_list(path: Path, no: int) -> None:
    with closing(sqlite3.connect(path / "store.db")) as link, link:
        link.execute("DELETE FROM run WHERE no=?", (no,))

    with (
        holdfast.open(path) as store,
        pytest.raises(holdfast.Damaged, match=f"number {no} is there and is not listed"),
    ):
        store.runs()


def test_a_branch_that_its_index_does_not_find_is_not_left_out(path: Path) -> None:
    with closing(sqlite3.connect(path / "store.db")) as link:
        sound = link.execute("SELECT count(*) FROM branch WHERE run=2").fetchone()[0]
    index = page_of(path, "branch_run")
    change(path, index, b"\x02\x03", b"\x03\x03")  # Branch 3 of run 2, filed under run 3.

    assert sound > 1
    with (
        holdfast.open(path) as store,
        pytest.raises(holdfast.Damaged, match="number 2 is there and does not find all"),
    ):
        store.checkpoints("branched")


@pytest.mark.parametrize("bytes_", [b"\x04", b"\x07", b"\x0d", b"\x15"])
def test_an_index_entry_of_another_length_names_no_other_branch(path: Path, bytes_: bytes) -> None:
    """SQLite then takes another byte for the number of the branch, and finds the entry as ever."""
    entry = b"\x03\x01\x01\x03\x05"  # Branch 5 of run 3, behind the length of the entry.
    change(path, page_of(path, "branch_run"), b"\x05" + entry, bytes_ + entry)

    with holdfast.open(path) as store, pytest.raises(holdfast.Damaged, match="is not its own"):
        store.checkpoints("large")
    with closing(open_store(path, SystemClock())) as opened:
        assert not verify(opened).is_whole


def test_garbage_collection_takes_no_branch_for_that_of_another_run(path: Path) -> None:
    with closing(sqlite3.connect(path / "store.db")) as link:
        epoch = sweep.epoch_of(link, 3)
        assert epoch is not None
        assert [5] == sweep.branches(link, 3, epoch)
    entry = b"\x03\x01\x01\x03\x05"
    change(path, page_of(path, "branch_run"), b"\x05" + entry, b"\x04" + entry)

    with (
        closing(sqlite3.connect(path / "store.db")) as link,
        pytest.raises(holdfast.Damaged, match="is not its own"),
    ):
        sweep.branches(link, 3, epoch)


def test_a_branch_whose_row_is_lost_is_not_left_out(path: Path) -> None:
    with closing(sqlite3.connect(path / "store.db")) as link, link:
        link.execute("DELETE FROM branch WHERE no=3")

    with (
        holdfast.open(path) as store,
        pytest.raises(holdfast.Damaged, match=r"branch 3 has .*rows and is not listed"),
    ):
        store.checkpoints("branched")


@pytest.mark.parametrize("run", ["packed", None])
def test_a_store_under_a_damaged_id_is_not_an_empty_one(path: Path, run: str | None) -> None:
    id_ = store_id(path)
    change(path, page_of(path, "meta"), id_, bytes([id_[0] ^ 1]) + id_[1:])

    with (
        holdfast.open(path) as store,
        pytest.raises(holdfast.Damaged, match="the store's id is damaged"),
    ):
        store.run(keeper, "packed", 6, id=run)


def test_a_store_that_does_not_say_what_it_needs_is_refused(path: Path) -> None:
    change(path, page_of(path, "meta"), b"incompat", b"incomqat")

    with pytest.raises(holdfast.Damaged, match="which features"):
        holdfast.open(path)


def test_text_that_is_no_text_is_a_finding_and_not_an_error_of_verify(path: Path) -> None:
    # Behind a row whose hash is gone the next one cannot be checked, and is decoded all the same.
    with closing(sqlite3.connect(path / "store.db")) as link, link:
        pairs = "SELECT b.id, b.body FROM j AS a JOIN j AS b ON b.id=a.id+1"
        id_, body = next(each for each in link.execute(pairs) if b"think" in each[1])
        spoilt = body.replace(b"think", b"\xc2hink")
        link.execute("DELETE FROM j WHERE id=?", (id_ - 1,))
        link.execute("UPDATE j SET body=? WHERE id=?", (spoilt, id_))

    opened = open_store(path, SystemClock(), must_be_whole=False)
    found = verify(opened).findings
    opened.close()

    where = f"journal row {id_:#x}"
    assert ["it cannot be decoded"] == [each.why[:20] for each in found if each.where == where]


@pytest.mark.parametrize("table", ["j", "pack"])
def test_a_row_under_a_key_billions_away_does_not_make_anybody_count_up_to_it(
    path: Path, table: str
) -> None:
    far = (1 << 32) + 4_000_000_000
    with closing(sqlite3.connect(path / "store.db")) as link, link:
        sql = f"UPDATE {table} SET id=? WHERE id=(SELECT max(id) FROM {table} WHERE id<?)"
        assert link.execute(sql, (far, 2 << 32)).rowcount

    with closing(open_store(path, SystemClock(), must_be_whole=False)) as opened:
        found = [each.where for each in verify(opened).findings]
    holdfast.plan_repair(path).apply()

    assert found
    with closing(open_store(path, SystemClock())) as opened:
        assert [] == verify(opened, deep=True).findings


def test_no_bit_of_a_tree_of_keys_makes_the_catalog_look_for_ever(path: Path) -> None:
    file, root = path / "store.db", page_of(path, "pack")
    data = bytearray(file.read_bytes())
    endless: list[int] = []
    data[18:20] = b"\x01\x01"  # Without a log, so that no other file is needed.
    for bit in range((root + PAGE - 64) * 8, (root + PAGE) * 8):
        data[bit >> 3] ^= 1 << (bit & 7)
        file.write_bytes(data)
        data[bit >> 3] ^= 1 << (bit & 7)
        with closing(sqlite3.connect(file)) as link:
            link.set_progress_handler(lambda: 1, 1_000_000)  # Anything is less than that.
            try:
                catalog.check(link)
            except sqlite3.OperationalError:
                endless.append(bit)  # It was interrupted.
            except (holdfast.Damaged, sqlite3.DatabaseError):
                continue

    assert [] == endless


def test_no_bit_of_a_tree_of_keys_gives_the_newest_row_of_another_branch(path: Path) -> None:
    file, root = path / "store.db", page_of(path, "pack")
    data = bytearray(file.read_bytes())
    data[18:20] = b"\x01\x01"  # Without a log, so that no other file is needed.
    named = 0
    for bit in range((root + PAGE - 64) * 8, (root + PAGE) * 8):
        data[bit >> 3] ^= 1 << (bit & 7)
        file.write_bytes(data)
        data[bit >> 3] ^= 1 << (bit & 7)
        with closing(sqlite3.connect(file)) as link:
            for branch in range(1, 6):
                try:
                    end = packs.end(link, branch)
                    assert end == -1 or branch == end >> 32, bit
                except holdfast.Damaged:
                    named += 1
                except sqlite3.DatabaseError:
                    continue

    assert named
