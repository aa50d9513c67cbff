"""The bytes of a base or delta as what msgpack makes of them; what is none of them is damaged."""

from typing import Any, Final

import msgspec

from holdfast import errors
from holdfast.capture import wire
from holdfast.capture.places import Needs, named_in
from holdfast.store.codec.vault import guard

UNREADABLE: Final = (msgspec.DecodeError, TypeError, ValueError, LookupError, AttributeError)
"""What bytes that cannot be understood raise."""


def document(data: bytes) -> list[Any]:
    """Give version and parts of a save."""
    guard.get().look(data)
    found = wire.unpack(data)
    if type(found) is not list or not found or found[0] != wire.VERSION:
        raise damaged("it is of no version that this Holdfast knows")
    return found


def needs(save: bytes, ordinal: int | None = None) -> Needs:
    """Give what the reading of a save, or of one container in it, asks for."""
    try:
        return named_in(save, ordinal)
    except UNREADABLE as error:
        raise unreadable(error) from error


def unreadable(error: Exception) -> errors.Damaged:
    """Say of bytes that cannot be understood that they are damaged."""
    return damaged(f"it cannot be read ({error})")


def damaged(why: str) -> errors.Damaged:
    """Say of a saved state that it is damaged."""
    return errors.Damaged("the saved state", why)
