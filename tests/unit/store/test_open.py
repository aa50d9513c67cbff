"""A path becomes an open store, or an error that says what to do."""

import shutil
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import Damaged, StoreClosed, StoreError, StoreNotFound, StoreUnwritable
from holdfast.model.journal import Entry
from holdfast.store.backends.sqlite import FILE
from holdfast.store.open import Opened, open_store
from holdfast.store.writer import PACK_BYTES
from tests.unit.store.builders import Bench, add, entry, noise, tampering


def parts(opened: Opened) -> Bench:
    return Bench(records=opened.records, committer=opened.committer, reader=opened.reader)


def test_a_store_is_made_where_there_is_none_and_found_again(tmp_path: Path) -> None:
    opened = open_store(tmp_path / "new" / "store", SystemClock())
    parts(opened).start("a", rows=3)
    opened.close()

    again = open_store(tmp_path / "new" / "store", SystemClock(), must_exist=True)

    assert "a" == parts(again).find("a").body.id
    assert again.leases.take(1)
    again.close()


def test_no_file_of_a_store_is_for_others_in_a_directory_that_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    opened = open_store(tmp_path, SystemClock())
    parts(opened).start("a", rows=3)

    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    assert {FILE, f"{FILE}-wal", f"{FILE}-shm"} < modes.keys()
    assert {0o600} == {*modes.values()}
    opened.close()


def test_the_mode_of_a_database_that_is_there_is_left_alone(tmp_path: Path) -> None:
    open_store(tmp_path, SystemClock()).close()
    (tmp_path / FILE).chmod(0o640)

    open_store(tmp_path, SystemClock()).close()

    assert 0o640 == (tmp_path / FILE).stat().st_mode & 0o777


def test_a_store_that_must_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFound, match="there is no store at"):
        open_store(tmp_path / "none", SystemClock(), must_exist=True)

    assert not (tmp_path / "none").exists()


def test_closing_commits_what_is_queued_and_lets_go_of_runs(tmp_path: Path) -> None:
    opened, other = (open_store(tmp_path, SystemClock()) for _ in range(2))
    writer = parts(opened).start("a")
    assert opened.leases.take(1)
    writer.submit([entry(1)])

    opened.close()

    assert entry(1) == parts(other).entries("a")[-1]
    assert other.leases.take(1)
    with pytest.raises(StoreClosed):
        parts(opened).find("a")
    other.close()


def test_a_store_that_misses_acknowledged_rows_is_opened_only_to_look(tmp_path: Path) -> None:
    opened = open_store(tmp_path, SystemClock())
    writer = parts(opened).start("a", rows=3)
    last = add(writer, entry(9))
    opened.close()
    with tampering(tmp_path) as link:
        link.execute("DELETE FROM j WHERE id=?", (last,))

    with pytest.raises(Damaged, match=rf"1 acknowledged rows are missing .* {last:#x}"):
        open_store(tmp_path, SystemClock())

    looked = open_store(tmp_path, SystemClock(), must_be_whole=False)
    assert [last] == looked.records.missing()
    looked.close()


def test_a_store_whose_leases_cannot_be_kept_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "leases").mkdir()

    with pytest.raises(StoreUnwritable):
        open_store(tmp_path, SystemClock())

    assert not (tmp_path / f"{FILE}-wal").exists()


@pytest.mark.parametrize("name", ["tail", "heads", "lock", "leases"])
def test_a_directory_in_the_place_of_a_file_is_named(tmp_path: Path, name: str) -> None:
    open_store(tmp_path, SystemClock()).close()
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir()

    with pytest.raises(StoreUnwritable, match=f"directory where .* belongs: .*/{name}; move it"):
        open_store(tmp_path, SystemClock())


def test_a_forked_child_is_told_so_by_every_part(tmp_path: Path) -> None:
    opened = open_store(tmp_path, SystemClock())
    writer = parts(opened).start("a")
    assert opened.leases.take(1)

    fault = opened.abandon()

    for call in (lambda: parts(opened).find("a"), lambda: add(writer, entry(1))):
        with pytest.raises(StoreClosed) as caught:
            call()
        assert fault is caught.value
    for link in (opened.records._writer, opened.records._reader):  # noqa: SLF001 -- a child ends
        link.close()


def whatever_is_read(directory: Path) -> dict[str, list[Entry]] | None:
    """The entries of every run that is found, or None where the store says it is damaged."""
    try:
        opened = open_store(directory, SystemClock(), must_exist=True)
        try:
            # Indexes and the order of pages carry no hash; what they hide, SQLite's check sees.
            if opened.records.integrity():
                return None
            store = parts(opened)
            return {run.body.id: store.entries(run.body.id) for run in opened.reader.runs()}
        finally:
            opened.close()
    except StoreError:
        return None


def test_whatever_byte_of_the_file_changes_what_is_read_is_what_was_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "whole").mkdir()
    opened = open_store(tmp_path / "whole", SystemClock())
    store = parts(opened)
    for name in ("a", "b"):
        writer = store.start(name, rows=5)
        add(writer, entry(5, noise(PACK_BYTES)))
        add(writer, entry(6, b"text " * 50))
    opened.close()
    before = whatever_is_read(tmp_path / "whole")
    assert before is not None
    data = (tmp_path / "whole" / FILE).read_bytes()

    wrong, told = [], 0
    (tmp_path / "bad").mkdir()
    for place in range(1, len(data), 157):
        for file in (tmp_path / "bad").iterdir():
            file.unlink(missing_ok=True) if file.is_file() else shutil.rmtree(file)
        changed = data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
        (tmp_path / "bad" / FILE).write_bytes(changed)
        match whatever_is_read(tmp_path / "bad"):
            case None:
                told += 1
            case read if read != before:
                wrong.append(place)

    assert [] == wrong
    assert told > 100
