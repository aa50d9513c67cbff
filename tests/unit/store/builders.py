"""Small stores for tests: runs whose rows mean something, over any backend of rows."""

import contextlib
import random
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.model.ids import Range
from holdfast.model.journal import Based, Entry, LoopLeft, Resumed, Row
from holdfast.model.run import Holder, RunBody
from holdfast.store.backends import slots
from holdfast.store.backends.base import Records
from holdfast.store.backends.memory import MemoryObjects, MemoryRecords
from holdfast.store.backends.sqlite import FILE, SqliteRecords
from holdfast.store.chain import Hashed
from holdfast.store.chunks import Chunks
from holdfast.store.committer import Committer
from holdfast.store.reader import Reader, Run
from holdfast.store.writer import RunWriter, create, take_up

HOLDER = Holder(pid=7, host="reef", since=5.0)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The parts that read and write runs, without leases."""

    records: Records
    committer: Committer
    reader: Reader

    def start(self, run: str, rows: int = 0) -> RunWriter:
        """A new run with `rows` rows after its first."""
        writer = create(self.committer, self.reader.seals, body_of(run), resumed(1))
        assert writer is not None
        for n in range(rows):
            add(writer, entry(n))
        return writer

    def settle(self) -> None:
        """Let the database hold all rows, for who changes it by hand."""
        if isinstance(self.records, SqliteRecords):
            self.records.settle()

    def find(self, run: str) -> Run:
        found = self.reader.find(run)
        assert found is not None
        return found

    def take_up(self, run: str) -> RunWriter:
        """The run's writer under the next epoch."""
        found = self.find(run)
        return take_up(
            self.committer,
            self.reader.seals,
            self.reader.history(found),
            self.records.tail(found.row.head),
            body=found.body,
            entry=resumed(found.row.epoch + 1),
        )

    def entries(self, run: str) -> list[Entry]:
        """All entries of the run's head, from its first row on, checked."""
        return [entry for placed in self.line(run) for entry in placed.entries]

    def line(self, run: str) -> list[Row]:
        head = self.find(run).row.head
        reader = self.reader
        return [each.row for each in reader.rows(head, reader.first(head), reader.end(head))]


def bench(records: Records, store_id: bytes) -> Bench:
    seals = Hashed(store_id)
    reader = Reader(records, seals, Chunks(MemoryObjects(), seals))
    return Bench(records=records, committer=Committer(records), reader=reader)


def memory_bench() -> Bench:
    records = MemoryRecords(b"sixteen bytes id")
    return bench(records, records.store_id)


def add(writer: RunWriter, *entries: Entry, intents: tuple[bytes, ...] = ()) -> int:
    """Add a row and wait until it is durable; its id."""
    row, ticket = writer.submit(list(entries), intents=intents)
    writer.finish(ticket)
    return row.id


def entry(n: int, delta: bytes | None = None) -> LoopLeft:
    return LoopLeft(n, 0, delta)


def based(n: int, outside: list[Range] | None = None) -> Based:
    return Based(n, 0, b"state", outside or [])


def resumed(epoch: int, at: float = 5.0) -> Resumed:
    return Resumed(at, epoch, HOLDER, None)


def body_of(run: str) -> RunBody:
    return RunBody(id=run, agent="agent", module="module", created=5.0, holder=HOLDER)


def changed(body: RunBody, error: str) -> RunBody:
    return msgspec.structs.replace(body, error=error)


@contextlib.contextmanager
def tampering(directory: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection to a store's database, for changes that Holdfast would never make."""
    link = sqlite3.connect(directory / FILE, isolation_level=None)
    try:
        yield link
    finally:
        link.close()


def seed_of(directory: Path) -> int:
    """What the records of a store's tail are checked with; nothing there is touched."""
    file = f"file:{directory / FILE}?immutable=1"
    with contextlib.closing(sqlite3.connect(file, uri=True)) as link:
        [[store_id]] = link.execute("SELECT value FROM meta WHERE key='store_id'").fetchall()
    return slots.seed(store_id)


def noise(size: int) -> bytes:
    """Bytes that do not compress."""
    return random.Random(size).randbytes(size)  # noqa: S311 -- a fixed noise


def flipped(data: bytes) -> Iterator[bytes]:
    """`data` with each of its bytes changed in one bit, then cut by one, then longer by one."""
    for place in range(len(data)):
        yield data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
    yield data[:-1]
    yield data + b"\x00"
