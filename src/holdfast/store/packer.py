"""Packs of a store that is not encrypted: one hash for all rows, and values beside them.

The hash says that a pack is whole without a look at its rows, for whoever reads the values alone.
Rows keep their own hashes. Those are compared before the pack's is made, so that it vouches for
nothing that was changed until then.
"""

from collections.abc import Sequence

from holdfast.errors import Damaged
from holdfast.store.backends.base import PRUNED, Beside, JournalRow
from holdfast.store.backends.cuts import Cutter
from holdfast.store.backends.packs import Around, beside, last_mac, make, unpack
from holdfast.store.chain import MAC_BYTES, Hashed, check_row, pack_mac
from holdfast.store.codec.frame import HEADER_BYTES, is_bundle

_ENDS = slice(HEADER_BYTES, HEADER_BYTES + 2 * MAC_BYTES)
_MAC = slice(_ENDS.stop, _ENDS.stop + MAC_BYTES)


class HashedPacker:
    """Packs of an open store: header, hash before the first row, hash of the last, its own.

    Without a `cutter` it makes packs of version 1, as older stores have them.
    """

    def __init__(self, seals: Hashed, cutter: Cutter | None) -> None:
        self._seals, self._cutter = seals, cutter

    def open(self, rows: Sequence[JournalRow], around: Around) -> list[JournalRow]:  # noqa: ARG002 rows stay as they are
        """The rows as they are."""
        return list(rows)

    def pack(self, rows: Sequence[JournalRow], around: Around) -> bytes:
        """The body of a pack of these rows."""
        made = make(rows, self._cutter)
        if not is_bundle(made):
            return made
        before = around.before(_end)
        if not self._is_sound(rows, before):
            return make(rows)  # Each row is read against its own hash.
        ends = before + rows[-1].mac
        head, payload = made[:HEADER_BYTES] + ends, memoryview(made)[HEADER_BYTES:]
        mac = pack_mac(self._seals.store_id, (rows[0].id, rows[-1].id), head, payload)
        return head + mac + payload

    def _is_sound(self, rows: Sequence[JournalRow], before: bytes) -> bool:
        """Whether each row is as it was written, after the one before it."""
        try:
            for row in rows:
                if row.body[:1] == PRUNED:
                    self._seals.open_row(row, before)
                else:
                    check_row(self._seals.store_id, row, before)
                before = row.mac
        except Damaged:
            return False
        return True

    def unpack(self, first: int, last: int, body: bytes, around: Around) -> list[JournalRow]:  # noqa: ARG002 rows know their places
        """The rows of a pack; each is read against its own hash."""
        return rows_in(first, last, body)

    def beside(self, first: int, last: int, body: bytes, around: Around) -> Beside | None:  # noqa: ARG002 as above
        """The values that the pack holds beside its rows."""
        if not is_bundle(body):
            return None
        self._check(first, last, body)
        ends = body[_ENDS][:MAC_BYTES], body[_ENDS][MAC_BYTES:]
        return beside((first, last), ends, body, _MAC.stop)

    def _check(self, first: int, last: int, body: bytes) -> None:
        """Raise `Damaged` unless the pack is as it was written, and where."""
        where = f"pack {last:#x}"
        if type(first) is not int or not 0 <= first <= last:
            raise Damaged(where, f"it begins with {first!r}")
        head, payload = body[: _ENDS.stop], memoryview(body)[_MAC.stop :]
        if body[_MAC] != pack_mac(self._seals.store_id, (first, last), head, payload):
            raise Damaged(where, "its hash does not match its bytes or its place")


def rows_in(first: int, last: int, body: bytes) -> list[JournalRow]:
    """The rows of a pack of either version; nothing is said yet of whether they are as written."""
    return unpack(first, last, body, _MAC.stop if is_bundle(body) else HEADER_BYTES)


def _end(body: bytes) -> bytes:
    """The hash of a pack's last row; whoever reads a row behind it finds out if it is another."""
    return body[_ENDS][MAC_BYTES:] if is_bundle(body) else last_mac(body)
