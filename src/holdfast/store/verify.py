"""Every byte of a store against its hashes; goes on after damage and names all of it.

What is checked: SQLite's own structure; each run, branch and journal row against its hash and its
place; that no row of a branch is missing and none belongs to nothing; that bodies are frames of
entries; that catalog, journal and index of intents say the same; that what was acknowledged is
there. `deep` decodes every encoded value as well.
"""

import contextlib
import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from holdfast.errors import Damaged, NotStorable
from holdfast.model.ids import branch_of, row_id, seq_of
from holdfast.model.journal import (
    Answer,
    Based,
    Declined,
    Entry,
    Failed,
    Finished,
    Happened,
    Intended,
    LoopLeft,
    Noted,
    Raised,
    Resumed,
    Row,
    Saved,
    Started,
    TurnEnded,
)
from holdfast.model.run import RunBody, Status
from holdfast.store.backends.base import BranchRow, JournalRow, RunRow
from holdfast.store.backends.connection import connect, named
from holdfast.store.backends.schema import FORMAT
from holdfast.store.backends.sqlite import FILE, SqliteRecords
from holdfast.store.chain import check_branch, check_row, check_run, keyed_id
from holdfast.store.codec import values
from holdfast.store.codec.frame import open_frame

T = TypeVar("T")

PAGE = 256
FINDINGS_MAX = 1000
"""Enough to see how far the damage goes; a count says how many more there are."""

_COUNT = "SELECT (SELECT count(*) FROM j) + (SELECT coalesce(sum(id - first + 1), 0) FROM pack)"
_STRAYS = {
    "branch of no run": "SELECT no FROM branch WHERE run NOT IN (SELECT no FROM run)",
    "rows of no branch": (
        "SELECT id >> 32 FROM j UNION SELECT id >> 32 FROM pack EXCEPT SELECT no FROM branch"
    ),
    "indexed intent of no row": (
        "SELECT id FROM effect WHERE NOT EXISTS (SELECT 1 FROM j WHERE j.id=effect.id) AND "
        "NOT EXISTS (SELECT 1 FROM pack WHERE pack.first<=effect.id AND pack.id>=effect.id "
        "AND pack.id>>32=effect.id>>32)"
    ),
}

_decode_run = msgspec.msgpack.Decoder(RunBody).decode
_decode_row = msgspec.msgpack.Decoder(Row).decode
_decode_any = msgspec.msgpack.Decoder().decode

Progress = Callable[[int, int], None]
"""Told how many rows were read, of how many."""


