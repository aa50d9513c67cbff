"""Numbers, times and foreign text as people read them on a terminal."""

import datetime as dt
import math
import unicodedata

_SIZES = ("B", "kB", "MB", "GB", "TB")
_KILO = 1000
CELL_CHARS_MAX = 72
LEAD_CHARS = 16
"""What is shown of the same before a difference."""


def duration(seconds: float | None) -> str:
    """`850 µs`, `12 ms`, `3.4 s`, `5 min 12 s`, `2 h 5 min`, `3 d 4 h`; empty when not known."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1, 1e3, "ms")):
        if 0 < seconds < limit:
            return f"{seconds * factor:.0f} {unit}"
    if seconds < 60:  # noqa: PLR2004 a minute
        return f"{seconds:.1f} s" if seconds else "0 s"
    whole = round(seconds)
    for unit, size, small, part in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part} {small}"
    return f"{whole // 60} min {whole % 60} s"


def size(count: int | None) -> str:
    """`231 B`, `12.3 kB`, `4.5 MB`; empty when not known."""
    if count is None:
        return ""
    value, unit = float(count), 0
    while value >= _KILO and unit < len(_SIZES) - 1:
        value, unit = value / _KILO, unit + 1
    return f"{value:.1f} {_SIZES[unit]}" if unit else f"{count} B"


def moment(at: dt.datetime | None) -> str:
    """Date and time in the zone of this machine."""
    return "" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def clock(at: dt.datetime | None) -> str:
    """Time of day to the millisecond."""
    return "" if at is None else f"{at.astimezone():%H:%M:%S.%f}"[:-3]


def number(value: float, digits: int = 4) -> str:
    """So many digits that count; a large one is written out, as people read it."""
    if abs(value) >= 10**digits - 0.5:
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"


def plural(count: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def harmless(text: str) -> str:
    """Text whose control characters cannot steer a terminal; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text
    )


def line(text: str) -> str:
    """The same on one line."""
    return harmless(" ".join(text.split()))


def short(text: str) -> str:
    """The same, cut to what fits beside other columns."""
    text = line(text)
    return text if len(text) <= CELL_CHARS_MAX else text[: CELL_CHARS_MAX - 1] + "…"


def apart(one: str, other: str) -> tuple[str, str]:
    """Both cut likewise; where they would look the same, from shortly before they differ."""
    pairs = enumerate(zip(one, other, strict=False))
    same = next((at for at, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))
    begin = same - LEAD_CHARS
    if begin <= 0 or short(one) != short(other):
        return short(one), short(other)
    return short("…" + one[begin:]), short("…" + other[begin:])


def width(text: str) -> int:
    """How many columns a text takes: two for a wide character, none for a mark on one before it."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
