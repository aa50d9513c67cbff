"""A run taken out of a store as a parcel, and put into another: rows renumbered, hashes anew."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from holdfast import failpoint
from holdfast.capture.places import names_leaves
from holdfast.capture.renumber import Moved, renumber
from holdfast.engine.parcel import Header, Item, Line, Parcel
from holdfast.engine.restore import is_pruned
from holdfast.errors import Damaged, UsageError
from holdfast.model.branches import Forked, Returned, RolledBack, Settled
from holdfast.model.ids import Range, branch_of, check_run_id, row_id, seq_of
from holdfast.model.journal import (
    Based,
    Entry,
    Finished,
    Kept,
    LoopLeft,
    Redone,
    Resumed,
    Row,
    Saved,
    TurnEnded,
)
from holdfast.model.run import RunBody
from holdfast.store.backends.base import Append, BranchRow, Create, Grow, JournalRow, RunRow, Write
from holdfast.store.codec.texts import packed
from holdfast.store.inside import references_of, states_of
from holdfast.store.open import Opened
from holdfast.store.reader import Branch, Run, first_row, opened_branch
from holdfast.store.reference import is_patch, parts
from holdfast.store.seal.base import RunSeals
from holdfast.store.verify.lines import Lines
from holdfast.store.writer import PACK_BYTES, branch_payload, make_row, make_run

ATTEMPTS = 5

T = TypeVar("T")


def collect(opened: Opened, run: Run) -> Parcel:
    """The whole run: every branch, every row, every large value; it may go on meanwhile."""
    for _ in range(ATTEMPTS):
        parcel = _collect(opened, run)
        again = opened.reader.find(run.body.id)
        if again is None or again.row == run.row:
            return parcel
        run = again  # It was taken up or ended while it was read.
    msg = f"run {run.body.id} changes hands faster than it can be read; try again later"
    raise UsageError(msg)


def _collect(opened: Opened, run: Run) -> Parcel:
    reader = opened.reader
    branches = reader.lineage(run, with_ledger=True)
    rows: list[Item] = []
    large: dict[bytes, bytes] = {}
    epoch = run.row.epoch
    for branch, (last, kept) in branches:
        for whole in reader.rows(branch.no, first_row(branch), last):
            placed = reader.cut(whole, kept) if whole.id == last else whole
            rows.append(Item(placed.id, placed.row))
            for entry in placed.row.entries:
                for reference in references_of(entry, opened.chunks.fetch):
                    opened.chunks.fetch(reference)  # Checked: damage is not carried over.
                    large |= {each: opened.chunks.frame(each) for each in parts(reference)}
                if isinstance(entry, Resumed):
                    epoch = max(epoch, entry.epoch)
    header = Header(
        body=run.body,
        epoch=epoch,
        head=run.row.head,
        branches=[Line(branch.no, branch.parent, branch.at, branch.kept) for branch, _ in branches],
        rows=len(rows),
        chunks=len(large),
    )
    return Parcel(header=header, rows=rows, large=large)


def admit(opened: Opened, parcel: Parcel, id_: str | None = None) -> Run:
    """Put the run into the store under its id or another one, in one commit, and read it back."""
    body = replace(parcel.header.body, id=id_ or parcel.header.body.id)
    _refuse_odd(parcel, body.id)
    named = _named(parcel)
    _refuse_newer(opened, parcel, body.id)
    if body.origin is not None:
        body = replace(body, origin=replace(body.origin, ledger=0))
    if opened.reader.find(body.id) is not None:
        raise _taken(body.id)
    objects = opened.chunks.adopt({each: parcel.large[each] for each in named})
    _Plan(opened, parcel, body, objects).build(
        1, 1
    )  # What does not fit is found before the commit.
    plan = _Plan(opened, parcel, body, objects)
    failpoint.reach("run.admitting")
    done = opened.records.commit(plan.writes)
    failpoint.reach("run.admitted")
    if done[0] < 0:
        raise _taken(body.id)
    return plan.read_back()


def _refuse_odd(parcel: Parcel, id_: str) -> None:
    """Raise `Damaged` for a file that no export made, as far as that shows without its rows."""
    try:
        check_run_id(id_)
    except ValueError as error:
        raise Damaged("run", str(error)) from error
    numbers = [line.no for line in parcel.header.branches]
    if len(set(numbers)) < len(numbers):
        raise Damaged(f"run {id_}", "two of its branches have the same number")


def _named(parcel: Parcel) -> set[bytes]:
    """References of all large values that rows name; `Damaged` unless each has come along."""
    found: set[bytes] = set()
    for item in parcel.rows:
        for entry in item.row.entries:
            try:
                for reference in references_of(entry, parcel.fetch):
                    new = [each for each in parts(reference) if each not in found]
                    for each in new:
                        parcel.fetch(each)
                    found.update(new)
            except ValueError as error:  # A save that is none.
                raise _unreadable(error) from error
    return found


def _refuse_newer(opened: Opened, parcel: Parcel, id_: str) -> None:
    """Raise `UsageError` for a run that an older Holdfast cannot read, in a store that it can."""
    is_newer = not opened.chunks.with_patches and any(map(is_patch, parcel.large))
    if not opened.reader.names_leaves and not is_newer:
        entries = (entry for item in parcel.rows for entry in item.row.entries)
        saves = (save for entry in entries for _, save in states_of(entry))
        is_newer = any(names_leaves(parcel.fetch(save)) for save in saves)
    if is_newer:
        msg = (
            f"run {id_} is stored in a way that the Holdfast which made this store does not know; "
            "import it into a new store"
        )
        raise UsageError(msg)


def _taken(id_: str) -> UsageError:
    return UsageError(f"there is a run {id_} in this store already; import it `--as` another id")


class _Plan:
    """Writes that make a run: a first one, and those that follow once its numbers are known."""

    def __init__(
        self, opened: Opened, parcel: Parcel, body: RunBody, objects: Mapping[bytes, bytes]
    ) -> None:
        self._opened, self._parcel, self._body = opened, parcel, body
        self._seals = opened.reader.seals
        self._kid = self._seals.kid(body.id)
        self._marks: list[bytes] = []  # Of the first row; they are known once the run's number is.
        begin = Create(kid=self._kid, build=self.build, objects=objects, intents=self._marks)
        self.writes: list[Write] = [begin]
        self._made: list[tuple[int, bytes]] = []

    def build(self, no: int, first: int) -> tuple[RunRow, BranchRow, JournalRow]:
        """Make every row, for run `no` and branches from `first` on; the rest joins `writes`.

        A commit does its writes one by one, so those that are added here are done after this one.
        """
        header = self._parcel.header
        del self.writes[1:]  # A commit that was interrupted is built and done again.
        self._made = []
        numbers = {line.no: first + n for n, line in enumerate(header.branches)}
        moving = _Moving(self._parcel, numbers)
        fresh = RunRow(
            no=no,
            kid=self._kid,
            epoch=header.epoch,
            head=moving.branch(header.head),
            mac=b"",
            body=b"",
        )
        seals = self._seals.new(no)
        run = make_run(seals, fresh, self._body)
        macs: dict[int, bytes] = {}
        lines = Lines()
        begun: tuple[BranchRow, JournalRow] | None = None
        for line in header.branches:
            branch, rows = self._branch(line, no, moving, macs, seals)
            intents = [
                [seals.mark(intent) for intent in self._checked(lines, branch, id_, row)]
                for id_, row in rows
            ]
            chained = self._chain(seals, branch, rows, macs)
            pruned = {id_ for id_, row in rows if is_pruned(row)}
            if begun is None:
                begun, self._marks[:] = (branch, chained[0]), intents[0]
            else:
                self.writes.append(_grow(run, branch, chained[0], intents[0]))
            appends = _appends(run, chained[1:], intents[1:], chained[0])
            self.writes += [replace(each, is_pruned=each.row.id in pruned) for each in appends]
        for fault in lines.compare(run, self._body):
            raise Damaged(f"run {self._body.id}", fault)
        if begun is None:
            raise Damaged(f"run {self._body.id}", "it has no branch")
        return run, *begun

    def _branch(
        self, line: Line, no: int, moving: "_Moving", macs: dict[int, bytes], seals: RunSeals
    ) -> tuple[Branch, list[tuple[int, Row]]]:
        at = moving.row(line.at) if line.parent else 0
        parent = moving.branch(line.parent) if line.parent else 0
        if line.parent and at not in macs:
            raise Damaged(f"branch {line.no}", "it grew from a row that is not there")
        bare = BranchRow(no=moving.branch(line.no), run=no, parent=parent, at=at, mac=b"", body=b"")
        payload = branch_payload(line.kept)
        branch = opened_branch(seals.branch(bare, macs.get(at, b""), payload), payload)
        found = [item for item in self._parcel.rows if branch_of(item.id) == line.no]
        first = row_id(line.no, _first_seq(line.parent, line.at))
        if not found or [item.id for item in found] != list(range(first, first + len(found))):
            raise Damaged(f"branch {line.no}", "rows of it are missing")
        return branch, [(moving.row(item.id), moving.moved(item.row)) for item in found]

    def _checked(self, lines: Lines, branch: Branch, id_: int, row: Row) -> list[bytes]:
        """The intents to index with a row; `Damaged` if it does not fit those before it."""
        if branch.no not in lines.last and not lines.grow(branch):
            raise Damaged(f"branch {branch.no}", "it grew from a branch that came later")
        for fault in lines.read(branch, id_, row):
            raise Damaged(f"journal row {id_:#x}", fault)
        return list(lines.new_intents(branch, id_, row))

    def _chain(
        self,
        seals: RunSeals,
        branch: BranchRow,
        rows: Sequence[tuple[int, Row]],
        macs: dict[int, bytes],
    ) -> list[JournalRow]:
        chained: list[JournalRow] = []
        before = branch.mac
        for id_, row in rows:
            chained.append(make_row(seals, id_, before, row))
            before = macs[id_] = chained[-1].mac
            # As it is written: without secrets that were declared since it was exported.
            self._made.append((id_, packed(row)))
        return chained

    def read_back(self) -> Run:
        """The run as the store gives it now; every row is compared with what was meant."""
        reader = self._opened.reader
        run = reader.find(self._body.id)
        if run is None:
            raise Damaged(f"run {self._body.id}", "it was imported and is not there")
        found: list[tuple[int, bytes]] = []
        for branch in reader.branches(run, with_ledger=True):
            rows = reader.rows(branch.no, first_row(branch), reader.end(branch.no))
            found += [(placed.id, packed(placed.row)) for placed in rows]
        if found != self._made:
            raise Damaged(f"run {self._body.id}", "it does not read back as it was imported")
        return run


class _Moving:
    """Rows and branches under their new numbers, wherever an entry names one."""

    def __init__(self, parcel: Parcel, numbers: dict[int, int]) -> None:
        self._parcel, self._numbers = parcel, numbers
        self._is_same = all(old == new for old, new in numbers.items())

    def branch(self, no: int) -> int:
        """The new number of a branch."""
        if no not in self._numbers:
            raise Damaged(f"branch {no}", "it is named but not there")
        return self._numbers[no]

    def row(self, id_: int) -> int:
        """The new id of a row."""
        return row_id(self.branch(branch_of(id_)), seq_of(id_))

    def _old(self, id_: int) -> int:
        """The new id of a row that need not have come along: 0 if it did not."""
        return self.row(id_) if branch_of(id_) in self._numbers else 0

    def moved(self, row: Row) -> Row:
        """A row with the new ids in all of its entries."""
        if self._is_same:
            return row
        base = self.row(row.base) if row.base >= 0 else row.base
        return Row(base, row.turn, [self._entry(entry) for entry in row.entries])

    def _entry(self, entry: Entry) -> Entry:
        if isinstance(entry, Redone | Forked | RolledBack | Returned):
            entry = replace(entry, of=self._old(entry.of))
        if isinstance(entry, RolledBack):
            takes = [replace(each, row=self._old(each.row)) for each in entry.takes]
            source = self._old(entry.source) if entry.source >= 0 else entry.source
            return replace(entry, to=self._old(entry.to), takes=takes, source=source)
        match entry:
            case Based():
                outside = [
                    Range(self.row(each.first), self.row(each.last)) for each in entry.outside
                ]
                return replace(entry, state=self._save(entry.state), outside=outside)
            case TurnEnded() | Kept() | Saved():
                mark = entry.mark and replace(entry.mark, life=self.row(entry.mark.life))
                return replace(entry, delta=entry.delta and self._save(entry.delta), mark=mark)
            case LoopLeft() | Finished() | Forked() | Settled():
                return replace(entry, delta=entry.delta and self._save(entry.delta))
            case _:
                return entry

    def _save(self, data: bytes) -> bytes:
        """The save under new numbers, inside its row as a run writes it, however large it is."""
        moved: Moved = self.row
        return _readable(self._parcel.fetch(data), moved)


def _readable(data: bytes, moved: Moved) -> bytes:
    try:
        return renumber(data, moved)
    except (ValueError, RecursionError, TypeError, IndexError) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> Damaged:
    return Damaged("state", f"a save of it cannot be read ({error})")


def _grow(run: RunRow, branch: BranchRow, row: JournalRow, intents: Sequence[bytes]) -> Grow:
    def build(no: int) -> tuple[BranchRow, RunRow, JournalRow]:
        assert no == branch.no, "branches are numbered one after the other"
        return branch, run, row

    return Grow(no=run.no, epoch=run.epoch, build=build, intents=intents)


def _appends(
    run: RunRow, rows: Sequence[JournalRow], intents: Sequence[Sequence[bytes]], first: JournalRow
) -> Iterator[Append]:
    """Rows to add behind the `first` of their branch, packed as they would have been."""
    start, loose = first.id, len(first.body)
    for number, (row, meant) in enumerate(zip(rows, intents, strict=True), start=1):
        loose += len(row.body)
        is_due = loose >= PACK_BYTES or number == len(rows)
        yield Append(
            no=run.no,
            epoch=run.epoch,
            row=row,
            intents=meant,
            pack_from=start if is_due else -1,
        )
        if is_due:
            start, loose = row.id + 1, 0


def _first_seq(parent: int, at: int) -> int:
    return seq_of(at) + 1 if parent else 0
