"""A state made to hold again what it held before, inside its own containers where they stand."""

from itertools import takewhile
from typing import Any

from holdfast.capture.digest import digest
from holdfast.capture.fixed import BASIC, Value
from holdfast.capture.node import KINDS, TRACKED


def refill(root: Value, before: dict[Any, Any]) -> None:
    """Make a tracked mapping hold `before`: values, order of keys, and what stands twice."""
    _Refill().fill(root, before)


class _Refill:
    """Which container stands for which one of before: each for one, whatever is shared now."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._used: set[int] = set()

    def fill(self, now: Value, before: Value) -> None:
        """Have the container `now` hold what `before` holds; what is equal is not touched."""
        self._made[id(before)] = now
        self._used.add(id(now))
        if isinstance(before, dict):
            self._fill_dict(now, before)
        else:
            kept = [*now[: len(before)], *[None] * (len(before) - len(now))]
            items = [self._item(*pair) for pair in zip(kept, before, strict=True)]
            start = sum(1 for _ in takewhile(_are_one, zip(now, items, strict=False)))
            if start < max(len(now), len(items)):
                now[start:] = items[start:]

    def _fill_dict(self, now: Value, before: dict[Any, Any]) -> None:
        items = {key: self._item(now.get(key), value) for key, value in before.items()}
        if [*map(_exactly, now)] != [*map(_exactly, before)]:
            now.clear()
        for key, item in items.items():
            if key not in now or now[key] is not item:
                now[key] = item

    def _item(self, now: Value, before: Value) -> Value:
        """What is to stand in a place again: what stands there now, if it can."""
        kind = type(before)
        if kind not in TRACKED:
            return now if _is_equal(now, before) else before
        known = self._made.get(id(before))
        if known is None:
            is_free = KINDS.get(type(now)) is kind and id(now) not in self._used
            known = now if is_free else TRACKED[kind]()
            self.fill(known, before)
        return known


def _are_one(pair: tuple[object, object]) -> bool:
    return pair[0] is pair[1]


def _is_equal(now: object, before: object) -> bool:
    if type(now) is not type(before):
        return False
    if type(now) in BASIC and type(now) is not float:
        return now == before
    return digest(now) == digest(before)


def _exactly(key: object) -> tuple[type, object]:
    return type(key), key
