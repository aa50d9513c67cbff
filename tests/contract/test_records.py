"""Every backend of rows keeps the promises of `Records`."""

from pathlib import Path

from holdfast.clock import SystemClock
from holdfast.store.backends.base import Records
from holdfast.store.backends.memory import MemoryRecords
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.testing.contract import RecordsContract
from holdfast.testing.durable import DurableRecordsContract
from holdfast.testing.fakes import Faulty


class TestMemoryRecords(RecordsContract):
    def open(self, place: Path) -> Records:  # noqa: ARG002 -- it is kept nowhere
        return MemoryRecords()


class TestSqliteRecords(DurableRecordsContract):
    def open(self, place: Path) -> Records:
        return SqliteRecords(place, SystemClock())


class TestFaultyRecordsThatWereNotToldToFail(DurableRecordsContract):
    def open(self, place: Path) -> Records:
        return Faulty(SqliteRecords(place, SystemClock()))
