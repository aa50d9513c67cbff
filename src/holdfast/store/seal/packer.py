"""Sealed packs: the open frames of a run's rows, compressed together and sealed once.

Compressing what is sealed already saves nothing, so a pack opens its rows, and its own seal binds
them: to each other, to the row before the first and to their run.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.errors import Damaged
from holdfast.store.backends.base import Beside, JournalRow
from holdfast.store.backends.cuts import Cutter
from holdfast.store.backends.packs import Around, beside, make, unpack
from holdfast.store.codec.frame import HEADER_BYTES, is_bundle
from holdfast.store.seal.aead import MAC_BYTES
from holdfast.store.seal.sealed import Sealed, SealedRun

_ENDS = slice(HEADER_BYTES, HEADER_BYTES + 2 * MAC_BYTES)
_MAC = slice(_ENDS.stop, _ENDS.stop + MAC_BYTES)


class SealedPacker:
    """Packs of an encrypted store: header, hash before the first row, hash of the last, seal."""

    def __init__(self, seals: Sealed, cutter: Cutter | None = None) -> None:
        self._seals, self._cutter = seals, cutter

    def open(self, rows: Sequence[JournalRow], around: Around) -> list[JournalRow]:
        """Rows with their frames opened, each checked against the one before."""
        run, before = self._run(around), around.before(_end)
        kept: list[JournalRow] = []
        for row in rows:
            kept.append(run.bare(row, before))
            before = row.mac
        return kept

    def pack(self, rows: Sequence[JournalRow], around: Around) -> bytes:
        """The body of a pack of rows that `open` gave."""
        assert rows[0].before is not None
        ends = rows[0].before + rows[-1].mac
        mac, body = self._run(around).pack(rows[0].id, rows[-1].id, ends, make(rows, self._cutter))
        return body[:HEADER_BYTES] + ends + mac + body[HEADER_BYTES:]

    def unpack(self, first: int, last: int, body: bytes, around: Around) -> list[JournalRow]:
        """The rows that `pack` was given."""
        rows = unpack(first, last, self._opened(first, last, body, around))
        befores = [body[_ENDS][:MAC_BYTES], *(row.mac for row in rows)]
        return [replace(row, before=before) for row, before in zip(rows, befores, strict=False)]

    def beside(self, first: int, last: int, body: bytes, around: Around) -> Beside | None:
        """The values that the pack holds beside its rows."""
        if not is_bundle(body):
            return None
        ends = body[_ENDS][:MAC_BYTES], body[_ENDS][MAC_BYTES:]
        return beside((first, last), ends, self._opened(first, last, body, around))

    def _opened(self, first: int, last: int, body: bytes, around: Around) -> bytes:
        """What `make` gave, if it is here as it was written."""
        sealed = body[:HEADER_BYTES] + body[_MAC.stop :]
        return self._run(around).open_pack((first, last), body[_ENDS], body[_MAC], sealed)

    def _run(self, around: Around) -> SealedRun:
        # Asked anew each time: the run may have been made in the transaction that packs it.
        run, wrapped = around.run(), around.key()
        if wrapped is None:
            raise Damaged(f"run number {run}", "its key is missing")
        return self._seals.unwrapped(run, wrapped)


def _end(body: bytes) -> bytes:
    """The hash of a pack's last row; whoever opens a row behind it finds out if it is another."""
    return body[_ENDS][MAC_BYTES:]
