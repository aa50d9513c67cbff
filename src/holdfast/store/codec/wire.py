"""What the modules of the value codec share: forms, item codes, limits, and how one is refused."""

from typing import Final

# The first byte of an encoded value.
FORM_PLAIN: Final = 0
FORM_ITEMS: Final = 1
FORM_NODES: Final = 2

# Extension items that are a whole value.
BIG_INT: Final = 1
RAW_TEXT: Final = 2
DATETIME: Final = 3
DATE: Final = 4
TIME: Final = 5
TIMEDELTA: Final = 6
DECIMAL: Final = 7
UUID: Final = 8
COMPLEX: Final = 9
RANGE: Final = 10
PATH: Final = 11
ZONE: Final = 12
UNSET: Final = 13
NUMPY_SCALAR: Final = 14
SECRET: Final = 15
VEILED: Final = 16

# Extension items of no length, first in an array, that say what the array is.
TUPLE: Final = 32
PAIRS: Final = 33
SET: Final = 34
FROZENSET: Final = 35
BYTEARRAY: Final = 36
OBJECT: Final = 37
NUMPY_ARRAY: Final = 38

# An extension item that stands for an array or map before it.
REFERENCE: Final = 48

# A level of nesting costs up to three frames of the interpreter's 1,000.
DEPTH_MAX: Final = 128
NODES_MAX: Final = 4_000_000
MAX_VALUE_BYTES: Final = 256 * 1024 * 1024


class Refusal(Exception):
    """A value cannot be stored or made again; the walk adds the place while it unwinds."""

    def __init__(self, type_name: str, why: str = "") -> None:
        super().__init__(type_name, why)
        self.type_name, self.why = type_name, why
        self._place: list[str] = []

    def inside(self, part: str) -> None:
        """Say that the place known so far lies in `part` of something larger."""
        self._place.append(part)

    def place(self, root: str) -> str:
        """Where the value is, as one would write it in Python, from `root` on."""
        return root + "".join(reversed(self._place))


class Leak(Refusal):
    """Something looks secret, and nobody declared it: it is asked what to do, then gone on."""

    def __init__(self, type_name: str, kind: str, data: bytes) -> None:
        super().__init__(type_name, kind)
        self.kind, self.data = kind, data


def name_of(cls: type) -> str:
    """The name of a class as its users write it."""
    if cls.__module__ == "builtins":
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


def told(error: Exception) -> str:
    """An error in a line: its kind and words, without the data that some carry in their repr."""
    return f"{type(error).__name__}: {error}"
