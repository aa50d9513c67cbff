"""Every text in a stored struct, with what must not be shown replaced."""

from typing import Any

import msgspec

from holdfast.store.codec.vault import vault
from holdfast.store.codec.veil import redact

_encode = msgspec.msgpack.Encoder().encode


def packed(struct: msgspec.Struct) -> bytes:
    """The bytes of a struct; encoded values in it have no secrets, and its texts lose theirs."""
    data = _encode(struct)
    return _encode(_redacted(struct)) if vault.may_hold(data) else data


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
