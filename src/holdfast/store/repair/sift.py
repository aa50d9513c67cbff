"""Which rows of a run are true: the longest beginning of each branch that every hash confirms."""

import contextlib
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from holdfast.errors import Damaged
from holdfast.model.ids import Point, row_id, seq_of
from holdfast.model.journal import Based, Entry, Row
from holdfast.store.backends.base import BranchRow, JournalRow
from holdfast.store.chunks import Chunks
from holdfast.store.inside import references_in, states_of, values_of
from holdfast.store.reader import Branch, Placed, opened_branch
from holdfast.store.reference import is_reference, parts
from holdfast.store.repair.salvage import Salvage
from holdfast.store.seal.base import Seals
from holdfast.store.writer import branch_payload, make_row

_decode_row = msgspec.msgpack.Decoder(Row).decode
_BAD = (Damaged, TypeError, ValueError, LookupError, RecursionError)


class Sifted(msgspec.Struct, kw_only=True):
    """A branch: its own row, the rows that are true, and what comes after them.

    `lost` are the rows from the first bad one on, those that cannot be read included; `rest` are
    those of them that can be read, true among themselves. `why` says what was wrong first.
    `made` are the last ones of `kept` where those are written anew: the sound beginning of the
    first bad row, or rows that stand behind such a beginning.
    """

    branch: Branch
    kept: list[Placed]
    lost: range
    rest: list[Placed]
    why: str | None
    made: list[JournalRow] = []

    @property
    def first(self) -> int:
        """The id of the first row that the branch has or had."""
        return row_id(self.branch.no, seq_of(self.branch.at) + 1 if self.branch.parent else 0)

    @property
    def end(self) -> int:
        """The id of the newest row that is true; one before the first where there is none."""
        return self.kept[-1].id if self.kept else self.first - 1

    @property
    def until(self) -> Point:
        """The newest entry that is true: of a bad row its beginning may be."""
        return self.end, len(self.kept[-1].row.entries) - 1 if self.kept else 0

    @property
    def as_it_is(self) -> int:
        """The newest row that is kept as it is."""
        return self.made[0].id - 1 if self.made else self.end

    @property
    def mac(self) -> bytes:
        """The hash that the next row follows."""
        return self.kept[-1].mac if self.kept else self.branch.mac


