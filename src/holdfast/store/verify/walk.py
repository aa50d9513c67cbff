"""Every byte of a store against its hashes; goes on after damage and names all of it.

What is checked: SQLite's own structure; each run, branch and journal row against its hash and its
place; that no row of a branch is missing and none belongs to nothing; that bodies are frames of
entries; that catalog, journal and index of intents say the same; that what was acknowledged is
there. `deep` decodes every encoded value as well.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from holdfast.errors import Damaged, NotStorable
from holdfast.model import journal
from holdfast.model.ids import branch_of, row_id, seq_of
from holdfast.model.run import RunBody
from holdfast.store.backends.base import BranchRow, JournalRow, RunRow
from holdfast.store.backends.connection import connect, named
from holdfast.store.backends.schema import FORMAT
from holdfast.store.backends.sqlite import FILE
from holdfast.store.codec import values
from holdfast.store.inside import references_in, states_of, values_of
from holdfast.store.open import Opened
from holdfast.store.owners import owner
from holdfast.store.reader import Branch, Run, opened_branch
from holdfast.store.seal.files import in_clear
from holdfast.store.steady import TRIES_MAX
from holdfast.store.verify.lines import Lines

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
_decode_row = msgspec.msgpack.Decoder(journal.Row).decode
_decode_any = msgspec.msgpack.Decoder().decode

Progress = Callable[[int, int], None]
"""Told how many rows were read, of how many."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A damaged thing, by name; `run` is the id of the run it belongs to, where that is known.

    `good` is the newest point of that run that restores, where one was looked for.
    """

    where: str
    why: str
    run: str | None = None
    good: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification read and found; no findings means that the store is whole.

    `points` were restored, `points_unknown` hold what this program does not know (`points_unread`:
    what that is, of the first), `points_left` were not tried; all are 0 where that was not asked.
    """

    path: str
    is_deep: bool
    findings: list[Finding]
    more: int = 0
    runs: int = 0
    branches: int = 0
    rows: int = 0
    bytes: int = 0
    points: int = 0
    points_unknown: int = 0
    points_unread: str = ""
    points_left: int = 0
    format: int = FORMAT
    sqlite: str = sqlite3.sqlite_version

    @property
    def is_whole(self) -> bool:
        """Whether everything is as it was written."""
        return not self.findings


def verify(opened: Opened, *, deep: bool = False, progress: Progress | None = None) -> Report:
    """Read the whole store; other processes may go on writing meanwhile."""
    work = _Verification(opened, deep=deep, progress=progress or _silent)
    work.look_around()
    work.read_runs()
    return work.report()


def unreadable(path: Path, damage: Damaged, *, is_deep: bool) -> Report:
    """The report on a store that is too damaged to be opened."""
    found = Finding(where=damage.where, why=damage.why)
    return Report(path=str(path), is_deep=is_deep, findings=[found])


