"""Where a store's bytes are: rows, packs, large values, catalog, indexes, free pages; per run."""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from holdfast.errors import Damaged
from holdfast.model.ids import row_id, seq_of
from holdfast.model.journal import Entry
from holdfast.store.backends.connection import connect, named
from holdfast.store.backends.sqlite import FILE
from holdfast.store.backends.tail import NAME as TAIL
from holdfast.store.backends.wal import STAGE
from holdfast.store.inside import references_of
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.repair.rebuild import LOST
from holdfast.store.steady import of_each

_ROWS = "SELECT id >> 32, count(*), sum(length(body) + length(mac)) FROM j GROUP BY 1"
_PACKS = "SELECT id >> 32, count(*), sum(id - first + 1), sum(length(body)) FROM pack GROUP BY 1"
_CATALOG = (
    "SELECT (SELECT coalesce(sum(length(kid) + length(mac) + length(body)), 0) FROM run)"
    " + (SELECT coalesce(sum(length(mac) + length(body)), 0) FROM branch)"
    " + (SELECT coalesce(sum(length(key) + length(value)), 0) FROM meta)"
)
_INTENTS = "SELECT run, count(*), sum(length(intent) + 16) FROM effect GROUP BY run"
_OF_ROWS = "SELECT coalesce(sum(length(body) + length(mac)), 0) FROM j WHERE id BETWEEN ? AND ?"
_OF_PACKS = "SELECT coalesce(sum(length(body)), 0) FROM pack WHERE id BETWEEN ? AND ?"
_OF_INTENTS = "SELECT coalesce(sum(length(intent) + 16), 0) FROM effect WHERE run = ?"

_encode = msgspec.msgpack.Encoder().encode


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a store or of a run: how many things, how many bytes."""

    what: str
    count: int
    bytes: int


class RunSize(msgspec.Struct, frozen=True, kw_only=True):
    """What a run takes in the database; large values are shared, and counted for the store."""

    run: str
    rows: int
    packed: int
    bytes: int


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """A store: its parts, which add up to `bytes`, and its runs, largest first."""

    bytes: int
    parts: list[Part]
    runs: list[RunSize]


def sizes(opened: Opened) -> Sizes:
    """Where the bytes of a store are."""
    file = opened.path / FILE
    opened.records.settle()
    with named(file), contextlib.closing(connect(file, for_reading=True)) as link:
        link.execute("BEGIN")
        parts, runs = _database(link, opened)
    found = {each: _size(each) for each in opened.path.rglob("*") if each.is_file()}
    log, chunks, aside, rest = _sorted(found, opened.path)
    pages = sum(part.bytes for part in parts)
    beyond = found.get(file, 0) + sum(log) - pages  # The log also holds pages that go to the file.
    parts += [
        Part(what="large values", count=len(chunks), bytes=sum(chunks)),
        Part(what="write-ahead log", count=len(log), bytes=max(0, beyond)),
        Part(what="moved aside by repairs", count=len(aside), bytes=sum(aside)),
        Part(what="locks, leases, notes", count=len(rest), bytes=sum(rest)),
    ]
    return Sizes(bytes=sum(part.bytes for part in parts), parts=parts, runs=runs)


def _sorted(found: dict[Path, int], path: Path) -> tuple[list[int], ...]:
    """The sizes of the files of a store: the log's, large values, moved aside, and others."""
    log, chunks, aside, rest = [], [], [], []
    # The index of an empty log is there because the store is open, and goes when it is closed.
    names = (f"{FILE}-wal", f"{FILE}-shm") if found.get(path / f"{FILE}-wal") else ()
    for file, size in found.items():
        match file.relative_to(path).parts:
            case (str(name),) if name in (*names, TAIL):
                log.append(size)
            case ("objects", _, _):
                chunks.append(size)
            case (str(top), _, *_) if top in (LOST, STAGE):
                aside.append(size)
            case (str(name),) if name.startswith(FILE):
                pass
            case _:
                rest.append(size)
    return log, chunks, aside, rest


