"""Any value as JSON: what an agent returned, printed for people and for other programs."""

import base64
import dataclasses
import datetime as dt
import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import msgspec

from holdfast.errors import UsageError

INDENT = 2
_STEERING = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What steers a terminal or turns the line of writing, and JSON may hold as it is or escaped."""


def to_json(value: object, *, indent: int | None = INDENT) -> str:
    """`value` as JSON text that every reader takes; what JSON has no word for becomes text."""
    is_unicode = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "") == "utf8"
    try:
        text = json.dumps(plain(value), indent=indent, ensure_ascii=not is_unicode, allow_nan=False)
    except RecursionError as error:
        msg = "this is nested too deep to be printed; `show --path` prints a part of a state"
        raise UsageError(msg) from error
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: object) -> Any:  # noqa: ANN401 whatever JSON takes
    """`value` made of what JSON has."""
    for kinds, lower in _LOWER:
        if isinstance(value, kinds):
            return lower(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name)) for name in names}
    for method in ("model_dump", "tolist"):  # Pydantic models; NumPy arrays and scalars.
        if callable(found := getattr(type(value), method, None)):
            return plain(found(value))
    return str(value)


def _mapping(value: Mapping[Any, object]) -> dict[str, Any]:
    taken = {key for key in value if type(key) is str}
    made = {}
    for key, item in value.items():
        name = key if type(key) is str else _key(key, taken)
        taken.add(name)
        made[name] = plain(item)
    return made


def _key(key: object, taken: set[str]) -> str:
    """The name of a key that is no text; one that is taken stands as in a path, `[1]`."""
    found = plain(key)
    name = found if isinstance(found, str) else json.dumps(found)
    if name in taken:
        name = f"[{key!r}]"
    while name in taken:
        name = f"[{name}]"
    return name


_LOWER: tuple[tuple[tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((Enum,), lambda value: plain(value.value)),
    ((type(None), bool, int, str), lambda value: value),
    ((float,), lambda value: value if math.isfinite(value) else repr(value)),
    ((Mapping,), _mapping),
    ((list, tuple, range), lambda value: [plain(item) for item in value]),
    ((set, frozenset), lambda value: sorted((plain(item) for item in value), key=repr)),
    ((bytes, bytearray), lambda value: base64.b64encode(value).decode()),
    ((dt.date, dt.time), lambda value: value.isoformat()),
    ((dt.timedelta,), lambda value: value.total_seconds()),
    ((msgspec.Struct,), lambda value: plain(msgspec.structs.asdict(value))),
)
"""How each kind is lowered; the first that fits counts (an Enum may be a text as well)."""
