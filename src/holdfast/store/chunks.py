"""Large values, kept once under the hash of their bytes and shared by every run that holds them.

Where a value would stand, a reference of 41 bytes stands instead: the mark 0xFF, SHA-256, length.
A chunk is durable before the row that names it; reading it checks hash and length.

Between the two, garbage collection may take a chunk away that no row names yet. So what was kept
is remembered until a row claims it, and the commit of that row writes it again if it is gone.
"""

import hashlib
import threading
from collections.abc import Iterable

from holdfast.errors import Damaged
from holdfast.store.backends.base import Objects
from holdfast.store.codec.frame import open_frame, seal
from holdfast.store.seal.base import Seals

CHUNK_BYTES_MIN = 64 * 1024
MARK = 0xFF
_REFERENCE_BYTES = 41


class Chunks:
    """Puts large bytes aside and brings them back."""

    def __init__(self, objects: Objects, seals: Seals) -> None:
        self._objects, self._seals = objects, seals
        self._unclaimed: dict[bytes, tuple[bytes, bytes]] = {}  # as stored, and as it was given
        self._lock = threading.Lock()

    def keep(self, data: bytes) -> bytes:
        """`data` itself if it is small, else a reference under which it is now durable."""
        if len(data) < CHUNK_BYTES_MIN:
            return data
        id_ = hashlib.sha256(data).digest()
        name, body = self._seals.name_chunk(id_), self._seals.seal_chunk(id_, seal(data))
        with self._lock:
            self._unclaimed[name] = body, data
        self._objects.put(name, body)
        return bytes([MARK]) + id_ + len(data).to_bytes(8, "big")

    def fetch(self, data: bytes) -> bytes:
        """What `keep` was given, checked."""
        if not is_reference(data):
            return data
        id_, length = data[1:33], int.from_bytes(data[33:], "big")
        name = self._seals.name_chunk(id_)
        where = f"chunk {name.hex()}"
        body = self._objects.get(name)
        if body is None:
            raise Damaged(where, "it is named but not there")
        found = open_frame(self._seals.open_chunk(id_, body, where), where)
        if len(found) != length or hashlib.sha256(found).digest() != id_:
            raise Damaged(where, "its bytes do not match its name")
        return found

    @property
    def is_any_unclaimed(self) -> bool:
        """Whether something was kept that no row has claimed yet."""
        return bool(self._unclaimed)

    def claim(self, references: Iterable[bytes]) -> dict[bytes, bytes]:
        """Names and bytes of what was kept and is named by a row now, to go with its commit."""
        found = {}
        for reference in references:
            name = self.name(reference)
            with self._lock:
                known = self._unclaimed.pop(name, None)
            if known is not None:
                found[name] = known[0]
        return found

    def recall(self, data: bytes) -> bytes:
        """What `keep` was given, without reading it while it is not claimed."""
        if not is_reference(data):
            return data
        known = self._unclaimed.get(self.name(data))
        return self.fetch(data) if known is None else known[1]

    def name(self, reference: bytes) -> bytes:
        """The name of the object that a reference leads to."""
        return self._seals.name_chunk(reference[1:33])


def length(data: bytes) -> int:
    """How many bytes `data` stands for."""
    return int.from_bytes(data[-8:], "big") if is_reference(data) else len(data)


def is_reference(data: bytes) -> bool:
    """Whether bytes where a value stands name a chunk."""
    return len(data) == _REFERENCE_BYTES and data[0] == MARK
