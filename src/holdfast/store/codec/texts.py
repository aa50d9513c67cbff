"""A stored struct: texts without what must not be shown, and nothing that nobody could read."""

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.errors import NotStorable
from holdfast.store.codec.vault import vault
from holdfast.store.codec.veil import redact

_encode = msgspec.msgpack.Encoder().encode


def packed(struct: msgspec.Struct) -> bytes:
    """The bytes of a struct; encoded values in it have no secrets, and its texts lose theirs."""
    data = whole(struct)
    if vault.may_hold(data):
        data = _encode(_redacted(struct))
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
    """The bytes of a struct as it is; `NotStorable` for half a character, or a class of its own."""
    try:
        return _encode(struct)
    except (UnicodeEncodeError, OverflowError, TypeError) as error:
        why = f"it holds what cannot be written ({error}); leave that out"
        raise NotStorable("what is to be recorded", type(struct).__name__, why) from error


def _redacted(value: Any) -> Any:  # noqa: ANN401 whatever structs hold
    if type(value) is str:
        return redact(value)
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **{n: _redacted(v) for n, v in fields.items()})
    if isinstance(value, list | tuple):
        return type(value)(map(_redacted, value))
    if isinstance(value, dict):
        return {_redacted(key): _redacted(item) for key, item in value.items()}
    return value
