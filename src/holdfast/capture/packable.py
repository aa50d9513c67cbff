"""Which basic values msgpack may hold as they are; the others are the codec's business."""

from typing import Any, Final

from holdfast.capture import wire
from holdfast.store.chunks import CHUNK_BYTES_MIN
from holdfast.store.codec import vault, veil

_LONG_HEADS_FROM: Final = 1 << 24  # the heads of longer text and bytes begin otherwise

_NUMBERS: Final = frozenset({int, float, bool, type(None)})


def are_numbers(values: list[Any]) -> bool:
    """Say whether all are numbers (or None) that fit: among them nothing is large or secret."""
    if not _NUMBERS.issuperset(map(type, values)):
        return False
    try:
        wire.pack(values)
    except OverflowError:
        return False
    return True


def is_packable(value: object) -> bool:
    """Say whether `value` fits into msgpack and holds no secret."""
    try:
        wire.pack(value)
    except (UnicodeEncodeError, OverflowError):
        return False
    if not vault.guard.get().cuts:
        return True
    if isinstance(value, str):
        return veil.is_clean(veil.text_bytes(value))
    return not isinstance(value, bytes) or veil.is_clean(value)


def may_hold_large(save: object) -> bool:
    """Say whether text or bytes in a save may be large, going by the heads msgpack gives them."""
    if not isinstance(save, bytes) or len(save) < CHUNK_BYTES_MIN:
        return False
    return b"\xdb\x00" in save or b"\xc6\x00" in save or len(save) >= _LONG_HEADS_FROM
