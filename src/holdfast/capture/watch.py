"""Plain objects that were copied into the state, while others may still change them."""

import sys
from operator import is_
from typing import Any, Final
from weakref import ref

from holdfast import errors, native
from holdfast.capture.fixed import Value
from holdfast.store.codec import values

ORIGINALS_BEFORE_REVIEW: Final = 256


class Watch:
    """One plain dict or list, what it held when it was copied, and the tracked copy."""

    __slots__ = ("copy", "original", "shadow")

    def __init__(self, original: Value, copy: Value) -> None:
        self.original = original
        self.shadow = original.copy()
        self.copy = ref(copy)

    def is_changed(self) -> bool:
        """Say whether the original no longer holds what was copied, in the same order."""
        now, then = self.original, self.shadow
        if len(now) != len(then):
            return True
        if isinstance(now, dict):
            if not all(map(is_, now, then)):
                return True
            now, then = now.values(), then.values()
        return not all(map(is_, now, then)) and not all(map(_is_same, now, then))

    def is_held(self) -> bool:
        """Say whether anyone else refers to the original."""
        return sys.getrefcount(self.original) > _REFERENCES_ALONE


def _is_same(now: object, then: object) -> bool:
    if now is then:
        return True
    if isinstance(now, dict | list) or isinstance(then, dict | list):
        return False
    try:
        return values.canonical(now, path="") == values.canonical(then, path="")
    except errors.NotStorable:
        return False


def _count_alone() -> int:
    watch = Watch.__new__(Watch)
    watch.original = []
    return sys.getrefcount(watch.original)


# What `getrefcount` says of an original that only its watch holds, on this interpreter.
_REFERENCES_ALONE: Final = _count_alone()


class Originals:
    """The watched originals of one tracker, by identity; outer ones before inner ones."""

    def __init__(self) -> None:
        self.watches: dict[int, Watch] = {}
        self._review_at = ORIGINALS_BEFORE_REVIEW

    def __len__(self) -> int:
        return len(self.watches)

    def add(self, watch: Watch) -> None:
        """Begin to watch an original."""
        self.watches[id(watch.original)] = watch

    def remove(self, watch: Watch) -> None:
        """Stop watching an original."""
        self.watches.pop(id(watch.original), None)

    def copy_of(self, original: object) -> Value | None:
        """Give the tracked copy that was made of `original`, if it is watched."""
        watch = self.watches.get(id(original))
        return None if watch is None else watch.copy()

    def review(self) -> list[Any]:
        """Give the tracked copies whose originals were changed; forget what is out of reach.

        An original that is as it was and that nobody else holds can never change again.
        """
        changed: list[Any] = []
        if not self.watches:
            return changed
        left, self.watches = self.watches, {}
        for key in list(left):
            watch = left.pop(key)  # the one before is let go now, and with it what only it held
            copy = watch.copy()
            if copy is None:
                continue
            is_same = native.is_same is not None and native.is_same(watch.original, watch.shadow)
            if not is_same and watch.is_changed():
                changed.append(copy)
            elif not watch.is_held():
                copy.hf_watch = None
                continue
            self.watches[key] = watch
        return changed

    def review_when_many(self) -> None:
        """Review if there are twice as many as after the last time."""
        if len(self.watches) >= self._review_at:
            self.review()
            self._review_at = max(ORIGINALS_BEFORE_REVIEW, 2 * len(self.watches))
