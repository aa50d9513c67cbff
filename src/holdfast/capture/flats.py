"""Digests of flat dicts, told again by the identity of what they hold.

An agent that keeps its conversation in a list of its own gives the same messages to every step. A
dict that holds nothing but what cannot change has the digest it had, as long as it holds the very
same objects in the same order; that is looked at each time, and takes a tenth of hashing it.
"""

from operator import is_
from typing import Any, Final

KEPT_MIN: Final = 1024

_Known = tuple[dict[Any, Any], list[Any], bytes]


class Flats:
    """What is known of the dicts that a run gave to its calls.

    Each is held, so that its identity stays its own; those that were not asked for again are
    forgotten when there are many.
    """

    def __init__(self) -> None:
        self._young: dict[int, _Known] = {}
        self._old: dict[int, _Known] = {}
        self._kept_max = KEPT_MIN
        self._secrets = 0

    def prepare(self, count: int, secrets: int) -> None:
        """Make room for `count` dicts; with other `secrets` than before, all is hashed anew."""
        self._kept_max = max(KEPT_MIN, 2 * count)
        if secrets != self._secrets:
            self._secrets, self._young, self._old = secrets, {}, {}

    def recall(self, mapping: dict[Any, Any], held: list[Any]) -> bytes | None:
        """Give the digest of a dict that holds these keys and values; None if it held others."""
        key = id(mapping)
        known = self._young.get(key)
        if known is None:
            known = self._old.get(key)
            if known is None:
                return None
            self._young[key] = known
        _, then, digest = known
        return digest if len(held) == len(then) and all(map(is_, held, then)) else None

    def keep(self, mapping: dict[Any, Any], held: list[Any], digest: bytes) -> None:
        """Remember the digest of a dict that holds nothing that can change."""
        if len(self._young) >= self._kept_max:
            self._old, self._young = self._young, {}
        self._young[id(mapping)] = mapping, held, digest
