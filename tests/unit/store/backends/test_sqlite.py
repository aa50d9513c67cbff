"""Records in one SQLite file: what a damaged, lost, full or interrupted disk leaves."""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast import failpoint
from holdfast.clock import SystemClock
from holdfast.errors import Damaged, StoreBusy, StoreClosed, StoreError, StoreUnwritable
from holdfast.model.ids import row_id
from holdfast.store.backends.locks import CommitLock
from holdfast.store.backends.sqlite import FILE, SqliteRecords
from holdfast.store.backends.wal import WAL_PAGES
from holdfast.testing.fakes import ManualClock
from holdfast.testing.rows import append, create, everything, journal_row, there
from tests.unit.store.builders import noise, tampering

WAL = f"{FILE}-wal"


@pytest.fixture
def records(tmp_path: Path) -> Iterator[SqliteRecords]:
    """A store with run 1 and five rows after its first, in tmp_path / "store"."""
    (tmp_path / "store").mkdir()
    records = SqliteRecords(tmp_path / "store", SystemClock())
    records.commit([create(b"a")])
    for n in range(1, 6):
        records.commit([append(1, journal_row(1, n), intents=[b"i"])])
    yield records
    records.close()


@pytest.fixture
def reopen() -> Iterator[Callable[[Path], SqliteRecords]]:
    """Opens stores and closes them at the end."""
    opened: list[SqliteRecords] = []

    def reopen(directory: Path) -> SqliteRecords:
        opened.append(SqliteRecords(directory, SystemClock()))
        return opened[-1]

    yield reopen
    for each in opened:
        each.close()


Reopen = Callable[[Path], SqliteRecords]


def as_a_kill_leaves_it(directory: Path, to: Path) -> Path:
    """A copy of a store's files in this moment, without the locks and memory of its process."""
    shutil.copytree(directory, to, ignore=shutil.ignore_patterns("*-shm"))
    return to


def test_a_process_that_is_killed_leaves_all_that_was_acknowledged(
    records: SqliteRecords, tmp_path: Path, reopen: Reopen
) -> None:
    left = reopen(as_a_kill_leaves_it(tmp_path / "store", tmp_path / "left"))

    assert everything(records) == everything(left)
    assert [] == left.missing()
    assert [row_id(1, 6)] == left.commit([append(1, journal_row(1, 6))])


def test_closing_leaves_one_file_that_holds_everything(
    records: SqliteRecords, tmp_path: Path, reopen: Reopen
) -> None:
    before = everything(records)
    records.close()

    assert not (tmp_path / "store" / WAL).exists()
    (tmp_path / "moved").mkdir()
    shutil.copy(tmp_path / "store" / FILE, tmp_path / "moved")
    assert before == everything(reopen(tmp_path / "moved"))


def test_the_log_is_grown_once_and_used_again(records: SqliteRecords, tmp_path: Path) -> None:
    wal = tmp_path / "store" / WAL
    size = wal.stat().st_size
    assert size >= WAL_PAGES * 4096

    for n in range(6, 6 + WAL_PAGES * 2):
        records.commit([append(1, journal_row(1, n))])

    assert size == wal.stat().st_size


def test_a_new_store_has_its_log_at_once_and_one_that_is_only_read_keeps_none(
    tmp_path: Path,
) -> None:
    new = SqliteRecords(tmp_path, SystemClock())
    sizes = [(tmp_path / WAL).stat().st_size]
    new.close()
    again = SqliteRecords(tmp_path, SystemClock())
    again.runs(None, 1)
    sizes.append((tmp_path / WAL).stat().st_size)
    again.close()

    assert sizes[0] >= WAL_PAGES * 4096
    assert sizes[1] == 0


