"""What a store holds, read and checked: runs, branches, journals.

Reading always verifies: a run's row against its hash, journal rows against the chain of hashes
they follow. What does not match is named and never used.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from holdfast.errors import Damaged
from holdfast.model.ids import Range, branch_of, row_id, seq_of
from holdfast.model.journal import Based, Row
from holdfast.model.ledger import Opened
from holdfast.model.run import RunBody
from holdfast.store.backends.base import BranchRow, JournalRow, Records, RunRow
from holdfast.store.chunks import Chunks, is_reference
from holdfast.store.codec import values
from holdfast.store.seal.base import Seals

T = TypeVar("T")

GAP_ROWS = 32
"""Rows that are read because they stand between two that are wanted; mostly one pack holds all."""

_decode_run = msgspec.msgpack.Decoder(RunBody).decode
_decode_row = msgspec.msgpack.Decoder(Row).decode


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the catalog, checked."""

    row: RunRow
    body: RunBody


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A journal row with its id, its hash and its size on disk."""

    id: int
    mac: bytes
    size: int
    row: Row


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What a restart needs: the rows since the newest base, and earlier ones it points to."""

    run: Run
    rows: list[Placed]
    outside: list[Placed]

    @property
    def last(self) -> Placed:
        """The newest row of the run's head."""
        return self.rows[-1]


