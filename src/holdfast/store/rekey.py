"""An open store encrypted in place, an encrypted one under new keys: all of it, or nothing yet.

Everything is rewritten in one transaction, so a kill or a full disk leaves the store as it was.
Sealed copies of large values are made before it, the open ones go after it. Whoever does this is
alone in the store; doing it again goes on with whatever a kill left.
"""

import sqlite3
from collections.abc import Callable, Iterator
from itertools import chain

from msgspec.structs import replace

from holdfast import failpoint
from holdfast.errors import Damaged
from holdfast.model.ids import row_id, seq_of
from holdfast.store.backends.base import BranchRow, JournalRow
from holdfast.store.backends.connection import mark_sealed, transaction
from holdfast.store.backends.packs import Around
from holdfast.store.codec.frame import seal
from holdfast.store.cuttable import cuttable
from holdfast.store.inside import references_of
from holdfast.store.open import Opened
from holdfast.store.reference import object_id, parts
from holdfast.store.seal import keys
from holdfast.store.seal.base import Seals
from holdfast.store.seal.files import in_clear
from holdfast.store.seal.keys import StoreKeys
from holdfast.store.seal.packer import SealedPacker
from holdfast.store.seal.provider import KeyProvider
from holdfast.store.seal.sealed import Sealed
from holdfast.store.verify import Progress

PAGE = 256
_COUNT = "SELECT (SELECT count(*) FROM j) + (SELECT coalesce(sum(id - first + 1), 0) FROM pack)"


def encrypt(opened: Opened, provider: KeyProvider, progress: Progress | None = None) -> None:
    """Encrypt an open store in place; it is to be closed afterwards and opened with its key."""
    made, key = keys.make(opened.reader.store_id)
    root = made.root(key, provider)
    sealed = Sealed(opened.records, made)
    for reference in _references(opened):
        _seal_file(opened, sealed, reference)

    def begin(link: sqlite3.Connection) -> None:
        mark_sealed(link, root)

    _rewrite(opened, made, begin, progress)
    clean(opened)


def rotate(
    opened: Opened, provider: KeyProvider, *, data: bool, progress: Progress | None = None
) -> None:
    """Give an encrypted store a new store key, wrapped by `provider`; close it afterwards.

    With `data` every run gets a new key too, and all rows are sealed anew.
    """
    seals = opened.reader.seals
    assert isinstance(seals, Sealed), "only an encrypted store has keys to rotate"
    after, key = seals.keys.successor()
    root = after.root(key, provider)

    def begin(link: sqlite3.Connection) -> None:
        link.execute("UPDATE key SET body=? WHERE no=?", (root, keys.ROOT))

    if data:
        _rewrite(opened, after, begin, progress)
    else:
        _rewrap(opened, seals.keys, after, begin)
    opened.records.empty_log()


def clean(opened: Opened) -> int:
    """Remove what an encrypted store still holds in clear; says how many files that were.

    Also of use after a kill: until then the log and old files may hold what was there before.
    """
    opened.records.empty_log()
    left = list(in_clear(opened.path))
    for id_ in left:
        failpoint.reach("rekey.removing")
        opened.objects.remove(id_)
        failpoint.reach("rekey.removed")
    count = len(left) + opened.objects.sweep()
    opened.objects.settle()  # Else a power cut may bring back what was removed, also by others.
    return count


def _references(opened: Opened) -> Iterator[bytes]:
    """Every large value that a row names, and what it is a patch on, once."""
    reader, seen = opened.reader, set[bytes]()
    for run in reader.runs():
        for branch in reader.branches(run, with_ledger=True):
            first = row_id(branch.no, seq_of(branch.at) + 1 if branch.parent else 0)
            for placed in reader.rows(branch.no, first, reader.end(branch.no)):
                for entry in placed.row.entries:
                    named = references_of(entry, opened.chunks.fetch)
                    for part in chain.from_iterable(map(parts, named)):
                        if part not in seen:
                            seen.add(part)
                            yield part


def _seal_file(opened: Opened, sealed: Sealed, reference: bytes) -> None:
    opened.chunks.fetch(reference)  # Checked: damage is not carried over.
    frame, id_ = opened.chunks.frame(reference), object_id(reference)
    failpoint.reach("rekey.sealing")
    opened.objects.put(sealed.name_chunk(id_), sealed.seal_chunk(id_, frame))
    failpoint.reach("rekey.sealed")


def _rewrap(
    opened: Opened, old: StoreKeys, new: StoreKeys, begin: Callable[[sqlite3.Connection], None]
) -> None:
    with opened.records.alone() as link:
        failpoint.reach("rekey.wrapping")
        with transaction(link):
            for no, body in link.execute("SELECT no, body FROM key WHERE no>0").fetchall():
                changed = old.rewrap(no, body, new)
                link.execute("UPDATE key SET body=? WHERE no=?", (changed, no))
            begin(link)
        failpoint.reach("rekey.wrapped")


def _rewrite(
    opened: Opened,
    made: StoreKeys,
    begin: Callable[[sqlite3.Connection], None],
    progress: Progress | None,
) -> None:
    """Every row under keys of `made`; reading goes on from what stands until the commit."""
    with opened.records.alone() as link:
        branches = [no for (no,) in link.execute("SELECT no FROM branch ORDER BY no")]
        # First the note of what was acknowledged: a kill in between leaves it behind, not ahead.
        opened.records.heads.forget(branches)
        failpoint.reach("rekey.writing")
        with transaction(link):
            work = _Rewrite(link, opened, made, progress)
            begin(link)
            work.runs()
            for no in branches:
                work.branch(no)
            work.intents()
            work.compare()
        failpoint.reach("rekey.written")
        for row, mac in work.heads:
            opened.records.heads.write(row, mac)


