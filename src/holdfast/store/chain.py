"""Hashes that bind every row to its place and to the row before it.

SQLite does not check its pages. Each row carries the SHA-256 of its table, its store, its key
columns, the hash it follows and its body; in an encrypted store the seal's tag stands there.
"""

import struct

from msgspec.structs import replace

from holdfast import native
from holdfast.errors import Damaged
from holdfast.native import sha256
from holdfast.store.backends.base import PRUNED, BranchRow, JournalRow, RunRow
from holdfast.store.codec.frame import open_frame, seal

KID_BYTES = 16
MAC_BYTES = 32
_THREE, _FOUR = struct.Struct(">3Q"), struct.Struct(">4Q")


class Hashed:
    """The seals of a store that is not encrypted: open bytes, each row with its hash."""

    def __init__(self, store_id: bytes) -> None:
        self.store_id = store_id

    def kid(self, run: str) -> bytes:
        """The catalog key of a run id."""
        return keyed_id(self.store_id, run)

    def of(self, run: int) -> "Hashed":  # noqa: ARG002 every run is bound alike
        """The seals of a run: the store's own."""
        return self

    new = of

    def run(self, row: RunRow, payload: bytes) -> RunRow:
        """The catalog row that holds `payload`."""
        changed = replace(row, body=seal(payload))
        return replace(changed, mac=run_mac(self.store_id, changed))

    def open_run(self, row: RunRow) -> bytes:
        """What the catalog row holds, checked."""
        check_run(self.store_id, row)
        return open_frame(row.body, f"run number {row.no}")

    def branch(self, row: BranchRow, before: bytes, payload: bytes = b"") -> BranchRow:
        """The branch that grows from a row with hash `before`."""
        changed = replace(row, body=seal(payload))
        return replace(changed, mac=branch_mac(self.store_id, changed, before))

    def open_branch(self, row: BranchRow, before: bytes) -> bytes:
        """What the branch's row holds, checked."""
        check_branch(self.store_id, row, before)
        return open_frame(row.body, f"branch {row.no}")

    def row(self, id_: int, before: bytes, payload: bytes) -> JournalRow:
        """The journal row that follows the row with hash `before`."""
        if native.seal_row is not None:
            made = native.seal_row(self.store_id, id_, before, payload)
            if made is not None:
                return JournalRow(id=id_, mac=made[0], body=made[1])
        body = seal(payload)
        return JournalRow(id=id_, mac=row_mac(self.store_id, id_, before, body), body=body)

    def prune(self, row: JournalRow, payload: bytes) -> JournalRow:
        """The row with `payload` in place of what it held, and a hash of that before it."""
        frame = seal(payload)
        return replace(row, body=PRUNED + pruned_mac(self.store_id, row, frame) + frame)

    def open_row(self, row: JournalRow, before: bytes | None) -> bytes:
        """What a journal row holds, checked."""
        body = row.body
        if type(body) is bytes and body[:1] == PRUNED:
            return self._open_pruned(row)
        if before is not None:
            check_row(self.store_id, row, before)
        try:
            return open_frame(body, "")
        except Damaged as damage:
            raise Damaged(f"journal row {row.id:#x}", damage.why) from None

    def _open_pruned(self, row: JournalRow) -> bytes:
        where = f"journal row {row.id:#x}"
        mac, frame = row.body[1:33], row.body[33:]
        if mac != pruned_mac(self.store_id, row, frame):
            raise Damaged(where, "its hash does not match its bytes or its place")
        return open_frame(frame, where)

    def mark(self, intent: bytes) -> bytes:
        """Under what an intent is indexed: itself."""
        return intent

    def name_chunk(self, digest: bytes) -> bytes:
        """The name of a large value: its SHA-256."""
        return digest

    def seal_chunk(self, digest: bytes, frame: bytes) -> bytes:  # noqa: ARG002 its name binds it
        """A large value's frame, as it is."""
        return frame

    def open_chunk(self, digest: bytes, body: bytes, where: str) -> bytes:  # noqa: ARG002 see above
        """A large value's frame, as it is; its hash is compared by whoever opens it."""
        return body


def keyed_id(store_id: bytes, run: str) -> bytes:
    """The catalog key of a run id."""
    name = run.encode("utf-8", "surrogatepass")
    return sha256(b"kid" + store_id + name).digest()[:KID_BYTES]


def pack_mac(store_id: bytes, span: tuple[int, int], head: bytes, payload: memoryview) -> bytes:
    """The hash of a pack of the rows from the first to the last of `span`.

    `head` is its header, the hash before its first row and that of its last.
    """
    place = b"pack" + store_id + b"".join(id_.to_bytes(8, "big") for id_ in span)
    found = sha256(place + head)
    found.update(payload)
    return found.digest()


def row_mac(store_id: bytes, row: int, before: bytes, body: bytes) -> bytes:
    """The hash of a journal row that follows the row (or branch) with hash `before`."""
    return sha256(b"j" + store_id + row.to_bytes(8, "big") + before + body).digest()


def pruned_mac(store_id: bytes, row: JournalRow, frame: bytes) -> bytes:
    """The hash of what stands in place of a pruned row."""
    place = row.id.to_bytes(8, "big") + row.mac
    return sha256(b"pruned" + store_id + place + frame).digest()


def branch_mac(store_id: bytes, row: BranchRow, before: bytes) -> bytes:
    """The hash of a branch that grows from a row with hash `before` (empty for the first)."""
    place = _FOUR.pack(row.no, row.run, row.parent, row.at)
    return sha256(b"branch" + store_id + place + before + row.body).digest()


def run_mac(store_id: bytes, row: RunRow) -> bytes:
    """The hash of a run's catalog row."""
    place = _THREE.pack(row.no, row.epoch, row.head)
    return sha256(b"run" + store_id + place + row.kid + row.body).digest()


def check_run(store_id: bytes, row: RunRow) -> None:
    """Raise `Damaged` unless the run's row is as it was written."""
    numbers = (row.no, row.epoch, row.head)
    is_whole = _is_whole(numbers, row.mac, row.body, row.kid) and len(row.kid) == KID_BYTES
    if not is_whole or row.mac != run_mac(store_id, row):
        raise Damaged(f"run number {row.no}", "its hash does not match its bytes")


def check_branch(store_id: bytes, row: BranchRow, before: bytes) -> None:
    """Raise `Damaged` unless the branch's row is as it was written."""
    is_whole = _is_whole((row.no, row.run, row.parent, row.at), row.mac, row.body)
    if not is_whole or row.mac != branch_mac(store_id, row, before):
        raise Damaged(f"branch {row.no}", "its hash does not match its bytes")


def check_row(store_id: bytes, row: JournalRow, before: bytes) -> None:
    """Raise `Damaged` unless the journal row is as it was written, after `before`."""
    id_ = row.id
    # As `_is_whole` says it, but this is done for each row that is read.
    mac, body = row.mac, row.body
    is_whole = type(id_) is int and 0 <= id_ < 1 << 63 and type(mac) is type(body) is bytes
    if not is_whole or mac != row_mac(store_id, id_, before, body):
        raise Damaged(f"journal row {row.id:#x}", "its hash does not match its bytes or its place")


def _is_whole(numbers: tuple[object, ...], *parts: object) -> bool:
    """Whether a damaged or hostile file gave numbers and bytes where they belong."""
    return all(type(n) is int and 0 <= n < 1 << 63 for n in numbers) and all(
        type(part) is bytes for part in parts
    )
