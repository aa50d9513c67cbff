"""Short forms of values for people: bounded in length and in time, whatever the value."""

from typing import Any

from holdfast.store.codec.secret import Secret
from holdfast.store.codec.veil import redact, redact_bytes

TEXT_CHARS_MAX = 60
ITEMS_MAX = 3
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
    return f"<{kind.__name__}>"


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
