"""The seals of an encrypted store: every row and large value opens only in its own place.

Each run has a random key of its own, so that a run can be erased by destroying one small row.
What is not sealed is damage here: there is no way from open bytes to a value.
"""

import secrets
import threading
from typing import Protocol

from msgspec.structs import replace

from holdfast.errors import Damaged
from holdfast.store.backends.base import PRUNED, BranchRow, JournalRow, RunRow
from holdfast.store.codec.frame import open_frame, seal
from holdfast.store.seal.aead import KEY_BYTES, Cipher
from holdfast.store.seal.chunks import ChunkSeals
from holdfast.store.seal.keys import StoreKeys

RUNS_KEPT = 4096
"""Keys of runs that are kept unwrapped."""
KID_BYTES = 16


class KeyRows(Protocol):
    """Where wrapped keys lie."""

    def key(self, no: int) -> bytes | None:
        """The wrapped key of a run, or None."""


class Sealed(ChunkSeals):
    """The seals of a store whose keys are at hand."""

    def __init__(self, rows: KeyRows, keys: StoreKeys) -> None:
        super().__init__(keys)
        self._rows, self.keys = rows, keys
        self._known: dict[int, SealedRun] = {}
        self._lock = threading.Lock()

    def kid(self, run: str) -> bytes:
        """The catalog key of a run id; it says nothing to whoever has no key."""
        return self.keys.name(b"run", run.encode("utf-8", "surrogatepass"))[:KID_BYTES]

    def of(self, run: int) -> "SealedRun":
        """The seals of a run; its key is unwrapped once."""
        found = self._known.get(run)
        if found is None:
            wrapped = self._rows.key(run)
            if wrapped is None:
                raise Damaged(f"run number {run}", "its key is missing")
            found = self.unwrapped(run, wrapped)
            with self._lock:
                self._known[run] = found
                while len(self._known) > RUNS_KEPT:
                    del self._known[next(iter(self._known))]
        return found

    def unwrapped(self, run: int, wrapped: bytes) -> "SealedRun":
        """The seals of a run whose wrapped key is at hand."""
        return SealedRun(self.keys, run, self.keys.unwrap(run, wrapped))

    def new(self, run: int) -> "SealedRun":
        """The seals of a run that is being made, with a new key.

        It is not kept: the commit may fail, and the number then be another run's.
        """
        return SealedRun(self.keys, run, *self.keys.fresh(run, secrets.token_bytes(KEY_BYTES)))


class SealedRun:
    """The rows of one run under its own key."""

    def __init__(self, keys: StoreKeys, run: int, cipher: Cipher, wrapped: bytes = b"") -> None:
        self._keys, self._run, self._cipher, self._wrapped = keys, run, cipher, wrapped
        self._row_place = keys.place(b"row", run)

    def run(self, row: RunRow, payload: bytes) -> RunRow:
        """The catalog row that holds `payload`."""
        mac, body = self._cipher.seal(self._run_place(row), seal(payload))
        return replace(row, mac=mac, body=body, key=self._wrapped)

    def open_run(self, row: RunRow) -> bytes:
        """What the catalog row holds, checked."""
        where = f"run number {row.no}"
        _refuse_odd(where, (row.no, row.epoch, row.head), row.mac, row.body, row.kid)
        return open_frame(self._cipher.open(self._run_place(row), row.mac, row.body, where), where)

    def _run_place(self, row: RunRow) -> bytes:
        return self._keys.place(b"run", row.no, row.epoch, row.head) + row.kid

    def branch(self, row: BranchRow, before: bytes, payload: bytes = b"") -> BranchRow:
        """The branch that grows from a row with hash `before`."""
        mac, body = self._cipher.seal(self._branch_place(row, before), seal(payload))
        return replace(row, mac=mac, body=body)

    def open_branch(self, row: BranchRow, before: bytes) -> bytes:
        """What the branch's row holds, checked."""
        where = f"branch {row.no}"
        _refuse_odd(where, (row.no, row.run, row.parent, row.at), row.mac, row.body)
        opened = self._cipher.open(self._branch_place(row, before), row.mac, row.body, where)
        return open_frame(opened, where)

    def _branch_place(self, row: BranchRow, before: bytes) -> bytes:
        return self._keys.place(b"branch", row.no, row.run, row.parent, row.at) + before

    def row(self, id_: int, before: bytes, payload: bytes) -> JournalRow:
        """The journal row that follows the row with hash `before`."""
        place = self._row_place + id_.to_bytes(8, "big") + before
        mac, body = self._cipher.seal(place, seal(payload))
        return JournalRow(id=id_, mac=mac, body=body)

    def prune(self, row: JournalRow, payload: bytes) -> JournalRow:
        """The row of a pack with `payload` in place of what it held; the pack's seal binds it."""
        assert row.before is not None, "only a packed row is pruned"
        return replace(row, body=PRUNED + seal(payload))

    def open_row(self, row: JournalRow, before: bytes | None) -> bytes:
        """What a journal row holds, checked."""
        frame = self.bare(row, before).body
        # Out of a sealed pack only: a loose row is opened by its own seal, and has a frame inside.
        return open_frame(frame.removeprefix(PRUNED) if row.before else frame, _where(row))

    def bare(self, row: JournalRow, before: bytes | None) -> JournalRow:
        """The row with its frame opened, as a sealed pack keeps it."""
        if before is None:
            raise Damaged(_where(row), "it cannot be opened without the row before it")
        if row.before is not None:
            if row.before != before:
                raise Damaged(_where(row), "it does not follow the row before it")
            return row
        _refuse_odd("a journal row", (row.id,), row.mac, row.body)
        place = self._row_place + row.id.to_bytes(8, "big") + before
        try:
            frame = self._cipher.open(place, row.mac, row.body, "")
        except Damaged as damage:
            raise Damaged(_where(row), damage.why) from None
        return JournalRow(id=row.id, mac=row.mac, body=frame, before=before)

    def pack(self, first: int, last: int, ends: bytes, frame: bytes) -> tuple[bytes, bytes]:
        """Seal with tag, and the sealed frame, of a pack between the hashes `ends`."""
        return self._cipher.seal(self._keys.place(b"pack", self._run, first, last) + ends, frame)

    def open_pack(self, span: tuple[int, int], ends: bytes, mac: bytes, body: bytes) -> bytes:
        """The frame of a pack, checked."""
        place = self._keys.place(b"pack", self._run, *span) + ends
        return self._cipher.open(place, mac, body, f"pack {span[1]:#x}")

    def mark(self, intent: bytes) -> bytes:
        """Under what an intent of the run is indexed."""
        return self._keys.name(b"intent", self._run.to_bytes(8, "big") + intent)[: len(intent)]


def _where(row: JournalRow) -> str:
    return f"journal row {row.id:#x}"


def _refuse_odd(where: str, numbers: tuple[object, ...], *parts: object) -> None:
    """A damaged or hostile file gives texts and fractions where numbers and bytes belong."""
    are_numbers = all(type(n) is int and 0 <= n < 1 << 63 for n in numbers)
    if not are_numbers or any(type(part) is not bytes for part in parts):
        raise Damaged(where, "it holds what Holdfast never writes")