class _Keys:
    """Wrapped keys as the transaction sees them."""

    def __init__(self, link: sqlite3.Connection) -> None:
        self._link = link

    def key(self, no: int) -> bytes | None:
        """The wrapped key of a run, or None."""
        found = self._link.execute("SELECT body FROM key WHERE no=?", (no,)).fetchone()
        return found[0] if found else None


class _Rewrite:
    """One pass over a store, inside a transaction."""

    def __init__(
        self,
        link: sqlite3.Connection,
        opened: Opened,
        made: StoreKeys,
        progress: Progress | None,
    ) -> None:
        self._link, self._opened, self._records = link, opened, opened.records
        self._old: Seals = opened.reader.seals
        self._new = Sealed(_Keys(link), made)
        self._packer = SealedPacker(self._new, cuttable if self._records.holds_values else None)
        self._progress = progress or (lambda _done, _total: None)
        grown = link.execute("SELECT at FROM branch WHERE parent>0")
        self._wanted = {at for (at,) in grown}
        self._macs: dict[int, bytes] = {}
        self._rows, self._total = 0, int(link.execute(_COUNT).fetchone()[0])
        self.heads: list[tuple[int, bytes]] = []

    def runs(self) -> None:
        """A new key for each run, and its catalog row under it."""
        for run in self._opened.reader.runs():
            row = run.row
            payload = self._old.of(row.no).open_run(row)
            fresh = replace(row, kid=self._new.kid(run.body.id))
            changed = self._new.new(row.no).run(fresh, payload)
            self._link.execute("INSERT OR REPLACE INTO key VALUES (?,?)", (row.no, changed.key))
            self._link.execute(
                "UPDATE run SET kid=?, mac=?, body=? WHERE no=?",
                (changed.kid, changed.mac, changed.body, row.no),
            )

    def branch(self, no: int) -> None:
        """A branch and all of its rows; branches come in the order of their numbers."""
        row = self._records.branch(no)
        if row is None:
            raise Damaged(f"branch {no}", "it is named but not there")
        before = self._old_mac(row) if row.parent else b""
        payload = self._old.of(row.run).open_branch(row, before)
        after = self._macs[row.at] if row.parent else b""
        changed = self._new.of(row.run).branch(row, after, payload)
        self._link.execute(
            "UPDATE branch SET mac=?, body=? WHERE no=?", (changed.mac, changed.body, no)
        )
        self._rows_of(row, changed.mac)

    def _old_mac(self, branch: BranchRow) -> bytes:
        found = self._records.rows(branch.at, branch.at)
        if not found or branch.at not in self._macs:
            raise Damaged(f"branch {branch.no}", f"row {branch.at:#x} it grew from is missing")
        return found[0].mac

    def _rows_of(self, branch: BranchRow, after: bytes) -> None:
        packs = _packs(self._link, branch.no)
        packed: list[JournalRow] = []
        new = self._new.of(branch.run)
        for id_, payload in self._payloads(branch):
            row = new.row(id_, after, payload)
            if packs and packs[0][0] <= id_:
                packed.append(JournalRow(id=id_, mac=row.mac, body=seal(payload), before=after))
                if id_ == packs[0][1]:
                    self._pack(packed)
                    packs.pop(0)
                    packed = []
            else:
                sql = "UPDATE j SET mac=?, body=? WHERE id=?"
                self._link.execute(sql, (row.mac, row.body, id_))
            if id_ in self._wanted:
                self._macs[id_] = row.mac
            after = row.mac
            self._rows += 1
            last = id_
        self._progress(self._rows, self._total)
        self.heads.append((last, after))

    def _payloads(self, branch: BranchRow) -> Iterator[tuple[int, bytes]]:
        """Ids and payloads of a branch's rows, each checked as a reader checks it."""
        first = row_id(branch.no, seq_of(branch.at) + 1 if branch.parent else 0)
        end, before, expected = self._opened.reader.end(branch.no), branch.mac, first
        old = self._old.of(branch.run)
        for low in range(first, end + 1, PAGE):
            for row in self._records.rows(low, min(low + PAGE - 1, end)):
                if row.id != expected:
                    break
                yield row.id, old.open_row(row, before)
                before, expected = row.mac, row.id + 1
            if expected < min(low + PAGE, end + 1):
                break  # What follows a gap is not looked for: there may be billions of places.
        if expected <= end:
            raise Damaged(f"journal row {expected:#x}", "it is missing")

    def _pack(self, rows: list[JournalRow]) -> None:
        body = self._packer.pack(rows, Around(self._link, rows[0].id))
        self._link.execute("UPDATE pack SET body=? WHERE id=?", (body, rows[-1].id))

    def intents(self) -> None:
        """The index of intents under names that only the key gives."""
        if isinstance(self._old, Sealed):
            return  # Names are of the store's secret, which stays.
        for run, intent, id_ in self._link.execute("SELECT run, intent, id FROM effect").fetchall():
            self._link.execute(
                "UPDATE effect SET intent=? WHERE run=? AND intent=? AND id=?",
                (self._new.of(run).mark(intent), run, intent, id_),
            )

    def compare(self) -> None:
        """Nothing was left out: what belongs to no branch would stay as it was."""
        if self._rows != self._total:
            why = f"{self._total - self._rows} rows belong to no branch; `holdfast repair` first"
            raise Damaged("the journal", why)


def _packs(link: sqlite3.Connection, branch: int) -> list[tuple[int, int]]:
    """First and last row of each pack of a branch, in order."""
    span = (row_id(branch, 0), row_id(branch + 1, 0) - 1)
    sql = "SELECT first, id FROM pack WHERE id BETWEEN ? AND ? ORDER BY id"
    return link.execute(sql, span).fetchall()
