"""A stored struct: texts without what must not be shown, and nothing that nobody could read."""

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.errors import NotStorable
from holdfast.model.parts import writable
from holdfast.store.codec.vault import vault
from holdfast.store.codec.veil import redact

_encode = msgspec.msgpack.Encoder().encode


def packed(struct: msgspec.Struct) -> bytes:
    """The bytes of a struct; encoded values in it have no secrets, and its texts lose theirs."""
    data = whole(struct)
    if vault.may_hold(data):
        data = whole(_changed(struct, redact))
    try:
        _decoder(type(struct))(data)
    except msgspec.DecodeError as error:
        name = type(struct).__name__
        why = f"it could not be read back ({error}): something in it is not of its type"
        raise NotStorable("what is to be recorded", name, why) from error
    return data


@functools.cache
def _decoder(kind: type[msgspec.Struct]) -> Callable[[bytes], object]:
    return msgspec.msgpack.Decoder(kind).decode


def whole(struct: msgspec.Struct) -> bytes:
    """The bytes of a struct, its texts as they are; half a character in one stands as its escape.

    `NotStorable` for what has no such form: a number without end.
    """
    try:
        return _encode(struct)
    except (UnicodeEncodeError, TypeError):
        changed = _changed(struct, writable)
    except OverflowError as error:
        raise _refusal(struct, error) from error
    try:
        return _encode(changed)
    except (UnicodeEncodeError, TypeError, OverflowError) as error:
        raise _refusal(struct, error) from error


def _refusal(struct: msgspec.Struct, error: Exception) -> NotStorable:
    why = f"it holds what cannot be written ({error}); leave that out"
    return NotStorable("what is to be recorded", type(struct).__name__, why)


def _changed(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 whatever structs hold
    """The same with other texts."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {name: _changed(field, change) for name, field in fields.items()}
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, list | tuple):
        return type(value)(_changed(item, change) for item in value)
    if isinstance(value, dict):
        return {_changed(key, change): _changed(item, change) for key, item in value.items()}
    return value
