"""What a store holds, read and checked: runs, branches, journals.

Reading always verifies: a run's row against its hash, journal rows against the chain of hashes
they follow. What does not match is named and never used.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from holdfast.errors import Damaged
from holdfast.model.ids import Point, Range, branch_of, row_id, seq_of, spans
from holdfast.model.journal import Based, Row
from holdfast.model.ledger import Opened
from holdfast.model.run import RunBody
from holdfast.store.backends.base import BranchRow, JournalRow, Name, Records, RunRow
from holdfast.store.chunks import Chunks
from holdfast.store.codec import values
from holdfast.store.graves import refuse_erased
from holdfast.store.seal.base import Seals

T = TypeVar("T")

GAP_ROWS = 32
"""Rows that are read because they stand between two that are wanted; mostly one pack holds all."""

ALL = 1 << 31
"""More entries than a row holds."""
_WITNESSES = 16
"""How many runs are asked whether the store's id is the one they were written under."""

_decode_run = msgspec.msgpack.Decoder(RunBody).decode
_decode_row = msgspec.msgpack.Decoder(Row).decode
_decode_kept = msgspec.msgpack.Decoder(int).decode


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the catalog, checked."""

    row: RunRow
    body: RunBody

    @property
    def ledger(self) -> int:
        """The number of the run in whose ledger this one's effects are: its own, or its root's."""
        origin = self.body.origin
        return origin.ledger or self.row.no if origin is not None else self.row.no


class Branch(BranchRow, frozen=True, kw_only=True):
    """A line of a run's history, checked.

    `kept` is how many entries it keeps of the row it grew from; None: all of them.
    """

    kept: int | None = None

    @property
    def grown_from(self) -> Point:
        """The row it grew from, and how many entries of that it keeps."""
        return self.at, ALL if self.kept is None else self.kept


class Placed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A journal row with its id, its hash and its size on disk.

    One that is not whole holds only the entries that a line of history keeps of it.
    """

    id: int
    mac: bytes
    size: int
    row: Row
    is_whole: bool = True


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

    names_leaves: bool = True
    """Whether saves may name leaves; an older store is left as an older Holdfast reads it."""

    def __init__(self, records: Records, seals: Seals, chunks: Chunks) -> None:
        self._records, self.seals, self.chunks = records, seals, chunks
        self._is_id_sound = False

    @property
    def store_id(self) -> bytes:
        """Which store it is."""
        return self.seals.store_id

    def value(self, data: bytes) -> object:
        """The value of an entry's bytes, also where they name a chunk."""
        return values.decode(self.chunks.fetch(data))

    def find(self, run: str, *, is_new: bool = False) -> Run | None:
        """The run of that id, or None; `RunErased` if there was one and it was erased.

        An id that `is_new` was made by chance a moment ago: no run is looked for.
        """
        row = None if is_new else self._records.run(self.seals.kid(run))
        found = None if row is None else self._open_run(row)
        if found is None:
            self._records.check_catalog()  # "Absent" is believed only of a catalog that agrees.
            self._check_id()
            if not is_new:
                refuse_erased(self._records, self.seals, run)
        elif found.body.id != run:
            where = f"run number {found.row.no}"
            raise Damaged(where, f"it is filed as {run} but says {found.body.id}")
        return found

    def runs(self, before: int | None = None) -> Iterator[Run]:
        """Every run, newest first; `before` is a run number to start below."""
        before, page = 1 << 62 if before is None else before, 64
        self._check_id()
        while True:
            rows = self._records.runs(before, page)
            is_end = len(rows) < page
            self._records.check_catalog((0 if is_end else rows[-1].no, before - 1))
            yield from filter(None, map(self._open_run, rows))
            if is_end:
                return
            before, page = rows[-1].no, 1024

    def _check_id(self) -> None:
        if not self._is_id_sound:
            # Under another id of the store no run is found by its own; every hash contains it.
            rows = self._records.runs(None, _WITNESSES)
            if rows and not any(self._is_ours(row) for row in rows):
                raise Damaged("the store's id", "no run was written under it")
            self._is_id_sound = True

    def _is_ours(self, row: RunRow) -> bool:
        with contextlib.suppress(Damaged):
            return bool(self._open_run(row))
        return False

    def _open_run(self, row: RunRow) -> Run | None:
        """The run of a row; None if it was removed since that was read, and its key with it."""
        try:
            payload = self.seals.of(row.no).open_run(row)
        except Damaged:
            again = self._records.run(row.kid)
            if again is not None and again.no == row.no:
                raise
            return None
        return Run(row=row, body=_decoded(_decode_run, payload, f"run number {row.no}"))

    def history(self, run: Run) -> History:
        """The rows that a restart of the run's head needs."""
        last = self.end(run.row.head)
        first = self.row(last).row.base
        start = first if first >= 0 else self.first(run.row.head)
        rows = list(self.rows(run.row.head, start, last))
        grown = {branch.at: branch for branch in self.line(run.row.head)}
        outside = [
            self.kept(placed, grown.get(placed.id))
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
        """The rows with these ids, checked; close ones are read at once, with those between."""
        wanted = sorted(set(ids))
        for span in spans(wanted, GAP_ROWS):
            branch = self._branch(branch_of(span.first))
            try:
                rows = list(self._segment(branch, span))
            except Damaged:
                # What is damaged may be a row between them that nobody asked for.
                rows = [self.row(id_) for id_ in wanted if span.first <= id_ <= span.last]
            yield from rows

    def beside(self, ids: Iterable[int]) -> dict[Name, Any]:
        """The values of the rows with these ids, and of others, that packs hold beside them.

        Each pack is checked against its hash and the row before it. What is not among them, or
        damaged, is to be read from its row.
        """
        found: dict[Name, Any] = {}
        for span in spans(sorted(set(ids)), GAP_ROWS):
            last, end = -1, b""
            for pack in self._records.beside(span.first, span.last):
                with contextlib.suppress(Damaged):
                    before = end if pack.first == last + 1 else self._mac_before(pack.first)
                    if before == pack.ends[0]:
                        found.update(zip(pack.names, pack.values, strict=True))
                        last, end = pack.last, pack.ends[1]
        return found

    def _mac_before(self, id_: int) -> bytes:
        """The hash that a row follows."""
        branch = self._branch(branch_of(id_))
        return branch.mac if id_ == first_row(branch) else self._one(id_ - 1).mac

    def rows(self, head: int, first: int, last: int) -> Iterator[Placed]:
        """The rows of a line of history from `first` to `last`, checked and without a gap."""
        line = self.line(head)
        for branch, after in zip(line, [*line[1:], None], strict=True):
            if branch.no < branch_of(first):
                continue
            high = last if after is None else after.at
            for placed in self._segment(branch, Range(max(first, first_row(branch)), high)):
                yield self.kept(placed, after)

    def before(self, head: int, row: int) -> Placed:
        """The row before `row` on the line of history that ends in `head`."""
        branch = next(each for each in self.line(head) if each.no == branch_of(row))
        if branch.parent and seq_of(row) == seq_of(branch.at) + 1:
            return self.kept(self.row(branch.at), branch)
        return self.row(row - 1)

    def back(self, head: int, last: int | None = None) -> Iterator[Placed]:
        """The rows of a line of history from its newest, or from row `last`, to its first."""
        line = self.line(head)
        last = self.end(head) if last is None else last
        for branch, after in zip(line[::-1], [None, *line[:0:-1]], strict=True):
            first, high = first_row(branch), last if after is None else after.at
            count = 1  # Mostly one of the newest is wanted, and rows may be large.
            while high >= first:
                low = max(first, high + 1 - count)
                page = list(self._segment(branch, Range(low, high)))
                yield from (self.kept(placed, after) for placed in reversed(page))
                high, count = low - 1, min(2 * count, GAP_ROWS)

    def cut(self, placed: Placed, end: int) -> Placed:
        """A row with its first `end` entries only, as a branch may keep it."""
        entries, base = placed.row.entries[:end], placed.row.base
        if len(entries) == len(placed.row.entries):
            return placed
        if base == placed.id and not any(isinstance(entry, Based) for entry in entries):
            base = self.before(branch_of(placed.id), placed.id).row.base
        return replace(placed, row=replace(placed.row, base=base, entries=entries), is_whole=False)

    def kept(self, placed: Placed, after: Branch | None) -> Placed:
        """What a line of history that goes on with `after` keeps of a row."""
        if after is None or placed.id != after.at:
            return placed
        return placed if after.kept is None else self.cut(placed, after.kept)

    def line(self, head: int) -> list[Branch]:
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

    def branches(self, run: Run, *, with_ledger: bool = False) -> list[Branch]:
        """Every branch of a run's history, oldest first, checked; or what stands beside it too."""
        self._records.check_catalog()
        found = [self._branch(row.no) for row in self._records.branches(run.row.no)]
        return found if with_ledger else [each for each in found if not self._is_ledger(each)]

    def ledger(self, run: Run) -> Branch | None:
        """The branch that is the ledger of a run, if there is one; the oldest one counts."""
        found = self.branches(run, with_ledger=True)
        return next((each for each in found if self._is_ledger(each)), None)

    def _is_ledger(self, branch: Branch) -> bool:
        """Whether a branch stands beside its run's history, as its ledger."""
        if not branch.parent or seq_of(branch.at):
            return False
        entries = self.row(first_row(branch)).row.entries
        return any(isinstance(entry, Opened) for entry in entries)

    def root(self, run: Run) -> Run:
        """The run that a run was forked from first of all, or the run itself."""
        first = self.line(run.row.head)[0]
        return run if first.run == run.row.no else self.owner(first.no)

    def lineage(self, run: Run, *, with_ledger: bool = False) -> list[tuple[Branch, Point]]:
        """The branches of a run, and what it keeps of those it was forked from, oldest first.

        Each with where it ends: the last row, and how many entries of that are kept.
        """
        own = {branch.no: branch for branch in self.branches(run, with_ledger=with_ledger)}
        found = {no: (branch, (self.end(no), ALL)) for no, branch in own.items()}
        for branch in own.values():
            if branch.parent and branch.parent not in own:
                for parent, child in pairwise(self.line(branch.no)):
                    end = child.grown_from
                    if parent.no not in own and found.get(parent.no, (parent, (-1, 0)))[1] < end:
                        found[parent.no] = parent, end
        return [found[no] for no in sorted(found)]

    def end(self, branch: int) -> int:
        """The id of a branch's newest row."""
        last = self._records.end(branch)
        if last < 0:
            raise Damaged(f"branch {branch}", "it holds no rows")
        return last

    def tail(self, branch: int) -> tuple[int, int]:
        """The id of the first row of a branch that is not packed (-1: none), and their bytes."""
        return self._records.tail(branch)

    def intended(self, ledger: int, intent: bytes) -> list[int]:
        """The rows with this intent in the ledger of a run: on all branches, and of its forks."""
        return self._records.intended(ledger, self.seals.of(ledger).mark(intent))

    def ends(self, head: int) -> dict[int, int]:
        """For each branch of a line of history, the last row that is wholly on that line."""
        ends = {after.parent: after.at - (after.kept is not None) for after in self.line(head)}
        ends[head] = row_id(head + 1, 0) - 1
        return ends

    def on_line(self, rows: Iterable[int], head: int) -> list[int]:
        """Those of `rows` that are wholly on the line of history that ends in `head`."""
        ends = self.ends(head)
        return [id_ for id_ in rows if id_ <= ends.get(branch_of(id_), -1)]

    def owner(self, branch: int) -> Run:
        """The run that a branch belongs to."""
        no = self._branch(branch).run
        found = self._records.runs(no + 1, 1)
        run = self._open_run(found[0]) if found and found[0].no == no else None
        if run is None:
            raise Damaged(f"branch {branch}", "it belongs to a run that is not there")
        return run

    def _branch(self, no: int) -> Branch:
        row = self._records.branch(no)
        if row is None:
            raise Damaged(f"branch {no}", "it is named but not there")
        if type(row.at) is not int:
            raise Damaged(f"branch {no}", "it does not say where it grew from")
        before = self._one(row.at).mac if row.parent else b""
        return opened_branch(row, self.seals.of(row.run).open_branch(row, before))

    def _one(self, id_: int) -> JournalRow:
        found = self._records.rows(id_, id_)
        if not found or type(found[0].mac) is not bytes:
            raise Damaged(f"journal row {id_:#x}", "it is missing or has no hash")
        return found[0]

    def _segment(self, branch: BranchRow, span: Range) -> Iterator[Placed]:
        """Rows of one branch, each checked against the one before, without a gap."""
        expected, open_row = span.first, self.seals.of(branch.run).open_row
        before = branch.mac if span.first == first_row(branch) else self._one(span.first - 1).mac
        for row in self._records.rows(span.first, span.last):
            if row.id != expected:
                raise Damaged(f"journal row {expected:#x}", "it is missing")
            payload = open_row(row, before)
            try:
                decoded = _decode_row(payload)
            except (ValueError, RecursionError):
                decoded = _decoded(_decode_row, payload, f"journal row {row.id:#x}")  # says where
            yield Placed(id=row.id, mac=row.mac, size=len(row.body), row=decoded)
            before, expected = row.mac, row.id + 1
        if expected <= span.last:
            raise Damaged(f"journal row {expected:#x}", "it is missing")


def opened_branch(row: BranchRow, payload: bytes) -> Branch:
    """A branch, with what its row holds."""
    kept = _decoded(_decode_kept, payload, f"branch {row.no}") if payload else None
    return Branch(**asdict(row), kept=kept)


def first_row(branch: BranchRow) -> int:
    """The id of the first row of a branch."""
    return row_id(branch.no, seq_of(branch.at) + 1 if branch.parent else 0)


def _decoded(decode: Callable[[bytes], T], payload: bytes, where: str) -> T:
    try:
        return decode(payload)
    except (ValueError, RecursionError) as error:
        raise Damaged(where, f"it cannot be decoded ({error})") from error
