"""An anchor: how far a store's history goes, as one line to be kept elsewhere.

Hashes show that nothing in between was changed; a store that was set back, or whose end was cut
off, is whole in itself. Only something outside can tell.
"""

import base64
import binascii
import zlib
from collections.abc import Iterable, Iterator

import msgspec

from holdfast.errors import UsageError
from holdfast.model.ids import row_id, seq_of
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.steady import of_each
from holdfast.store.verify import Finding

PREFIX = "holdfast-anchor-1:"
TEXT_CHARS_MAX = 64 * 1024 * 1024
PLAIN_BYTES_MAX = 256 * 1024 * 1024
MAC_BYTES = 16


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The newest row of a branch: its sequence, and the beginning of its hash."""

    branch: int
    seq: int
    mac: bytes


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """A run as it stood."""

    no: int
    epoch: int
    head: int
    heads: list[Head]


class Anchor(msgspec.Struct, frozen=True, array_like=True):
    """What was seen of a store at `at` (seconds since 1970)."""

    store: bytes
    at: float
    runs: list[Seen]

    def __str__(self) -> str:
        packed = zlib.compress(msgspec.msgpack.encode(self), 9)
        return PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def take(opened: Opened, runs: Iterable[Run], at: float) -> Anchor:
    """The anchor of these runs as they stand now."""
    seen = of_each(opened.reader, runs, lambda run: _seen(opened, run))
    return Anchor(opened.reader.store_id, at, list(seen))


def _seen(opened: Opened, run: Run) -> Seen:
    heads = []
    for branch in opened.reader.branches(run, with_ledger=True):
        last = opened.reader.row(opened.reader.end(branch.no))
        heads.append(Head(branch.no, seq_of(last.id), last.mac[:MAC_BYTES]))
    return Seen(run.row.no, run.row.epoch, run.row.head, heads)


def parse(text: str) -> Anchor:
    """The anchor that a line says; `UsageError` if it is none."""
    word = "".join(text.split())
    try:
        code = word[word.index(PREFIX) + len(PREFIX) :][:TEXT_CHARS_MAX]
        packed = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
        whole = zlib.decompressobj()
        found = msgspec.msgpack.decode(whole.decompress(packed, PLAIN_BYTES_MAX), type=Anchor)
        if not whole.eof:  # Its checksum was not read.
            raise ValueError(word)  # noqa: TRY301 said once, below
    except (ValueError, binascii.Error, zlib.error, msgspec.DecodeError):
        msg = "this is no anchor, or not the whole of it; `holdfast anchor` prints one"
        raise UsageError(msg) from None
    return found


def check(opened: Opened, anchor: Anchor) -> Iterator[Finding]:
    """What the store does not hold any more of what the anchor saw."""
    if anchor.store != opened.reader.store_id:
        msg = "the anchor is of another store"
        raise UsageError(msg)
    for seen in anchor.runs:
        rows = opened.records.runs(seen.no + 1, 1)
        if not rows or rows[0].no != seen.no:
            why = "the anchor saw it and it is gone: removed, erased, or the store was set back"
            yield Finding(where=f"run number {seen.no}", why=why)
            continue
        now = rows[0]
        if now.epoch < seen.epoch or (now.epoch == seen.epoch and now.head < seen.head):
            why = f"it was set back: the anchor saw epoch {seen.epoch} and branch {seen.head}"
            yield Finding(where=f"run number {seen.no}", why=why)
        yield from _heads(opened, seen)


def _heads(opened: Opened, seen: Seen) -> Iterator[Finding]:
    for head in seen.heads:
        id_ = row_id(head.branch, head.seq)
        found = opened.records.rows(id_, id_)
        if not found:
            why = "the anchor saw it and it is missing: the end was cut off, or the store set back"
            yield Finding(where=f"journal row {id_:#x}", why=why)
        elif found[0].mac[:MAC_BYTES] != head.mac:
            why = "the anchor saw another row here: history was replaced"
            yield Finding(where=f"journal row {id_:#x}", why=why)
