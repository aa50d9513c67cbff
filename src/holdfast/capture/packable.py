"""Which basic values msgpack may hold as they are; the others are the codec's business."""

from holdfast.capture import wire
from holdfast.store.codec import vault, veil


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