class _Verification:
    """One walk over one store."""

    def __init__(self, opened: Opened, *, deep: bool, progress: Progress) -> None:
        self._records, self._seals = opened.records, opened.reader.seals
        self._chunks, self._reader = opened.chunks, opened.reader
        self._path, self._deep, self._progress = opened.path, deep, progress
        self._findings: list[Finding] = []
        self._more = 0
        self._run: str | None = None
        self._ledger = 0
        self._runs = self._branches = self._rows = self._bytes = self._total = 0

    def report(self) -> Report:
        """What was read and found."""
        return Report(
            path=str(self._path),
            is_deep=self._deep,
            findings=self._findings,
            more=self._more,
            runs=self._runs,
            branches=self._branches,
            rows=self._rows,
            bytes=self._bytes,
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
        except (TypeError, ValueError, RecursionError) as error:
            # A text stands where a number must, or what is read after a gap is no value at all.
            self._find(where, f"it holds what Holdfast never writes ({error})")

    def look_around(self) -> None:
        """What concerns the store as a whole."""
        for id_ in in_clear(self._path) if self._records.is_sealed else ():
            why = "it is not sealed, in a store that is encrypted; `holdfast repair` moves it aside"
            self._find(f"chunk {id_.hex()}", f"{why}, `holdfast keys init` removes it")
        with self._finding("database"):
            for fault in self._records.integrity():
                self._find("database", f"SQLite's integrity check says: {fault}")
        with self._finding("head note"):
            for row in self._records.missing():
                self._run = owner(self._reader, row)
                self._find(f"journal row {row:#x}", "it was acknowledged and is missing or changed")
            self._run = None
        with self._finding("tail of the journal"):
            beside = self._records.beside_database()
            self._total = len(beside)
            for no in sorted({branch_of(id_) for id_ in beside}):
                if self._records.branch(no) is None:
                    self._find(f"rows of no branch, number {no:#x}", "nothing leads to it")
        file = self._path / FILE
        with (
            self._finding("database"),
            named(file),
            contextlib.closing(connect(file, for_reading=True)) as link,
        ):
            self._total += link.execute(_COUNT).fetchone()[0]
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
                self._read_run(row)
            if len(page) < PAGE:
                return
            before = page[-1].no

    def _read_run(self, row: RunRow) -> None:
        """Read a run; again if there are findings, until they are the same, or the run is gone.

        Garbage collection or an erasure may take away what is being read.
        """
        known = len(self._findings)
        counts = self._runs, self._branches, self._rows, self._bytes, self._more
        before: list[Finding] = []
        for _ in range(TRIES_MAX):
            self._read_whole(row)
            found = self._findings[known:]
            if found == before:
                return
            before = found
            del self._findings[known:]
            self._runs, self._branches, self._rows, self._bytes, self._more = counts
            if not self._is_there(row):
                return
        self._read_whole(row)

    def _is_there(self, row: RunRow) -> bool:
        """Whether the catalog still has a run; where it cannot be read, it is taken to have it."""
        with contextlib.suppress(Damaged, TypeError, ValueError):
            return [each.no for each in self._records.runs(row.no + 1, 1)] == [row.no]
        return True

    def _read_whole(self, row: RunRow) -> None:
        self._runs += 1
        where = f"run number {row.no}"
        body = self._body(row, where)
        self._run = None if body is None else body.id
        self._ledger = row.no if body is None else Run(row=row, body=body).ledger
        branches: list[BranchRow] = []
        with self._finding(where):
            branches = self._records.branches(row.no)
        line = Lines()
        for branch in branches:
            self._branches += 1
            self._read_branch(branch, line)
        if row.head not in {branch.no for branch in branches}:
            self._find(where, f"its head, branch {row.head}, is not there")
        elif body is not None:
            with self._finding(where):
                # A row that changed meanwhile is behind the journal: somebody works on the run.
                if self._records.run(row.kid) == row:
                    self._compare(row, body, line)

    def _body(self, row: RunRow, where: str) -> RunBody | None:
        self._run = None
        with self._finding(where):
            body = _decoded(_decode_run, self._seals.of(row.no).open_run(row), where)
            if row.kid != self._seals.kid(body.id):
                self._find(where, "it is filed under another id than it says")
            return body
        return None

    def _read_branch(self, found: BranchRow, line: Lines) -> None:
        where = f"branch {found.no}"
        first = 0
        branch = opened_branch(found, b"")
        with self._finding(where):
            before = b""
            if found.parent:
                first = seq_of(found.at) + 1
                before = self._mac_at(found)
            branch = opened_branch(found, self._seals.of(found.run).open_branch(found, before))
        if not line.grow(branch, self._inherited(branch, line)):
            self._find(where, f"it grew from branch {branch.parent}, which is not an older one")
        with self._finding(where):
            for damage in self._records.unsound(branch.no):
                self._find(damage.where, damage.why)
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

    def _inherited(self, branch: Branch, line: Lines) -> int | None:
        """The newest base at the point of another run from which a fork grew."""
        if not branch.parent or line.knows(branch.parent):
            return None
        with self._finding(f"branch {branch.no}"):
            parent = self._records.branch(branch.parent)
            if parent is not None and parent.no < branch.no and parent.run != branch.run:
                at = self._reader.row(branch.at)
                return self._reader.cut(at, branch.grown_from[1]).row.base
        return None

    def _mac_at(self, branch: BranchRow) -> bytes:
        found = self._records.rows(branch.at, branch.at)
        if not found or branch_of(branch.at) != branch.parent:
            raise Damaged(f"branch {branch.no}", f"row {branch.at:#x} it grew from is missing")
        return found[0].mac

    def _rows_of(self, branch: BranchRow, first: int) -> Iterator[JournalRow]:
        """Rows of a branch in order, a page at a time; a page that cannot be read is noted."""
        where, end = f"rows of branch {branch.no}", -1
        with self._finding(where):
            end = self._records.end(branch.no)
        low = first
        while low <= end:
            page: list[JournalRow] = []
            with self._finding(where):
                page = self._records.rows(low, min(low + PAGE - 1, end))
            yield from page
            self._progress(self._rows, self._total)
            low += PAGE
            if not page:
                # A damaged key may say that the branch is billions of rows long.
                after, low = low, end + 1
                with self._finding(where):
                    low = self._records.next_row(after, end)

    def _read_row(self, branch: Branch, row: JournalRow, before: bytes | None, line: Lines) -> None:
        self._rows += 1
        where = f"journal row {row.id:#x}"
        with self._finding(where):
            seals = self._seals.of(branch.run)
            payload = seals.open_row(row, before)
            self._bytes += len(row.body)
            decoded = _decoded(_decode_row, payload, where)
            for fault in line.read(branch, row.id, decoded):
                self._find(where, fault)
            for intent in line.new_intents(branch, row.id, decoded):
                mark = self._seals.of(self._ledger).mark(intent)
                if row.id not in self._records.intended(self._ledger, mark):
                    self._find(where, "an effect's intent in it is not indexed")
            for entry in decoded.entries:
                self._read_values(entry, where)

    def _read_values(self, entry: journal.Entry, where: str) -> None:
        """What an entry holds: large values lie beside the journal and must be there and true."""
        for is_state, found in ((False, values_of(entry)), (True, states_of(entry))):
            for name, data in found:
                place = f"{where}, {name}"
                with self._finding(place):
                    whole = self._chunks.fetch(data)
                    for reference in references_in(whole) if is_state else ():
                        self._chunks.fetch(reference)
                    if self._deep:
                        _decode_value(whole, place, is_state=is_state)

    def _compare(self, row: RunRow, body: RunBody, line: Lines) -> None:
        """Whether the catalog says of a run what its journal says."""
        for fault in line.compare(row, body):
            self._find(f"run {body.id}", fault)


def _decoded(decode: Callable[[bytes], T], payload: bytes, where: str) -> T:
    try:
        return decode(payload)
    except (ValueError, RecursionError) as error:
        raise Damaged(where, f"it cannot be decoded ({error})") from error


def _decode_value(data: bytes, where: str, *, is_state: bool) -> None:
    """Raise `Damaged` unless a value can be read from `data`.

    A class that this process does not know is no damage: its bytes are a value all the same.
    """
    if is_state:
        _decoded(_decode_any, data, where)
    else:
        with contextlib.suppress(NotStorable):
            values.decode(data, where=where)


def _silent(_done: int, _total: int) -> None:
    """Nobody watches."""
