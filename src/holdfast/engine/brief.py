"""Short forms of values for people: bounded in length and in time, whatever the value."""

TEXT_CHARS_MAX = 60
ITEMS_MAX = 3
_PLAIN = frozenset({int, float, complex, bool, type(None)})


def brief(value: object, depth: int = 2) -> str:
    """One line that tells `value` from most others, never longer than a few hundred characters."""
    kind = type(value)
    if kind is str or isinstance(value, str | bytes | bytearray):
        if len(value) <= TEXT_CHARS_MAX:  # type: ignore[arg-type]  # a kind of text
            return repr(value)
        return f"{value[: TEXT_CHARS_MAX - 10]!r}… ({len(value)} long)"  # type: ignore[index,arg-type]
    if isinstance(value, dict):
        return _mapping(value, depth)
    if isinstance(value, list | tuple):
        return _sequence(value, depth)
    if kind in _PLAIN:
        return repr(value)[:TEXT_CHARS_MAX]
    return f"<{kind.__name__}>"


def _mapping(value: dict[object, object], depth: int) -> str:
    if depth == 0 or len(value) > ITEMS_MAX:
        return f"{{{len(value)} keys}}"
    inner = [f"{brief(key, 0)}: {brief(item, depth - 1)}" for key, item in value.items()]
    return f"{{{', '.join(inner)}}}"


def _sequence(value: list[object] | tuple[object, ...], depth: int) -> str:
    if depth == 0 or len(value) > ITEMS_MAX:
        last = f", last {brief(value[-1], depth - 1)}" if value and depth else ""
        return f"[{len(value)} items{last}]"
    return f"[{', '.join([brief(item, depth - 1) for item in value])}]"
