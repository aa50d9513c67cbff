"""A store's path → everything that reads and writes it; the one place that names backends."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.errors import Damaged, NotEncrypted, StoreClosed, StoreNotFound, UsageError
from holdfast.ondemand import OnDemand
from holdfast.store.backends.directory import Directory
from holdfast.store.backends.fs import RealFs
from holdfast.store.backends.place import holds_file, prepare
from holdfast.store.backends.sqlite import FILE, SqliteRecords
from holdfast.store.chain import Hashed
from holdfast.store.chunks import Chunks
from holdfast.store.codec import frame, leaks
from holdfast.store.committer import Committer
from holdfast.store.cuttable import cuttable
from holdfast.store.leases import STALL_S, Leases
from holdfast.store.owners import named
from holdfast.store.packer import HashedPacker
from holdfast.store.reader import Reader
from holdfast.store.seal.base import Seals

if TYPE_CHECKING:
    from holdfast.store.seal import unlock
    from holdfast.store.seal.provider import KeyProvider
else:
    unlock = OnDemand("holdfast.store.seal.unlock")  # It loads cryptography.


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an open store."""

    path: Path
    records: SqliteRecords
    leases: Leases
    reader: Reader
    committer: Committer
    chunks: Chunks
    objects: Directory

    def reader_of_run(self) -> Reader:
        """A reader for the writer of one run, whose large values may be patches on each other."""
        reader = object.__new__(Reader)  # `copy` takes four times as long, for every run.
        vars(reader).update(vars(self.reader), chunks=self.chunks.of_run())
        return reader

    def close(self) -> None:
        """Commit what is queued, then let go of files and locks."""
        self.committer.close()
        self.leases.close()
        self.records.close()

    def abandon(self) -> StoreClosed:
        """In a forked child: let go without touching what is the parent's; says why."""
        fault = self.records.abandon()
        self.committer.refuse(fault)
        self.leases.close()
        return fault


def open_store(
    path: Path,
    clock: Clock,
    *,
    key: "KeyProvider | None" = None,
    must_exist: bool = False,
    must_be_whole: bool = True,
    alone: bool = False,
    stall_s: float = STALL_S,
) -> Opened:
    """Open the embedded store at `path`, making it unless `must_exist`.

    With a `key` a new store is encrypted, and one that is not encrypted is refused.
    `must_be_whole` refuses a store that misses acknowledged work; `verify` opens it to look.
    `alone` refuses one that anybody else has open, and keeps others out until it is closed.
    """
    if failpoint.fault is not None:
        raise UsageError(failpoint.fault)
    if must_exist and not holds_file(path, FILE):
        raise StoreNotFound(str(path))
    prepare(path)
    frame.ready()
    leaks.ready()
    place = path.absolute()  # An agent may change its directory; the store stays where it is.
    objects = Directory(place / "objects", RealFs())
    root = None if key is None else unlock.maker(key)
    leases = Leases(place, clock, stall_s, alone=alone)  # First: keys may change until then.
    try:
        records = SqliteRecords(place, clock, root, objects)
        try:
            seals = _seals(path, records, key)
            if must_be_whole:
                _refuse_missing(path, Reader(records, seals, Chunks(objects, seals)), records)
        except BaseException:
            records.close()
            raise
    except BaseException:
        leases.close()
        raise
    chunks = Chunks(objects, seals, with_patches=records.holds_patches)
    reader = Reader(records, seals, chunks)
    reader.names_leaves = records.names_leaves
    return Opened(
        path=place,
        records=records,
        leases=leases,
        reader=reader,
        committer=Committer(records, chunks),
        chunks=chunks,
        objects=objects,
    )


def _seals(path: Path, records: SqliteRecords, key: "KeyProvider | None") -> Seals:
    cutter = cuttable if records.holds_values else None
    if records.is_sealed:
        return unlock.unlocked(records, key, str(path), cutter)
    if key is not None:
        raise NotEncrypted(str(path))
    seals = Hashed(records.store_id)
    records.pack_with(HashedPacker(seals, cutter))
    return seals


def _refuse_missing(path: Path, reader: Reader, records: SqliteRecords) -> None:
    records.beside_database()
    if lost := records.missing():
        why = f"{len(lost)} acknowledged rows are missing or changed, first {lost[0]:#x}"
        runs = named(reader, lost)
        raise Damaged(f"the store at {path}", f"{why}, of run {runs}" if runs else why)
