"""Any value as JSON: what an agent returned, printed for people and for other programs."""

import base64
import dataclasses
import datetime as dt
import json
import math
import sys
from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec

INDENT = 2


def to_json(value: object, *, indent: int | None = INDENT) -> str:
    """`value` as JSON text that every reader takes; what JSON has no word for becomes text."""
    is_unicode = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "") == "utf8"
    return json.dumps(plain(value), indent=indent, ensure_ascii=not is_unicode, allow_nan=False)


def plain(value: object) -> Any:  # noqa: ANN401 whatever JSON takes
    """`value` made of what JSON has."""
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {key if type(key) is str else _key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=repr)
    return _leaf(value)


def _leaf(value: Any) -> Any:  # noqa: ANN401 any object at all
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, msgspec.Struct):
        return plain(msgspec.structs.asdict(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name)) for name in names}
    for method in ("model_dump", "tolist"):  # Pydantic models; NumPy arrays and scalars.
        if callable(found := getattr(type(value), method, None)):
            return plain(found(value))
    return str(value)


def _key(key: object) -> str:
    found = plain(key)
    return found if isinstance(found, str) else json.dumps(found)