class Reader:
    """Checked reads over any backend of rows."""

    def __init__(self, records: Records, seals: Seals, chunks: Chunks) -> None:
        self._records, self.seals, self.chunks = records, seals, chunks

    @property
    def store_id(self) -> bytes:
        """Which store it is."""
        return self.seals.store_id

    def value(self, data: bytes) -> object:
        """The value of an entry's bytes, also where they name a chunk."""
        return values.decode(self.chunks.fetch(data) if is_reference(data) else data)

    def find(self, run: str) -> Run | None:
        """The run of that id, or None."""
        row = self._records.run(self.seals.kid(run))
        if row is None:
            return None
        found = self._open_run(row)
        if found.body.id != run:
            raise Damaged(f"run number {row.no}", f"it is filed as {run} but says {found.body.id}")
        return found

    def runs(self, before: int | None = None) -> Iterator[Run]:
        """Every run, newest first; `before` is a run number to start below."""
        page = 64
        while True:
            rows = self._records.runs(before, page)
            for row in rows:
                yield self._open_run(row)
            if len(rows) < page:
                return
            before, page = rows[-1].no, 1024

    def _open_run(self, row: RunRow) -> Run:
        payload = self.seals.of(row.no).open_run(row)
        return Run(row=row, body=_decoded(_decode_run, payload, f"run number {row.no}"))

    def history(self, run: Run) -> History:
        """The rows that a restart of the run's head needs."""
        last = self._records.last(run.row.head)
        if last is None:
            raise Damaged(f"run {run.body.id}", "its newest branch holds no rows")
        first = self.row(last.id).row.base
        start = first if first >= 0 else self.first(run.row.head)
        rows = list(self.rows(run.row.head, start, last.id))
        outside = [
            placed
            for entry in rows[0].row.entries
            if isinstance(entry, Based)
            for each in entry.outside
            for placed in self._segment(self._branch(branch_of(each.first)), each)
        ]
        return History(run=run, rows=rows, outside=outside)

    def row(self, id_: int) -> Placed:
        """One journal row, checked against the row before it."""
        return next(iter(self._segment(self._branch(branch_of(id_)), Range(id_, id_))))

    def some(self, ids: Iterable[int]) -> Iterator[Placed]:
        """The rows with these ids, each checked against the row before it.

        Rows that stand close together are read at once, with those between them.
        """
        wanted = sorted(set(ids))
        for span in _spans(wanted):
            yield from self._segment(self._branch(branch_of(span.first)), span)

    def rows(self, head: int, first: int, last: int) -> Iterator[Placed]:
        """The rows of a line of history from `first` to `last`, checked and without a gap."""
        line = self.line(head)
        for branch, after in zip(line, [*line[1:], None], strict=True):
            if branch.no < branch_of(first):
                continue
            low = max(first, row_id(branch.no, _first_seq(branch)))
            high = last if after is None else after.at
            yield from self._segment(branch, Range(low, high))

    def line(self, head: int) -> list[BranchRow]:
        """The branches from the first to `head`, each grown from the one before."""
        line = [self._branch(head)]
        while line[-1].parent:
            if line[-1].parent >= line[-1].no:
                raise Damaged(f"branch {line[-1].no}", "it grows from a branch that came later")
            line.append(self._branch(line[-1].parent))
        return line[::-1]

    def first(self, head: int) -> int:
        """The id of the first row of the line of history that ends in `head`."""
        return row_id(self.line(head)[0].no, 0)

    def branches(self, run: Run, *, with_ledger: bool = False) -> list[BranchRow]:
        """Every branch of a run's history, oldest first, checked; or what stands beside it too."""
        found = [self._branch(row.no) for row in self._records.branches(run.row.no)]
        return found if with_ledger else [each for each in found if not self._is_ledger(each)]

    def ledger(self, run: Run) -> BranchRow | None:
        """The branch that is the ledger of a run, if there is one; the oldest one counts."""
        found = self.branches(run, with_ledger=True)
        return next((each for each in found if self._is_ledger(each)), None)

    def _is_ledger(self, branch: BranchRow) -> bool:
        """Whether a branch stands beside its run's history, as its ledger."""
        if not branch.parent or seq_of(branch.at):
            return False
        first = self.row(row_id(branch.no, _first_seq(branch)))
        return any(isinstance(entry, Opened) for entry in first.row.entries)

    def root(self, run: Run) -> Run:
        """The run that a run was forked from first of all, or the run itself."""
        no = self.line(run.row.head)[0].run
        if no == run.row.no:
            return run
        rows = self._records.runs(no + 1, 1)
        if not rows or rows[0].no != no:
            raise Damaged(f"run number {no}", "it is named but not there")
        return self._open_run(rows[0])

    def end(self, branch: int) -> int:
        """The id of a branch's newest row."""
        last = self._records.last(branch)
        if last is None:
            raise Damaged(f"branch {branch}", "it holds no rows")
        return last.id

    def tail(self, branch: int) -> tuple[int, int]:
        """The id of the first row of a branch that is not packed (-1: none), and their bytes."""
        return self._records.tail(branch)

    def intended(self, run: int, intent: bytes, head: int) -> int:
        """In how many rows this intent is on the line of history that ends in `head`."""
        return len(self.intended_rows(run, intent, head))

    def intended_rows(self, run: int, intent: bytes, head: int) -> list[int]:
        """The rows with this intent on the line of history that ends in `head`, in order."""
        ends = {after.parent: after.at for after in self.line(head)}
        ends[head] = row_id(head + 1, 0)
        found = self._records.intended(run, self.seals.of(run).mark(intent))
        return [id_ for id_ in found if id_ <= ends.get(branch_of(id_), -1)]

    def _branch(self, no: int) -> BranchRow:
        row = self._records.branch(no)
        if row is None:
            raise Damaged(f"branch {no}", "it is named but not there")
        if type(row.at) is not int:
            raise Damaged(f"branch {no}", "it does not say where it grew from")
        before = self._one(row.at).mac if row.parent else b""
        self.seals.of(row.run).check_branch(row, before)
        return row

    def _one(self, id_: int) -> JournalRow:
        found = self._records.rows(id_, id_)
        if not found or type(found[0].mac) is not bytes:
            raise Damaged(f"journal row {id_:#x}", "it is missing or has no hash")
        return found[0]

    def _segment(self, branch: BranchRow, span: Range) -> Iterator[Placed]:
        """Rows of one branch, each checked against the one before, without a gap."""
        expected = span.first
        is_first = seq_of(span.first) == _first_seq(branch)
        before = branch.mac if is_first else self._one(span.first - 1).mac
        open_row = self.seals.of(branch.run).open_row
        for row in self._records.rows(span.first, span.last):
            if row.id != expected:
                raise Damaged(f"journal row {expected:#x}", "it is missing")
            payload = open_row(row, before)
            try:
                decoded = _decode_row(payload)
            except (msgspec.DecodeError, RecursionError):
                decoded = _decoded(_decode_row, payload, f"journal row {row.id:#x}")  # says where
            yield Placed(id=row.id, mac=row.mac, size=len(row.body), row=decoded)
            before, expected = row.mac, row.id + 1
        if expected <= span.last:
            raise Damaged(f"journal row {expected:#x}", "it is missing")


def _spans(ids: list[int]) -> Iterator[Range]:
    """Ranges that cover sorted row ids, without large gaps and each on one branch."""
    first = last = -1
    for id_ in ids:
        if first >= 0 and (id_ - last > GAP_ROWS or branch_of(id_) != branch_of(last)):
            yield Range(first, last)
            first = -1
        first, last = first if first >= 0 else id_, id_
    if first >= 0:
        yield Range(first, last)


def _first_seq(branch: BranchRow) -> int:
    return seq_of(branch.at) + 1 if branch.parent else 0


def _decoded(decode: Callable[[bytes], T], payload: bytes, where: str) -> T:
    try:
        return decode(payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(where, f"it cannot be decoded ({error})") from error
