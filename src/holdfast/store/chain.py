"""Hashes that bind every row to its place and to the row before it.

SQLite does not check its pages. Each row carries the SHA-256 of its table, its store, its key
columns, the hash it follows and its body; in an encrypted store the seal's tag stands there.
"""

import hashlib

from holdfast.errors import Damaged
from holdfast.store.backends.base import BranchRow, JournalRow, RunRow

KID_BYTES = 16


def keyed_id(store_id: bytes, run: str) -> bytes:
    """The catalog key of a run id."""
    name = run.encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"kid" + store_id + name).digest()[:KID_BYTES]


def row_mac(store_id: bytes, row: int, before: bytes, body: bytes) -> bytes:
    """The hash of a journal row that follows the row (or branch) with hash `before`."""
    return hashlib.sha256(b"j" + store_id + row.to_bytes(8, "big") + before + body).digest()


def branch_mac(store_id: bytes, row: BranchRow, before: bytes) -> bytes:
    """The hash of a branch that grows from a row with hash `before` (empty for the first)."""
    place = b"".join(n.to_bytes(8, "big") for n in (row.no, row.run, row.parent, row.at))
    return hashlib.sha256(b"branch" + store_id + place + before + row.body).digest()


def run_mac(store_id: bytes, row: RunRow) -> bytes:
    """The hash of a run's catalog row."""
    place = b"".join(n.to_bytes(8, "big") for n in (row.no, row.epoch, row.head))
    return hashlib.sha256(b"run" + store_id + place + row.kid + row.body).digest()


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
    is_whole = type(id_) is int and 0 <= id_ < 1 << 63 and type(row.mac) is type(row.body) is bytes
    if not is_whole or row.mac != row_mac(store_id, row.id, before, row.body):
        raise Damaged(f"journal row {row.id:#x}", "its hash does not match its bytes or its place")


def _is_whole(numbers: tuple[object, ...], *parts: object) -> bool:
    """Whether a damaged or hostile file gave numbers and bytes where they belong."""
    return all(type(n) is int and 0 <= n < 1 << 63 for n in numbers) and all(
        type(part) is bytes for part in parts
    )