class Stray(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that cannot be kept: nothing proves where it belongs.

    `rest` are those of its rows that can be read, true among themselves.
    """

    no: int
    why: str
    rest: list[Placed] = []
    lost: range = range(0)


class Sieve:
    """Sifts the branches of one run after the other; a fork grows from one of an older run."""

    def __init__(self, chunks: Chunks, salvage: Salvage, seals: Seals) -> None:
        self._chunks, self._salvage, self._all_seals = chunks, salvage, seals
        self._macs: dict[int, bytes] = {}  # as they were found
        self._new: dict[int, JournalRow] = {}  # rows that are written anew
        self._regrown: dict[int, BranchRow] = {}  # branches that are
        self._short: dict[int, int] = {}  # how many entries are left of a bad row
        self._known: list[int] = []
        self.bad_chunks: set[str] = set()

    def sift(
        self, run: int, numbers: Sequence[int], listed: dict[int, BranchRow]
    ) -> Iterator[Sifted | Stray]:
        """Each branch of a run, oldest first, or why it cannot be kept."""
        salvage, self._run, self._seals = self._salvage, run, self._all_seals.of(run)
        for no in sorted(numbers):
            rows = salvage.rows(no)
            branch = self._proven(listed.get(no), no, rows)
            if branch is None or not self._is_there(branch):
                why = f"branch {no}: what it grew from is lost or cannot be told"
                began = self._claimed(listed.get(no))
                yield Stray(no=no, why=why, rest=list(self._rest(rows, 0, began)))
                continue
            found = self._read(branch, rows, max(salvage.end(no), *rows, -1))
            self._keep_beginning(found, rows)
            self._macs.update((placed.id, placed.mac) for placed in found.kept)
            self._write_anew(found, rows)
            self._known.append(no)
            yield found

    def _proven(self, row: BranchRow | None, no: int, rows: dict[int, JournalRow]) -> Branch | None:
        """The branch's row, or one made anew that the branch's first row is chained to."""
        if row is not None and row.run == self._run:
            with contextlib.suppress(*_BAD):
                before = self._macs[row.at] if row.parent else b""
                return opened_branch(row, self._seals.open_branch(row, before))
        first = min(rows, default=None)
        if first is None:
            return None
        for parent in (0, *self._known):
            at = row_id(parent, seq_of(first) - 1) if parent and seq_of(first) else 0
            if parent and at not in self._macs:
                continue
            bare = BranchRow(no=no, run=self._run, parent=parent, at=at, mac=b"", body=b"")
            made = self._seals.branch(bare, self._macs[at] if parent else b"")
            with contextlib.suppress(*_BAD):
                self._seals.open_row(rows[first], made.mac)
                return opened_branch(made, b"")
        return None

    def _is_there(self, branch: Branch) -> bool:
        """Whether all is left that a branch keeps of the row it grew from."""
        left = self._short.get(branch.at)
        return left is None or (branch.kept is not None and branch.kept <= left)

    def _keep_beginning(self, found: Sifted, rows: dict[int, JournalRow]) -> None:
        """Keep of the first bad row what comes before the large value that it misses.

        A turn that had ended there, and what others grew from there, is as it was.
        """
        bad = found.lost.start
        if not found.lost or not found.kept or bad not in rows:
            return
        with contextlib.suppress(*_BAD):
            placed = self._open(rows[bad], found.mac)
            if left := self._count_sound(placed):
                entries, base = placed.row.entries[:left], placed.row.base
                if base == bad and not any(isinstance(entry, Based) for entry in entries):
                    base = found.kept[-1].row.base
                row = replace(placed.row, base=base, entries=entries)
                found.kept.append(replace(placed, row=row, is_whole=False))
                self._short[bad] = left

    def _count_sound(self, placed: Placed) -> int:
        """How many entries of a row come before the first whose large value is not there."""
        for count, entry in enumerate(placed.row.entries):
            try:
                self._check_entry(entry)
            except _BAD:
                return count
        return len(placed.row.entries)

    def _write_anew(self, found: Sifted, rows: dict[int, JournalRow]) -> None:
        """Write rows anew that cannot stay as they are, and chain others to them.

        They say what they said.
        """
        branch, is_regrown = found.branch, found.branch.at in self._new
        old = before = branch.mac
        if is_regrown:
            bare = BranchRow(
                no=branch.no, run=branch.run, parent=branch.parent, at=branch.at, mac=b"", body=b""
            )
            payload = branch_payload(branch.kept)
            before = self._new[branch.at].mac
            # Made once: of an encrypted store the same row has another seal each time.
            row = self._regrown.get(branch.no) or self._seals.branch(bare, before, payload)
            self._regrown[branch.no] = row
            found.branch = opened_branch(row, payload)
            before = found.branch.mac
        first = found.first if is_regrown else self._first_anew(found)
        for place, placed in enumerate(found.kept):
            if placed.id < first:
                old = before = placed.mac
                continue
            new = self._new.get(placed.id)
            if new is None and placed.is_whole:
                payload = self._seals.open_row(rows[placed.id], old)
                new = self._seals.row(placed.id, before, payload)
            elif new is None:
                new = make_row(self._seals, placed.id, before, placed.row)
            old, before = placed.mac, new.mac
            found.made.append(new)
            found.kept[place] = replace(placed, mac=new.mac, size=len(new.body), is_whole=True)
            self._new[placed.id] = new

    def _first_anew(self, found: Sifted) -> int:
        """The first row that cannot stay: the beginning of the bad row, or of a pack that is cut.

        The rows of a sealed pack are not sealed one by one.
        """
        packs = self._salvage.packs(found.branch.no) if self._salvage.is_sealed else {}
        is_short = found.end in self._short
        for last, (first, _) in packs.items():
            if type(first) is int and first <= found.end < last + is_short:
                return max(first, found.first)
        return found.end if is_short else found.end + 1

    def _claimed(self, row: BranchRow | None) -> bytes | None:
        """The hash that a branch begins with, if what it grew from is only not to be kept."""
        if row is not None and row.run == self._run and row.parent:
            with contextlib.suppress(*_BAD):
                before = self._salvage.rows(row.parent)[row.at].mac
                return opened_branch(row, self._seals.open_branch(row, before)).mac
        return None

    def _read(self, branch: Branch, rows: dict[int, JournalRow], end: int) -> Sifted:
        found = Sifted(branch=branch, kept=[], lost=range(0), rest=[], why=None)
        expected, before = found.first, branch.mac
        try:
            while expected in rows:
                placed = self._open(rows[expected], before)
                self._check_values(placed)
                found.kept.append(placed)
                expected, before = expected + 1, placed.mac
            if end >= expected:
                raise Damaged(f"journal row {expected:#x}", "it is missing or cannot be read")
        except _BAD as error:
            found.why = _told(error)
        found.lost = range(expected, end + 1)  # A damaged key may say that they are billions.
        found.rest = list(self._rest(rows, expected))
        return found

    def _rest(
        self, rows: dict[int, JournalRow], first: int, began: bytes | None = None
    ) -> Iterator[Placed]:
        """Rows behind the first bad one, each chained to the one before as it says of itself.

        `began` is what the first row of all is chained to.
        """
        for id_ in sorted(rows):
            row = rows.get(id_ - 1)
            before = began if row is None else row.mac
            if id_ >= first and before is not None:
                with contextlib.suppress(*_BAD):
                    yield self._open(rows[id_], before)

    def _open(self, row: JournalRow, before: bytes) -> Placed:
        payload = self._seals.open_row(row, before)
        decoded = _decode_row(payload)
        if not decoded.entries:
            raise Damaged(f"journal row {row.id:#x}", "it holds no entries")
        return Placed(id=row.id, mac=row.mac, size=len(row.body), row=decoded)

    def _check_values(self, placed: Placed) -> None:
        """Large values lie beside the journal and must be there and true."""
        for entry in placed.row.entries:
            self._check_entry(entry)

    def _check_entry(self, entry: Entry) -> None:
        for reference in _references(entry, self._chunks):
            for part in reversed(parts(reference)) if is_reference(reference) else ():
                try:
                    self._chunks.fetch(part)
                except Damaged:
                    self.bad_chunks.add(self._chunks.name(part).hex())
                    raise


def _references(entry: Entry, chunks: Chunks) -> Iterator[bytes]:
    for _, data in values_of(entry):
        yield data
    for _, data in states_of(entry):
        yield data
        yield from references_in(chunks.fetch(data))


def _told(error: BaseException) -> str:
    if isinstance(error, Damaged):
        return f"{error.where}: {error.why}"
    return f"it cannot be decoded ({error})"
