"""Every backend of rows keeps the promises of `Records`."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.clock import SystemClock
from holdfast.model.ids import row_id
from holdfast.store.backends.base import BranchRow, Create, JournalRow, Records, RunRow
from holdfast.store.backends.memory import MemoryRecords
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.store.keys.local import RootKey
from holdfast.store.seal.unlock import maker
from holdfast.testing.contract import RecordsContract
from holdfast.testing.durable import DurableRecordsContract
from holdfast.testing.fakes import Faulty
from holdfast.testing.rows import append, create, first_rows, journal_row


class TestMemoryRecords(RecordsContract):
    def open(self, place: Path) -> Records:  # noqa: ARG002 -- it is kept nowhere
        return MemoryRecords()


class TestSqliteRecords(DurableRecordsContract):
    def open(self, place: Path) -> Records:
        return SqliteRecords(place, SystemClock())


class TestSqliteRecordsOfAnEncryptedStore(DurableRecordsContract):
    def open(self, place: Path) -> Records:
        return SqliteRecords(place, SystemClock(), maker(RootKey(bytes(32), "file")))


class TestFaultyRecordsThatWereNotToldToFail(DurableRecordsContract):
    def open(self, place: Path) -> Records:
        return Faulty(SqliteRecords(place, SystemClock()))


@pytest.mark.parametrize("parent", [1, 9])
def test_a_run_grows_only_from_a_branch_that_is_there(tmp_path: Path, parent: int) -> None:
    def build(no: int, branch: int) -> tuple[RunRow, BranchRow, JournalRow]:
        run, grown, row = first_rows(b"fork", no, branch)
        return run, replace(grown, parent=parent, at=row_id(parent, 0)), row

    for records in (MemoryRecords(), SqliteRecords(tmp_path, SystemClock())):
        records.commit([create(b"a")])

        [done] = records.commit([Create(kid=b"fork", build=build)])

        assert (2 if parent == 1 else -1) == done
        assert (parent == 1) == (records.run(b"fork") is not None)
        records.close()


@pytest.mark.parametrize("note", [None, b"once"])
def test_a_run_is_made_only_while_the_store_notes_what_it_relies_on(
    tmp_path: Path, note: bytes | None
) -> None:
    for records in (MemoryRecords(), SqliteRecords(tmp_path, SystemClock())):
        write = replace(create(b"a"), notes={"pruned/1": note})

        assert [1 if note is None else -1] == records.commit([write])

        assert (note is None) == (records.run(b"a") is not None)
        records.close()


def test_a_row_that_was_pruned_elsewhere_is_noted_of_its_branch(tmp_path: Path) -> None:
    for records in (MemoryRecords(), SqliteRecords(tmp_path, SystemClock())):
        records.commit([create(b"a")])
        assert records.note("pruned/1") is None

        records.commit([replace(append(1, journal_row(1, n)), is_pruned=n > 1) for n in (1, 2, 3)])
        records.commit([replace(append(1, journal_row(1, 4)), is_pruned=True)])

        assert (3).to_bytes(8, "big") == records.note("pruned/1")
        records.close()


def test_a_run_that_relies_on_a_note_is_made_while_it_stands(tmp_path: Path) -> None:
    records = SqliteRecords(tmp_path, SystemClock())
    with records.alone() as link:
        link.execute("INSERT INTO meta VALUES ('pruned/1', ?)", (b"once",))

    stale, true = ({"pruned/1": value} for value in (b"twice", b"once"))
    done = records.commit([replace(create(b"a"), notes=notes) for notes in (stale, true)])

    assert [-1, 1] == done
    records.close()
