"""Which basic values msgpack may hold as they are; the others are the codec's business."""

from typing import Any, Final

from holdfast.capture import wire
from holdfast.store.codec import vault, veil

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
