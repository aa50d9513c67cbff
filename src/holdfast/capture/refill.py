"""A state made to hold again what it held before, inside its own containers where they stand."""

from typing import Any

from holdfast.capture.digest import digest
from holdfast.capture.fixed import Value
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
            if len(now) != len(items) or any(map(_differ, now, items)):
                now[:] = items

    def _fill_dict(self, now: Value, before: dict[Any, Any]) -> None:
        items = {key: self._item(now.get(key), value) for key, value in before.items()}
        if [*map(_exactly, now)] != [*map(_exactly, before)]:
            now.clear()
        for key, item in items.items():
            if key not in now or _differ(now[key], item):
                now[key] = item

    def _item(self, now: Value, before: Value) -> Value:
        """What is to stand in a place again: what stands there now, if it can."""
        kind = type(before)
        if kind not in TRACKED:
            return now if type(now) is kind and digest(now) == digest(before) else before
        known = self._made.get(id(before))
        if known is None:
            is_free = KINDS.get(type(now)) is kind and id(now) not in self._used
            known = now if is_free else TRACKED[kind]()
            self.fill(known, before)
        return known


def _differ(now: object, item: object) -> bool:
    return now is not item


def _exactly(key: object) -> tuple[type, object]:
    return type(key), key
