"""What is done in C where Holdfast was installed with a compiler, and in Python elsewhere.

Each function is None, or gives what its twin in Python gives; it gives None itself where a case is
its twin's business. `HOLDFAST_NATIVE=off` in the environment leaves everything to the twins.
The sources are in `src/native`; `tests/unit/test_native.py` compares each with its twin.
"""

import hashlib
import importlib
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, Protocol, Self, TypeAlias, cast

Signs: TypeAlias = tuple[bytes, tuple[bytes, ...]]
"""What a first look for secrets goes by: a few bytes of each run, and needles without a run."""

Delta: TypeAlias = tuple[bytes | None, int, list[tuple[Any, int]]]
"""Bytes, the number of the next container, and the containers written, with their numbers."""


class Hash(Protocol):
    """What is used of a hash of `hashlib`."""

    def update(self, data: bytes | bytearray | memoryview, /) -> None:
        """Hash more bytes."""

    def copy(self) -> Self:
        """Give the same hash, to go on from here."""

    def digest(self) -> bytes:
        """Give the hash of all bytes so far."""


def _load() -> ModuleType | None:
    if os.environ.get("HOLDFAST_NATIVE") == "off":
        return None
    try:
        return importlib.import_module("holdfast._native")
    except ImportError:  # There was no compiler.
        return None


_compiled: Final = _load()


def _given(name: str) -> Any:  # noqa: ANN401 a function; its type stands where it is named
    return getattr(_compiled, name, None)


is_compiled: Final = _compiled is not None

sha256: Final = cast("Callable[..., Hash]", _given("sha256") or hashlib.sha256)
"""As `hashlib.sha256`."""

bind: Final[Callable[..., None] | None] = _given("bind")
"""Says once which classes and objects of Python the functions here work with."""

suspect: Final[Callable[[bytes, Signs], bool] | None] = _given("suspect")
"""Whether a closer look for secrets at bytes is due."""

hash_flat: Final[Callable[[dict[Any, Any], Signs], bytes | None] | None] = _given("hash_flat")
"""The digest of a flat dict."""

hash_items: Final[Callable[[list[Any], int, int, bytes, object, Signs], bytes | None] | None] = (
    _given("hash_items")
)
"""The digest of a group of items of a tracked list."""

hash_list: Final[Callable[[list[Any], object, object, Signs], bytes | None] | None] = _given(
    "hash_list"
)
"""The digest of a long tracked list of which at most the end is not known."""

brief: Final[Callable[[object, Signs], str | None] | None] = _given("brief")
"""A short form of a value in which nothing looks secret."""

encode: Final[Callable[[object, Signs], bytes | None] | None] = _given("encode")
"""The codec's bytes of a plain value in which nothing looks secret."""

track: Final[Callable[[dict[Any, Any], object], Any] | None] = _given("track")
"""A loose tracked copy of a flat dict."""

append: Final[Callable[[list[Any], object, int], bool] | None] = _given("append")
"""Appends to a tracked list; whether that was done."""

set_items: Final[Callable[[dict[Any, Any], dict[Any, Any]], bool] | None] = _given("set_items")
"""Puts items into a tracked dict; whether that was done."""

delta: Final[Callable[[list[Any], int, int, int, Signs], Delta | None] | None] = _given("delta")
"""What changed in a state."""

messages: Final[Callable[[list[Any], int, int, list[Any]], list[Any]] | None] = _given("messages")
"""How a base names the messages that a list begins with."""

cuts: Final[Callable[[bytes, tuple[Any, ...]], list[tuple[int, ...]] | None] | None] = _given(
    "cuts"
)
"""Which values can be cut out of a row."""

seal_row: Final[Callable[[bytes, int, bytes, bytes], tuple[bytes, bytes] | None] | None] = _given(
    "seal_row"
)
"""Hash and body of a small row of a store that is not encrypted."""

direct: Final[Callable[[bytes, int, int, int], object] | None] = _given("direct")
"""What `add_row` takes to write to an open file past the page cache, after so many rows, and to
look so many nanoseconds for the disk's answer before it sleeps; None where that cannot be."""

add_row: Final[
    Callable[[tuple[int, int, int], memoryview, int, int, int, int, bytes, bytes, object], int]
    | None
] = _given("add_row")
"""Adds a row to the tail of a store and notes it: 1, or 2 where somebody is to be woken too; 0
where it is not a matter of course."""

is_same: Final[Callable[[Any, Any], bool] | None] = _given("is_same")
"""Whether two dicts, or two lists, hold the very same objects in one order."""
