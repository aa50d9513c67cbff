"""Short forms of values for people: bounded in length and in time, whatever the value."""

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Any

from holdfast.store.codec.secret import Secret
from holdfast.store.codec.shapes import is_pydantic
from holdfast.store.codec.veil import redact, redact_bytes

TEXT_CHARS_MAX = 60
ITEMS_MAX = 3
OBJECT_CHARS_MAX = 120
"""How long the fields of an object may be before the next one is left out."""
REDACTED_CHARS_MAX = 4096
"""How much of a text is searched for secrets, of which fewer characters are shown."""
_PLAIN = frozenset({int, float, complex, bool, type(None), Secret})
_TEXTS, _SEQUENCES = (str, bytes, bytearray), (list, tuple)


def brief(value: object, depth: int = 2) -> str:
    """One line that tells `value` from most others, never longer than a few hundred characters."""
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)[:TEXT_CHARS_MAX]
    if isinstance(value, _TEXTS):
        if len(value) <= TEXT_CHARS_MAX:
            return repr(value)
        return f"{_start(value)!r}… ({len(value)} long)"
    if isinstance(value, dict):
        return _mapping(value, depth)
    if isinstance(value, _SEQUENCES):
        return _sequence(value, depth)
    return _object(value, depth) or f"<{kind.__name__}>"


def _object(value: object, depth: int) -> str:
    """An object by its fields, as far as there is room; empty where nobody says what they are.

    It is what a person approves of, and what is told apart where two calls differ. None is left
    out, and so is what its class does not want to be shown (`repr=False`). No code of it is run.
    """
    kind = type(value)
    if isinstance(value, enum.Enum):
        return f"{kind.__name__}.{value.name}"
    if depth == 0:
        return ""
    held = getattr(value, "__dict__", {})
    said, room = [], OBJECT_CHARS_MAX
    for name in _names(kind):
        item = held[name] if name in held else getattr(value, name, None)
        if item is None:
            continue
        if room <= 0:
            said.append("…")
            break
        said.append(f"{name}={brief(item, depth - 1)}")
        room -= len(said[-1])
    return f"{kind.__name__}({', '.join(said)})" if said else ""


def _find_names(kind: type[Any]) -> tuple[str, ...]:
    if is_pydantic(kind):
        return tuple(name for name, info in kind.__pydantic_fields__.items() if info.repr)
    if dataclasses.is_dataclass(kind):
        return tuple(each.name for each in dataclasses.fields(kind) if each.repr)
    return tuple(getattr(kind, "__struct_fields__", ()))


_names: Callable[[type], tuple[str, ...]] = functools.lru_cache(maxsize=256)(_find_names)


def _start(value: Any) -> object:  # noqa: ANN401 text of some kind
    """How a text begins; redacted before it is cut, since half a secret is not known as one."""
    start = value[:REDACTED_CHARS_MAX]
    start = redact(start) if isinstance(value, str) else type(start)(redact_bytes(bytes(start)))
    return start[: TEXT_CHARS_MAX - 10]


def _mapping(value: dict[object, object], depth: int) -> str:
    if depth == 0 or len(value) > ITEMS_MAX:
        return f"{{{len(value)} keys}}"
    inner = []
    for key, item in value.items():
        is_short = type(key) is str and len(key) <= TEXT_CHARS_MAX
        inner.append(f"{repr(key) if is_short else brief(key, 0)}: {brief(item, depth - 1)}")
    return f"{{{', '.join(inner)}}}"


def _sequence(value: list[object] | tuple[object, ...], depth: int) -> str:
    if depth == 0 or len(value) > ITEMS_MAX:
        last = f", last {brief(value[-1], depth - 1)}" if value and depth else ""
        return f"[{len(value)} items{last}]"
    return f"[{', '.join([brief(item, depth - 1) for item in value])}]"
