"""How a row names a large value that lies beside the journal: where the value would stand.

| bytes | field | meaning |
|---|---|---|
| 1 | mark | 0xFF: the value is stored whole; 0xFE: as a patch on another large value |
| 32 | SHA-256 | of the value |
| 8 | length | of the value |
| rest | reference | of a patch only: of the value that it is a patch on |

So a row names everything that is needed to read it, and who removes or copies large values needs
the rows alone. No encoded value and no save begins with either mark.
"""

import hashlib

WHOLE, PATCH = 0xFF, 0xFE
PARTS_MAX = 16
"""A patch on a patch on …: reading one reads at most so many."""

_PART_BYTES = 41


def whole(id_: bytes, size: int) -> bytes:
    """The reference of a value that is stored whole, by its hash and its length."""
    return bytes([WHOLE]) + id_ + size.to_bytes(8, "big")


def patched(id_: bytes, size: int, base: bytes) -> bytes:
    """The reference of a value that is stored as a patch on the one that `base` names."""
    return bytes([PATCH]) + id_ + size.to_bytes(8, "big") + base


def is_reference(data: bytes) -> bool:
    """Whether bytes where a value stands name a large one."""
    if not data or data[0] < PATCH:
        return False
    parts, rest = divmod(len(data), _PART_BYTES)
    marks = bytes([PATCH]) * (parts - 1) + bytes([WHOLE])
    return not rest and parts <= PARTS_MAX and data[::_PART_BYTES] == marks


def is_patch(reference: bytes) -> bool:
    """Whether the value is stored as a patch on another."""
    return reference[0] == PATCH


def parts(reference: bytes) -> list[bytes]:
    """The reference and those it is built on, the one that is stored whole last."""
    return [reference[at:] for at in range(0, len(reference), _PART_BYTES)]


def value_id(reference: bytes) -> bytes:
    """The SHA-256 of the value."""
    return reference[1:33]


def length(data: bytes) -> int:
    """How many bytes `data` stands for."""
    return int.from_bytes(data[33:_PART_BYTES], "big") if is_reference(data) else len(data)


def object_id(reference: bytes) -> bytes:
    """What the stored object is named by: the value's hash, of a patch that of its reference.

    A value may be stored as a patch on this and on that: those are different objects.
    """
    return hashlib.sha256(reference).digest() if is_patch(reference) else value_id(reference)
