"""Whether a leaf is as it was when it was encoded last, told without encoding it again.

A leaf of plain parts (a Pydantic model, a dataclass, a struct, containers in them) is what it was
as long as each part holds the very same objects, in the same order, and those that are no parts
cannot change in place. Of other leaves nothing is remembered: they are encoded every time.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from hashlib import sha256
from operator import is_
from typing import Any, Final

from holdfast.capture.fixed import is_fixed
from holdfast.store.codec import values
from holdfast.store.codec.vault import guard

PARTS_MAX: Final = 256
CANONICAL_BYTES_MAX: Final = 1 << 16
"""Longer canonical bytes are not remembered: they would double what the leaf takes."""

Holds = Callable[[Any], list[Any]]


def _in_dict(part: dict[Any, Any]) -> list[Any]:
    return [*part, *part.values()]


_BUILT_IN: Final[dict[type, Holds]] = {dict: _in_dict, list: list, set: list, tuple: list}


class Shadow:
    """A leaf, part by part, as it was at one time, and what it was encoded to then."""

    __slots__ = ("_parts", "canonical", "digest")

    def __init__(self, parts: list[tuple[Any, type, Holds, list[Any]]]) -> None:
        self._parts = parts
        self.canonical: bytes | None = None
        self.digest: bytes | None = None

    def is_true(self) -> bool:
        """Say whether the leaf is as it was."""
        for part, kind, holds, then in self._parts:
            if type(part) is not kind:
                return False
            now = holds(part)
            if len(now) != len(then) or not all(map(is_, now, then)):
                return False
        return True


def shadow_of(leaf: object) -> Shadow | None:
    """Give the shadow of a leaf as it is now; None if it has parts whose changes nobody sees."""
    parts: list[tuple[Any, type, Holds, list[Any]]] = []
    seen: set[int] = set()
    stack = [leaf]
    while stack:
        part = stack.pop()
        if is_fixed(part) or id(part) in seen:
            continue
        holds = _holds(type(part))
        if holds is None or len(parts) == PARTS_MAX:
            return None
        held = holds(part)
        parts.append((part, type(part), holds, held))
        seen.add(id(part))
        stack += held
    return Shadow(parts)


def mutable_in(leaf: object) -> Iterator[object]:
    """Give a leaf and what in it may change in place, as far as it is stored in parts."""
    seen: set[int] = set()
    stack = [leaf]
    while stack:
        part = stack.pop()
        holds = None if is_fixed(part) or id(part) in seen else _holds(type(part))
        if holds is not None:
            seen.add(id(part))
            stack += holds(part)
            if type(part) is not tuple:
                yield part


def _holds(kind: type) -> Holds | None:
    """How to look at what a part of this class holds; None for one that encodes itself."""
    known = _BUILT_IN.get(kind)
    if known is None and (entry := values.registry.of_class(kind)) is not None:
        return entry.shape.holds
    return known


class Shadows:
    """What is known of the leaves of one state. Their owner holds a lock while it asks."""

    def __init__(self) -> None:
        self._known: dict[int, Shadow] = {}

    def canonical(self, leaf: object) -> bytes:
        """Give the canonical bytes of a leaf, as the codec does."""
        shadow = self.of(leaf) if guard.get().cuts else None
        if shadow is None:
            return values.canonical(leaf, path="")
        if shadow.canonical is None:
            data = values.canonical(leaf, path="")
            if len(data) > CANONICAL_BYTES_MAX:
                return data
            shadow.canonical = data
        return shadow.canonical

    def digest(self, leaf: object, encode: Callable[[], bytes]) -> bytes:
        """Give the SHA-256 of what `encode` makes of a leaf; it is not asked if that is known."""
        shadow = self.of(leaf)
        if shadow is None:
            return sha256(encode()).digest()
        if shadow.digest is None:
            shadow.digest = sha256(encode()).digest()
        return shadow.digest

    def of(self, leaf: object) -> Shadow | None:
        """Give the shadow of a leaf, if it has one, as it is now."""
        known = self._known.get(id(leaf))  # It holds the leaf, so the identity is its own.
        if known is not None and known.is_true():
            return known
        made = shadow_of(leaf)
        if made is None:
            self._known.pop(id(leaf), None)
        else:
            self._known[id(leaf)] = made
        return made

    def keep(self, leaves: AbstractSet[int]) -> None:
        """Forget all leaves but those with these identities."""
        if not self._known.keys() <= leaves:
            self._known = {key: it for key, it in self._known.items() if key in leaves}

    def forget(self) -> None:
        """Forget all: they may be encoded otherwise now."""
        self._known.clear()