def test_a_log_that_a_kill_left_with_nothing_but_its_length_holds_nothing(
    records: SqliteRecords, tmp_path: Path, reopen: Reopen
) -> None:
    before = everything(records)
    records.close()
    (tmp_path / "store" / WAL).write_bytes(bytes(WAL_PAGES * 4096))

    second = reopen(tmp_path / "store")

    assert before == everything(second)
    second.commit([append(1, journal_row(1, 6))])
    assert row_id(1, 6) == there(second.last(1)).id


def test_a_log_that_is_long_enough_already_is_not_grown_again(
    records: SqliteRecords, tmp_path: Path, reopen: Reopen
) -> None:
    wal, second = tmp_path / "store" / WAL, reopen(tmp_path / "store")
    size = wal.stat().st_size

    second.commit([append(1, journal_row(1, 6))])

    assert size == wal.stat().st_size
    assert row_id(1, 6) == there(records.last(1)).id


def damage_to(wal: Path, how: str) -> None:
    data = wal.read_bytes()
    match how:
        case "removed":
            wal.unlink()
        case "emptied":
            wal.write_bytes(b"")
        case "header":
            wal.write_bytes(bytes(32) + data[32:])
        case _:
            wal.write_bytes(data[:40] + bytes([data[40] ^ 0xFF]) + data[41:])


def test_a_log_lost_right_after_a_run_was_made_is_noticed(
    records: SqliteRecords, tmp_path: Path, reopen: Reopen
) -> None:
    records.commit([create(b"another run")])
    left = as_a_kill_leaves_it(tmp_path / "store", tmp_path / "left")
    damage_to(left / WAL, "removed")

    assert row_id(2, 0) in reopen(left).missing()


@pytest.mark.parametrize("how", ["removed", "emptied", "header", "first frame"])
def test_a_lost_log_is_noticed_though_sqlite_says_nothing(
    records: SqliteRecords, tmp_path: Path, reopen: Reopen, how: str
) -> None:
    left = as_a_kill_leaves_it(tmp_path / "store", tmp_path / "left")
    assert [] == records.missing()
    damage_to(left / WAL, how)

    assert [row_id(1, 5)] == reopen(left).missing()


def test_a_database_that_was_set_back_is_noticed(
    records: SqliteRecords, tmp_path: Path, reopen: Reopen
) -> None:
    old = as_a_kill_leaves_it(tmp_path / "store", tmp_path / "old")
    records.commit([append(1, journal_row(1, 6))])
    shutil.copy(tmp_path / "store" / "heads", old / "heads")

    assert [row_id(1, 6)] == reopen(old).missing()


def test_an_acknowledged_row_with_another_hash_counts_as_missing(
    records: SqliteRecords, tmp_path: Path
) -> None:
    with tampering(tmp_path / "store") as link:
        link.execute("UPDATE j SET mac=x'00' WHERE id=?", (row_id(1, 5),))

    assert [row_id(1, 5)] == records.missing()


@pytest.mark.parametrize("content", [b"not a database " * 400, bytes(8192)])
def test_a_file_of_garbage_is_damage(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)

    with pytest.raises(Damaged, match=FILE):
        SqliteRecords(tmp_path, SystemClock())

    assert content == (tmp_path / FILE).read_bytes()