class Whole(Protocol):
    """An open store, as far as it is looked at here."""

    @property
    def path(self) -> Path:
        """Its directory."""

    @property
    def records(self) -> SqliteRecords:
        """Its rows."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A damaged thing, by name; `run` is the id of the run it belongs to, where that is known."""

    where: str
    why: str
    run: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification read and found; no findings means that the store is whole."""

    path: str
    format: int
    sqlite: str
    is_deep: bool
    runs: int
    branches: int
    rows: int
    bytes: int
    findings: list[Finding]
    more: int

    @property
    def is_whole(self) -> bool:
        """Whether everything is as it was written."""
        return not self.findings


def verify(opened: Whole, *, deep: bool = False, progress: Progress | None = None) -> Report:
    """Read the whole store; other processes may go on writing meanwhile."""
    work = _Verification(opened, deep=deep, progress=progress or _silent)
    work.look_around()
    work.read_runs()
    return work.report()


def unreadable(path: Path, damage: Damaged, *, is_deep: bool) -> Report:
    """The report on a store that is too damaged to be opened."""
    return Report(
        path=str(path),
        format=FORMAT,
        sqlite=sqlite3.sqlite_version,
        is_deep=is_deep,
        runs=0,
        branches=0,
        rows=0,
        bytes=0,
        findings=[Finding(where=damage.where, why=damage.why)],
        more=0,
    )


class _Verification:
    """One walk over one store."""

    def __init__(self, opened: Whole, *, deep: bool, progress: Progress) -> None:
        self._records, self._store_id = opened.records, opened.records.store_id
        self._path, self._deep, self._progress = opened.path, deep, progress
        self._findings: list[Finding] = []
        self._more = 0
        self._run: str | None = None
        self._runs = self._branches = self._rows = self._bytes = self._total = 0

    def report(self) -> Report:
        """What was read and found."""
        return Report(
            path=str(self._path),
            format=FORMAT,
            sqlite=sqlite3.sqlite_version,
            is_deep=self._deep,
            runs=self._runs,
            branches=self._branches,
            rows=self._rows,
            bytes=self._bytes,
            findings=self._findings,
            more=self._more,
        )

    def _find(self, where: str, why: str) -> None:
        found = Finding(where=where, why=why, run=self._run)
        if found in self._findings:
            return  # A damaged pack is met with every page that reaches into it.
        if len(self._findings) < FINDINGS_MAX:
            self._findings.append(found)
        else:
            self._more += 1

    @contextlib.contextmanager
    def _finding(self, where: str) -> Iterator[None]:
        """Note damage and go on after the block."""
        try:
            yield
        except Damaged as damage:
            self._find(damage.where, damage.why)
        except (AttributeError, TypeError, OverflowError, ValueError) as error:
            # A column of another type, or a number out of range, where a hash is to be made.
            self._find(where, f"it holds something that Holdfast never writes ({error})")

    def look_around(self) -> None:
        """What concerns the store as a whole."""
        with self._finding("database"):
            for fault in self._records.integrity():
                self._find("database", f"SQLite's integrity check says: {fault}")
        with self._finding("head note"):
            for row in self._records.missing():
                self._find(f"journal row {row:#x}", "it was acknowledged and is missing or changed")
        file = self._path / FILE
        with (
            self._finding("database"),
            named(file),
            contextlib.closing(connect(file, for_reading=True)) as link,
        ):
            self._total = link.execute(_COUNT).fetchone()[0]
            for what, sql in _STRAYS.items():
                for (number,) in link.execute(sql).fetchmany(PAGE):
                    self._find(f"{what}, number {number:#x}", "nothing leads to it")

    def read_runs(self) -> None:
        """Every run with its branches and rows."""
        before: int | None = None
        while True:
            page: list[RunRow] = []
            with self._finding("catalog of runs"):
                page = self._records.runs(before, PAGE)
            for row in page:
                self._runs += 1
                self._read_run(row)
            if len(page) < PAGE:
                return
            before = page[-1].no

    def _read_run(self, row: RunRow) -> None:
        self._run = None
        where = f"run number {row.no}"
        body: RunBody | None = None
        with self._finding(where):
            check_run(self._store_id, row)
            body = _opened(_decode_run, row.body, where)
            self._run = body.id
            if row.kid != keyed_id(self._store_id, body.id):
                self._find(where, "it is filed under another id than it says")
        branches: list[BranchRow] = []
        with self._finding(where):
            branches = self._records.branches(row.no)
        line = _Lines()
        for branch in branches:
            self._branches += 1
            self._read_branch(branch, line)
        if row.head not in {branch.no for branch in branches}:
            self._find(where, f"its head, branch {row.head}, is not there")
        elif body is not None:
            self._compare(row, body, line)

    def _read_branch(self, branch: BranchRow, line: "_Lines") -> None:
        where = f"branch {branch.no}"
        first = 0
        with self._finding(where):
            before = b""
            if branch.parent:
                first = seq_of(branch.at) + 1
                before = self._mac_at(branch)
            check_branch(self._store_id, branch, before)
        line.grow(branch)
        mac: bytes | None = branch.mac
        expected = row_id(branch.no, first)
        for row in self._rows_of(branch, expected):
            if row.id != expected:
                last = f" to {row.id - 1:#x}" if row.id - 1 > expected else ""
                self._find(f"journal row {expected:#x}{last}", "it is missing")
                mac = None
            self._read_row(branch, row, mac, line)
            mac, expected = row.mac, row.id + 1
        if expected == row_id(branch.no, first):
            self._find(where, "it holds no rows")

    def _mac_at(self, branch: BranchRow) -> bytes:
        found = self._records.rows(branch.at, branch.at)
        if not found or branch_of(branch.at) != branch.parent:
            raise Damaged(f"branch {branch.no}", f"row {branch.at:#x} it grew from is missing")
        return found[0].mac

    def _rows_of(self, branch: BranchRow, first: int) -> Iterator[JournalRow]:
        """Rows of a branch in order, a page at a time; a page that cannot be read is noted."""
        where, end = f"rows of branch {branch.no}", -1
        with self._finding(where):
            last = self._records.last(branch.no)
            end = -1 if last is None else last.id
        for low in range(first, end + 1, PAGE):
            page: list[JournalRow] = []
            with self._finding(where):
                page = self._records.rows(low, min(low + PAGE - 1, end))
            yield from page
            self._progress(self._rows, self._total)

    def _read_row(
        self, branch: BranchRow, row: JournalRow, before: bytes | None, line: "_Lines"
    ) -> None:
        self._rows += 1
        self._bytes += len(row.body)
        where = f"journal row {row.id:#x}"
        with self._finding(where):
            if before is not None:
                check_row(self._store_id, row, before)
            decoded = _opened(_decode_row, row.body, where)
            for fault in line.read(branch, row.id, decoded):
                self._find(where, fault)
            for intent in line.new_intents(branch, row.id, decoded):
                if row.id not in self._records.intended(branch.run, intent):
                    self._find(where, "an effect's intent in it is not indexed")
            if self._deep:
                for entry in decoded.entries:
                    _decode_inside(entry, where)

    def _compare(self, row: RunRow, body: RunBody, line: "_Lines") -> None:
        """Whether the catalog says of a run what its journal says."""
        where = f"run {body.id}"
        if row.epoch != line.epoch:
            self._find(where, f"its epoch is {row.epoch}, its journal goes up to {line.epoch}")
        last = line.last.get(row.head)
        recorded = Status.RUNNING
        if isinstance(last, Finished):
            recorded = Status.FINISHED
        elif isinstance(last, Failed):
            recorded = next((each for each in Status if each == last.status), Status.FAILED)
        if last is not None and recorded is not body.status:
            self._find(where, f"its status is {body.status}, its journal says {recorded}")
        if line.started is not None and line.started != (body.agent, body.module):
            self._find(where, "its agent is not the one its journal was started with")


class _Lines:
    """What the branches of one run have said so far."""

    def __init__(self) -> None:
        self.epoch = 1
        self.started: tuple[str, str] | None = None
        self.last: dict[int, Entry] = {}
        self._bases: dict[int, list[int]] = {}
        self._keys: dict[int, dict[str, int]] = {}
        self._parents: dict[int, tuple[int, int]] = {}

    def grow(self, branch: BranchRow) -> None:
        """A branch begins."""
        self._parents[branch.no] = (branch.parent, branch.at)
        self._bases[branch.no], self._keys[branch.no] = [], {}

    def read(self, branch: BranchRow, id_: int, row: Row) -> Iterator[str]:
        """Take a row in; says what in it does not fit what came before."""
        is_first = not branch.parent and seq_of(id_) == 0
        for entry in row.entries:
            if isinstance(entry, Started) != is_first or (is_first and len(row.entries) > 1):
                yield "the start of a run stands in its first row, alone"
                break
        for entry in row.entries:
            if isinstance(entry, Started):
                self.started = (entry.agent, entry.module)
            elif isinstance(entry, Resumed):
                self.epoch = max(self.epoch, entry.epoch)
            elif isinstance(entry, Based):
                self._bases[branch.no].append(id_)
        if row.entries:
            self.last[branch.no] = row.entries[-1]
        else:
            yield "it holds no entries"
        if row.base != self._newest_base(branch.no, id_):
            yield f"it names {row.base:#x} as its base, which is not the newest before it"

    def _newest_base(self, branch: int, until: int) -> int:
        while branch in self._bases:
            for id_ in reversed(self._bases[branch]):
                if id_ <= until:
                    return id_
            branch, until = self._parents[branch]
        return -1

    def new_intents(self, branch: BranchRow, id_: int, row: Row) -> Iterator[bytes]:
        """The intents that a row records for the first time on its line of history."""
        for entry in row.entries:
            if isinstance(entry, Intended) and not self._is_known(branch.no, entry.key, id_):
                self._keys[branch.no][entry.key] = id_
                text = entry.call.name.encode() + b"\0" + entry.call.digest
                yield hashlib.sha256(text).digest()[:16]

    def _is_known(self, branch: int, key: str, until: int) -> bool:
        while branch in self._keys:
            if self._keys[branch].get(key, until + 1) <= until:
                return True
            branch, until = self._parents[branch]
        return False


def _opened(decode: Callable[[bytes], T], body: bytes, where: str) -> T:
    try:
        return decode(open_frame(body, where))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(where, f"it cannot be decoded ({error})") from error


def _decode_inside(entry: Entry, where: str) -> None:
    """Raise `Damaged` unless every encoded value of an entry can be read.

    A class that this process does not know is no damage: its bytes are a value all the same.
    """
    for name, data in _encoded(entry):
        with contextlib.suppress(NotStorable):
            values.decode(data, where=f"{where}, {name}")
    for name, data in _states(entry):
        try:
            _decode_any(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Damaged(f"{where}, {name}", f"it cannot be decoded ({error})") from error


def _encoded(entry: Entry) -> Iterator[tuple[str, bytes]]:
    match entry:
        case Answer() | Happened() | Noted():
            yield f"what {entry.call.name} gave", entry.value
        case Intended():
            yield f"arguments of {entry.call.name}", entry.args
        case Started():
            yield "arguments of the run", entry.args
        case Finished():
            yield "result of the run", entry.value
        case Saved():
            yield "state at a checkpoint", entry.state
        case Raised() | Declined() | Failed() if entry.error and entry.error.args is not None:
            yield "arguments of an error", entry.error.args
        case _:
            pass


def _states(entry: Entry) -> Iterator[tuple[str, bytes]]:
    match entry:
        case Based():
            yield "base of the state", entry.state
        case TurnEnded() | LoopLeft() | Finished() if entry.delta is not None:
            yield "change of the state", entry.delta
        case _:
            pass


def _silent(_done: int, _total: int) -> None:
    """Nobody watches."""
