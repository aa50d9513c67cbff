"""Where the bytes of leaves stand that were stored once, so that a save names them.

A message that is a Pydantic model, a dataclass or a tuple is a leaf: the codec's bytes of it are
stored with the answer or the turn that brought it, and never again while it stays as it is.
"""

from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Final

from holdfast.capture.places import ANSWERED, At, Place
from holdfast.store.chunks import CHUNK_BYTES_MIN

LEAF_BYTES_MIN: Final = 128
"""What is smaller is not worth another read; what is large stands in a file of its own."""


def is_worth_naming(data: bytes) -> bool:
    """Say whether a leaf with these bytes is named rather than written again."""
    return LEAF_BYTES_MIN <= len(data) < CHUNK_BYTES_MIN


class Known:
    """What is stored of the leaves of one state, by the SHA-256 of their bytes.

    By their bytes and not by the object: one that has changed since is another leaf.
    """

    def __init__(self) -> None:
        self._stored: dict[bytes, tuple[Place, int]] = {}

    def name(self, digest: bytes) -> tuple[int, int, int] | None:
        """Give row, index and number of a leaf; None if it is not stored, or not placed yet."""
        place, number = self._stored.get(digest, (None, 0))
        return None if place is None or place.at is None else (*place.at, number)

    def answered(self, data: bytes, at: At) -> None:
        """Note an answer whose value has these bytes."""
        self.note(data, Place(at), ANSWERED)

    def note(self, data: bytes, place: Place, number: int) -> None:
        """Note a leaf that stands at a place, as the leaf of that number there."""
        if is_worth_naming(data):
            self._stored[sha256(data).digest()] = place, number

    def written(self, place: Place, numbers: Mapping[bytes, int]) -> None:
        """Note the leaves that a save wrote, each with its number."""
        for digest, number in numbers.items():
            self._stored[digest] = place, number

    def keep(self, digests: Collection[bytes]) -> None:
        """Forget all leaves but these."""
        self._stored = {key: it for key, it in self._stored.items() if key in digests}