def test_an_empty_file_is_a_store_whose_making_was_cut_off(tmp_path: Path, reopen: Reopen) -> None:
    (tmp_path / FILE).write_bytes(b"")

    assert [1] == reopen(tmp_path).commit([create(b"a")])


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A closed store with loose rows, packs, intents and two branches."""
    (tmp_path / "whole").mkdir()
    records = SqliteRecords(tmp_path / "whole", SystemClock())
    records.commit([create(b"a"), create(b"b")])
    for n in range(1, 20):
        row = journal_row(1, n, noise(200 + n))
        pack_from = row_id(1, 0) if n == 10 else -1
        records.commit([append(1, row, intents=[b"i"], pack_from=pack_from)])
    records.close()
    return tmp_path / "whole"


def read_or_refused(directory: Path) -> list[object] | None:
    """What a store gives, or None where it said that it is not whole."""
    try:
        records = SqliteRecords(directory, SystemClock())
        try:
            if records.missing() or records.integrity():
                return None
            return everything(records)
        finally:
            records.close()
    except StoreError:
        return None


def test_a_database_that_was_cut_is_refused_by_an_error_of_ours(
    whole: Path, tmp_path: Path
) -> None:
    data = (whole / FILE).read_bytes()
    before = read_or_refused(whole)
    assert before is not None
    (tmp_path / "cut").mkdir()

    for size in [*range(1, len(data), 4096), *range(4096, len(data), 4096)]:
        for each in (tmp_path / "cut").iterdir():
            each.unlink()
        shutil.copy(whole / "heads", tmp_path / "cut" / "heads")
        (tmp_path / "cut" / FILE).write_bytes(data[:size])

        assert read_or_refused(tmp_path / "cut") is None


def test_a_changed_byte_of_the_file_raises_nothing_but_errors_of_ours(
    whole: Path, tmp_path: Path
) -> None:
    data = (whole / FILE).read_bytes()
    (tmp_path / "bad").mkdir()

    for place in range(0, len(data), 211):
        for each in (tmp_path / "bad").iterdir():
            each.unlink()
        changed = data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]
        (tmp_path / "bad" / FILE).write_bytes(changed)

        read_or_refused(tmp_path / "bad")


def test_the_check_of_sqlite_itself_is_handed_on(records: SqliteRecords, tmp_path: Path) -> None:
    assert [] == records.integrity()
    records.close()
    file = tmp_path / "store" / FILE
    data = file.read_bytes()
    entry = b"i" + row_id(1, 3).to_bytes(6, "big")  # As the index of effects holds it.
    file.write_bytes(data.replace(entry, b"z" + entry[1:]))

    damaged = SqliteRecords(tmp_path / "store", SystemClock())

    assert any("effect" in each for each in damaged.integrity())
    damaged.close()


def refusals(records: SqliteRecords) -> Iterator[Callable[[], object]]:
    """Every call that a store which cannot go on must refuse."""
    yield lambda: records.commit([append(1, journal_row(1, 6))])
    yield lambda: records.run(b"a")
    yield lambda: records.rows(0, 1)


def test_on_a_full_disk_nothing_more_is_acknowledged_and_a_revived_store_goes_on(
    records: SqliteRecords,
) -> None:
    before = everything(records)
    records.settle()
    records._writer.execute("PRAGMA max_page_count=1")  # noqa: SLF001 -- as a full disk would say
    with pytest.raises(StoreUnwritable, match="the disk is full") as caught:
        records.commit([append(1, journal_row(1, 6, noise(100_000)))])

    for call in refusals(records):
        with pytest.raises(StoreUnwritable) as again:
            call()
        assert caught.value is again.value
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        records._writer.execute("SELECT 1")  # noqa: SLF001 -- its outcome is unknown for good
    records.revive()

    assert before == everything(records)
    assert [row_id(1, 6)] == records.commit([append(1, journal_row(1, 6))])
    assert [] == records.missing()


def test_a_store_that_failed_can_be_closed(records: SqliteRecords) -> None:
    records.settle()
    records._writer.execute("PRAGMA max_page_count=1")  # noqa: SLF001 -- as a full disk would say
    with pytest.raises(StoreUnwritable):
        records.commit([append(1, journal_row(1, 6, noise(100_000)))])

    records.close()
    records.revive()

    with pytest.raises(StoreClosed, match="is closed"):
        records.run(b"a")


def test_a_damaged_tree_leads_nobody_back(
    records: SqliteRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Astray:
        """A connection that finds a row before those that were asked for."""

        def execute(self, *_: object) -> "Astray":
            return self

        def fetchone(self) -> tuple[int]:
            return (5,)

    with monkeypatch.context() as damaged:
        damaged.setattr(records, "_reader", Astray())

        assert 21 == records.next_row(10, 20)
        assert 5 == records.next_row(5, 20)


def test_damage_found_by_a_commit_is_not_revived(records: SqliteRecords) -> None:
    class Corrupt:
        """A connection that finds the file damaged."""

        in_transaction = False

        def execute(self, *_: object) -> None:
            error = sqlite3.DatabaseError("database disk image is malformed")
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error

        def close(self) -> None:
            writer.close()

    records.settle()
    writer = records._writer  # noqa: SLF001 -- there is no other way to it
    records._writer = Corrupt()  # type: ignore[assignment]  # noqa: SLF001
    with pytest.raises(Damaged, match="malformed"):
        records.commit([append(1, journal_row(1, 6))])

    records.revive()

    for call in refusals(records):
        with pytest.raises(Damaged):
            call()


def test_a_log_that_is_gone_before_the_first_commit_is_an_error(tmp_path: Path) -> None:
    SqliteRecords(tmp_path, SystemClock()).close()
    records = SqliteRecords(tmp_path, SystemClock())
    (tmp_path / WAL).unlink()

    with pytest.raises(StoreUnwritable):
        records.commit([create(b"a")])
    records.close()


def test_a_store_whose_lock_is_kept_by_another_is_busy_and_then_goes_on(
    records: SqliteRecords, tmp_path: Path
) -> None:
    clock = ManualClock()
    waiting = SqliteRecords(tmp_path / "store", clock)
    holder = CommitLock(tmp_path / "store" / "lock", SystemClock())

    with holder.held():
        with pytest.raises(StoreBusy):
            waiting.commit([append(1, journal_row(1, 6))])
        with pytest.raises(StoreBusy):
            SqliteRecords(tmp_path / "store", clock)
        with pytest.raises(StoreBusy):
            waiting.revive()
    waiting.revive()

    assert [row_id(1, 6)] == waiting.commit([append(1, journal_row(1, 6))])
    assert row_id(1, 6) == there(records.last(1)).id
    waiting.close()
    holder.close()


@pytest.mark.parametrize(
    ("point", "is_kept"), [("store.committing", False), ("store.committed", True)]
)
@pytest.mark.parametrize("intents", [[], [b"i"]], ids=["alone", "in a transaction"])
def test_an_interrupted_commit_is_there_or_not_and_can_be_made_again(
    records: SqliteRecords, point: str, is_kept: bool, intents: list[bytes]
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    write = append(1, journal_row(1, 6), intents=intents)
    failpoint.arm(point, interrupt)
    with pytest.raises(KeyboardInterrupt):
        records.commit([write])
    failpoint.disarm()

    assert is_kept is (there(records.last(1)).id == row_id(1, 6))
    assert [row_id(1, 6)] == records.commit([write])
    assert [] == records.missing()


def test_a_handle_that_crossed_a_fork_refuses_everything_and_touches_nothing(
    records: SqliteRecords, tmp_path: Path, reopen: Reopen
) -> None:
    crossed = reopen(tmp_path / "store")
    fault = crossed.abandon()

    for call in refusals(crossed):
        with pytest.raises(StoreClosed, match="was opened before this process forked") as caught:
            call()
        assert fault is caught.value
    crossed.revive()
    crossed.close()

    assert [row_id(1, 6)] == records.commit([append(1, journal_row(1, 6))])
    for link in (crossed._writer, crossed._reader):  # noqa: SLF001 -- a child just ends
        link.close()


def test_readers_in_other_threads_are_told_that_the_store_was_closed(
    records: SqliteRecords,
) -> None:
    errors: list[Exception] = []
    began = threading.Barrier(4)

    def read() -> None:
        began.wait()
        try:
            while True:
                records.last(1)
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    began.wait()
    records.close()
    for thread in threads:
        thread.join()

    assert [StoreClosed] * 3 == [type(error) for error in errors]


def test_a_number_that_no_file_can_hold_is_an_error_of_ours(records: SqliteRecords) -> None:
    with pytest.raises(Damaged):
        records.rows(1 << 70, 1 << 70)