def _database(link: sqlite3.Connection, opened: Opened) -> tuple[list[Part], list[RunSize]]:
    loose = {no: (count, size) for no, count, size in link.execute(_ROWS)}
    packs = {no: (count, rows, size) for no, count, rows, size in link.execute(_PACKS)}
    intents = {run: (count, size) for run, count, size in link.execute(_INTENTS)}
    page, pages, free = (
        link.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_size", "page_count", "freelist_count")
    )
    runs: list[RunSize] = []
    for run, branches in of_each(
        opened.reader, opened.reader.runs(), lambda run: (run, _branches(opened, run))
    ):
        mine = [loose.get(no, (0, 0)) for no in branches]
        packed = [packs.get(no, (0, 0, 0)) for no in branches]
        used = sum(size for _, size in mine) + sum(size for _, _, size in packed)
        used += intents.get(run.row.no, (0, 0))[1]
        packed_rows = sum(rows for _, rows, _ in packed)
        rows = sum(count for count, _ in mine) + packed_rows
        runs.append(RunSize(run=run.body.id, rows=rows, packed=packed_rows, bytes=used))
    parts = [
        _part("journal rows", list(loose.values())),
        _part("packs of rows", [(count, size) for count, _, size in packs.values()]),
        Part(what="catalog of runs", count=len(runs), bytes=link.execute(_CATALOG).fetchone()[0]),
        _part("index of intents", list(intents.values())),
        Part(what="free pages", count=free, bytes=free * page),
    ]
    rest = page * pages - sum(part.bytes for part in parts)
    parts.append(Part(what="pages around them", count=pages - free, bytes=max(0, rest)))
    return parts, sorted(runs, key=lambda each: each.bytes, reverse=True)


def _branches(opened: Opened, run: Run) -> list[int]:
    return [branch.no for branch in opened.reader.branches(run, with_ledger=True)]


def added(opened: Opened, runs: Iterable[Run]) -> int:
    """The bytes that runs take: rows, packs, intents, and the large values that they name."""
    file, chunks, found = opened.path / FILE, set[bytes](), 0
    opened.records.settle()
    with named(file), contextlib.closing(connect(file, for_reading=True)) as link:
        link.execute("BEGIN")
        for run in runs:
            for branch in _branches(opened, run):
                span = (row_id(branch, 0), row_id(branch + 1, 0) - 1)
                found += int(link.execute(_OF_ROWS, span).fetchone()[0])
                found += int(link.execute(_OF_PACKS, span).fetchone()[0])
            found += int(link.execute(_OF_INTENTS, (run.row.no,)).fetchone()[0])
            found += large(opened, _entries(opened, run), chunks)
    return found


def entries(opened: Opened, run: Run) -> list[Part]:
    """What the journal of a run holds, by kind of entry, before packing; and its large values."""
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    chunks: set[bytes] = set()
    kept = 0
    for entry in _entries(opened, run):
        kind = type(entry).__name__
        count[kind] += 1
        size[kind] += len(_encode(entry))
        kept += large(opened, [entry], chunks)
    parts = [Part(what=kind, count=count[kind], bytes=size[kind]) for kind in count]
    parts.sort(key=lambda part: part.bytes, reverse=True)
    return [*parts, Part(what="large values", count=len(chunks), bytes=kept)]


def _entries(opened: Opened, run: Run) -> Iterator[Entry]:
    for branch in opened.reader.branches(run, with_ledger=True):
        first = row_id(branch.no, seq_of(branch.at) + 1 if branch.parent else 0)
        for placed in opened.reader.rows(branch.no, first, opened.reader.end(branch.no)):
            yield from placed.row.entries


def large(opened: Opened, entries: Iterable[Entry], seen: set[bytes]) -> int:
    """The bytes of the large values that entries name, but for those in `seen`, which they join."""
    found = 0
    for entry in entries:
        for reference in _references(opened, entry):
            for name in opened.chunks.names(reference):
                if name not in seen:
                    seen.add(name)
                    found += _size(_place(opened.path, name))
    return found


def _references(opened: Opened, entry: Entry) -> Iterator[bytes]:
    def fetch(data: bytes) -> bytes:
        try:
            return opened.chunks.fetch(data)
        except Damaged:
            return b""  # `verify` tells of it; what it named is not known.

    return references_of(entry, fetch)


def _place(path: Path, id_: bytes) -> Path:
    name = id_.hex()
    return path / "objects" / name[:2] / name


def _part(what: str, found: list[tuple[int, int]]) -> Part:
    return Part(
        what=what, count=sum(count for count, _ in found), bytes=sum(size for _, size in found)
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
