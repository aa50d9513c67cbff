"""Short forms of values for people: bounded in length and in time, whatever the value."""

TEXT_CHARS_MAX = 60
ITEMS_MAX = 3
_PLAIN = (int, float, complex, bool, type(None))


def brief(value: object, depth: int = 2) -> str:
    """One line that tells `value` from most others, never longer than a few hundred characters."""
    if isinstance(value, str | bytes | bytearray):
        return _text(value)
    if isinstance(value, dict):
        return _mapping(value, depth)
    if isinstance(value, list | tuple):
        return _sequence(value, depth)
    if type(value) in _PLAIN:
        return repr(value)[:TEXT_CHARS_MAX]
    return f"<{type(value).__name__}>"


def _text(value: str | bytes | bytearray) -> str:
    if len(value) <= TEXT_CHARS_MAX:
        return repr(value)
    return f"{value[: TEXT_CHARS_MAX - 10]!r}… ({len(value)} long)"


def _mapping(value: dict[object, object], depth: int) -> str:
    if depth == 0 or len(value) > ITEMS_MAX:
        return f"{{{len(value)} keys}}"
    inner = ", ".join(f"{brief(k, 0)}: {brief(v, depth - 1)}" for k, v in value.items())
    return f"{{{inner}}}"


def _sequence(value: list[object] | tuple[object, ...], depth: int) -> str:
    if depth == 0 or len(value) > ITEMS_MAX:
        last = f", last {brief(value[-1], depth - 1)}" if value and depth else ""
        return f"[{len(value)} items{last}]"
    return f"[{', '.join(brief(item, depth - 1) for item in value)}]"
