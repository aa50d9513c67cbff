"""What binds every row and large value of a store to its place, whether or not it is encrypted.

Readers and writers of runs speak to these faces only. `chain.Hashed` leaves the bytes open and
hashes them; `seal.sealed.Sealed` encrypts them, and the seal's tag is the hash.
"""

from typing import Protocol

from holdfast.store.backends.base import BranchRow, JournalRow, RunRow


class RunSeals(Protocol):
    """The rows of one run: each bound to its place, and opened again only from there."""

    def run(self, row: RunRow, payload: bytes) -> RunRow:
        """The catalog row that holds `payload`; numbers and `kid` are those of `row`."""

    def open_run(self, row: RunRow) -> bytes:
        """What the catalog row holds; `Damaged` unless it is as it was written."""

    def branch(self, row: BranchRow, before: bytes, payload: bytes = b"") -> BranchRow:
        """The branch that grows from a row with hash `before` (empty for a run's first).

        `payload` is what it says of that row, which may belong to another run.
        """

    def open_branch(self, row: BranchRow, before: bytes) -> bytes:
        """What the branch's row holds; `Damaged` unless it is as it was written."""

    def row(self, id_: int, before: bytes, payload: bytes) -> JournalRow:
        """The journal row that follows the row (or branch) with hash `before`."""

    def open_row(self, row: JournalRow, before: bytes | None) -> bytes:
        """What a journal row holds; `Damaged` unless it is as it was written, after `before`.

        None where the row before it is lost: then only what does not hang on it is checked.
        """

    def prune(self, row: JournalRow, payload: bytes) -> JournalRow:
        """The row of a pack with `payload` in place of what it held; its hash stays."""

    def mark(self, intent: bytes) -> bytes:
        """Under what an intent of the run is indexed."""


class Seals(Protocol):
    """Everything a store keeps, bound to its place."""

    store_id: bytes

    def kid(self, run: str) -> bytes:
        """The catalog key of a run id."""

    def of(self, run: int) -> RunSeals:
        """The seals of the run with that number."""

    def new(self, run: int) -> RunSeals:
        """The seals of a run that is being made under that number."""

    def name_chunk(self, digest: bytes) -> bytes:
        """The name under which the large value with that SHA-256 is kept."""

    def seal_chunk(self, digest: bytes, frame: bytes) -> bytes:
        """A large value's frame as it is stored."""

    def open_chunk(self, digest: bytes, body: bytes, where: str) -> bytes:
        """The frame of a large value as it was given; `Damaged` if it is another's or changed."""
