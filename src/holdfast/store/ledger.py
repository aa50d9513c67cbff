"""The ledger of a run, its branches and its forks: outside what rolls back, open to all.

It is a branch of the first run of the lineage, grown from that run's first row and never its head.
Nobody holds it: a row is appended behind the newest one or not at all, and whoever comes second
reads what the first one wrote and thinks again.
"""

import threading
from collections.abc import Callable
from typing import get_args

from holdfast import failpoint
from holdfast.errors import Damaged
from holdfast.model.ids import branch_of, row_id, seq_of
from holdfast.model.journal import Row
from holdfast.model.ledger import LedgerEntry, Opened
from holdfast.policy.standing import Standing
from holdfast.store.backends.base import Append, BranchRow, Grow, JournalRow
from holdfast.store.committer import Committer
from holdfast.store.reader import Reader, Run
from holdfast.store.writer import PACK_BYTES, make_row

ATTEMPTS_MAX = 10_000
"""Each attempt that fails means that somebody else's succeeded; so many have other reasons."""

_KINDS = get_args(LedgerEntry)


class Ledger:
    """The ledger of one lineage, read as far as it was written; safe for threads."""

    def __init__(self, committer: Committer, reader: Reader, run: Run) -> None:
        self._committer, self._reader = committer, reader
        self._root = reader.root(run).body.id
        self._lock = threading.Lock()
        self._branch: BranchRow | None = None
        self._id, self._mac = -1, b""
        self._loose_from, self._loose_bytes = -1, 0
        self._standing = Standing()

    def read(self) -> Standing:
        """How it stands now; nothing is written."""
        with self._lock:
            self._refresh()
            return self._standing

    def add(self, at: float, make: Callable[[Standing], LedgerEntry | None]) -> Standing:
        """Append what `make` says of it as it stands; durable when this returns.

        `make` is asked again whenever somebody else came first; None means that nothing is to be
        written, and what it raises rises from here.
        """
        with self._lock:
            for _ in range(ATTEMPTS_MAX):
                self._refresh()
                entry = make(self._standing)
                if entry is None:
                    return self._standing
                if self._branch is None:
                    self._begin(at)
                elif self._append(entry):
                    self._standing.take(entry)
                    return self._standing
        raise Damaged(f"the ledger of run {self._root}", "nothing can be appended to it")

    def _refresh(self) -> None:
        """Read what was written since."""
        reader = self._reader
        if self._branch is None:
            self._branch = reader.ledger(self._run())
            if self._branch is None:
                return
            self._id = _first(self._branch) - 1
        end = reader.end(self._branch.no)
        if end == self._id:
            return
        for placed in reader.rows(self._branch.no, self._id + 1, end):
            self._id, self._mac = placed.id, placed.mac
            for entry in placed.row.entries:
                if isinstance(entry, _KINDS):
                    self._standing.take(entry)
        self._loose_from, self._loose_bytes = reader.tail(self._branch.no)

    def _run(self) -> Run:
        found = self._reader.find(self._root)
        if found is None:
            raise Damaged(f"run {self._root}", "it has a ledger and is gone")
        return found

    def _begin(self, at: float) -> None:
        """Grow the branch. Of two processes that do so at once, the older branch counts for all."""
        reader, run = self._reader, self._run()
        start, seals = reader.row(reader.first(run.row.head)), reader.seals.of(run.row.no)

        def build(no: int) -> tuple[BranchRow, None, JournalRow]:
            parent = branch_of(start.id)
            bare = BranchRow(no=no, run=run.row.no, parent=parent, at=start.id, mac=b"", body=b"")
            branch = seals.branch(bare, start.mac)
            return branch, None, make_row(seals, _first(branch), branch.mac, _row(Opened(at)))

        write = Grow(no=run.row.no, epoch=run.row.epoch, build=build)
        failpoint.reach("ledger.opening")
        self._committer.finish(self._committer.submit(write))
        failpoint.reach("ledger.opened")

    def _append(self, entry: LedgerEntry) -> bool:
        """Write `entry` behind the newest row; False when another stands there already."""
        run = self._run().row
        seals = self._reader.seals.of(run.no)
        row = make_row(seals, self._id + 1, self._mac, _row(entry))
        loose_from = self._loose_from if self._loose_from >= 0 else row.id
        is_full = self._loose_bytes + len(row.body) >= PACK_BYTES
        write = Append(no=run.no, epoch=run.epoch, row=row, pack_from=loose_from if is_full else -1)
        failpoint.reach("ledger.writing")
        done = self._committer.finish(self._committer.submit(write))
        failpoint.reach("ledger.written")
        if done < 0:
            return False
        self._id, self._mac = row.id, row.mac
        self._loose_from = -1 if is_full else loose_from
        self._loose_bytes = 0 if is_full else self._loose_bytes + len(row.body)
        return True


def _row(entry: LedgerEntry) -> Row:
    return Row(-1, -1, [entry])


def _first(branch: BranchRow) -> int:
    return row_id(branch.no, seq_of(branch.at) + 1)
