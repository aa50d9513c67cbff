"""The list that notices every change made through its methods."""

import copy
import operator
from collections.abc import Callable, Iterable
from sys import getrefcount
from typing import Any, Final, Self, SupportsIndex, final
from weakref import ref

from holdfast import native
from holdfast.capture.fixed import Value
from holdfast.capture.hashes import ListCache
from holdfast.capture.inherit import Heir
from holdfast.capture.insert import Insertion, carry, put_in, put_own_in
from holdfast.capture.marks import Window
from holdfast.capture.node import LOOSE, SLOTS, Node, Tracker, begin, forget_source, is_flat, stale
from holdfast.capture.watch import Watch


@final
class TrackedList(list[Any]):
    """A list that notices its changes."""

    __slots__ = SLOTS
    __holdfast_plain__ = list

    hf_tracker: Tracker | None
    hf_node: int
    hf_mark: Window | None
    hf_hash: bytes | ListCache | None
    hf_source: Any
    hf_up: ref[Node] | dict[int, ref[Node]] | None
    hf_watch: Watch | None

    def __new__(cls, _items: Iterable[object] = (), /) -> "TrackedList":
        """Make an empty one that is part of no state."""
        self = super().__new__(cls)
        carry(self, LOOSE)
        return self

    def __init__(self, items: Iterable[object] = (), /) -> None:
        if self:
            self.clear()
        self.extend(items)

    def hf_note(self, tracker: Tracker, start: int, stop: int, count: int) -> None:
        """Note that items `start:stop` are about to be replaced by `count` others."""
        if self.hf_node >= tracker.floor:
            if self.hf_mark is None:
                tracker.dirty.append(self)
                self.hf_mark = Window(len(self))
            self.hf_mark.splice(start, stop, count)
        known = self.hf_hash
        if known is not None:
            if isinstance(known, bytes):
                self.hf_hash = None
                stale(self)
            else:
                if known.root is not None:
                    stale(self)
                known.splice(start, stop, count)
        if self.hf_source is not None:
            forget_source(self)

    def _splice(self, tracker: Tracker, start: int, stop: int, items: list[Any]) -> None:
        """Replace items `start:stop`; `tracker` is locked."""
        if items:
            insertion = Insertion(self, tracker)
            items = [insertion.ready(item, self) for item in items]
            insertion.look_for_cycle()
            if start < stop:
                Heir().take_items(items, self[start:stop])
        self.hf_note(tracker, start, stop, len(items))
        super().__setitem__(slice(start, stop), items)

    def append(self, item: object, /) -> None:
        """Add an item at the end."""
        if native.append is not None and native.append(self, item, _ALONE):
            return
        tracker = begin(self)
        try:
            if type(item) is dict and getrefcount(item) <= _ALONE and is_flat(item):
                ready = put_own_in(self, item, tracker)
            else:
                ready = put_in(self, item, tracker)
            length = len(self)
            self.hf_note(tracker, length, length, 1)
            list.append(self, ready)
        finally:
            tracker.lock.release()

    def extend(self, items: Iterable[object], /) -> None:
        """Add items at the end; what an iterator gave before it failed stays, as in a list."""
        begin(self).lock.release()  # refuse before anything is taken from the iterator
        taken: list[object] = []
        try:
            taken.extend(items)
        finally:
            tracker = begin(self)
            try:
                if taken:
                    self._splice(tracker, len(self), len(self), taken)
            finally:
                tracker.lock.release()

    def insert(self, index: SupportsIndex, item: object, /) -> None:
        """Put an item before `index`."""
        tracker = begin(self)
        try:
            at = slice(index, None).indices(len(self))[0]
            self._splice(tracker, at, at, [item])
        finally:
            tracker.lock.release()

    def pop(self, index: SupportsIndex = -1, /) -> Value:
        """Take an item out."""
        tracker = begin(self)
        try:
            at = _place(index, len(self))
            if at is None:
                return super().pop(index)  # raises
            item = self[at]
            self._splice(tracker, at, at + 1, [])
            return item
        finally:
            tracker.lock.release()

    def remove(self, item: object, /) -> None:
        """Take the first item that equals `item` out."""
        tracker = begin(self)
        try:
            try:
                at = self.index(item)
            except ValueError:
                raise ValueError("list.remove(x): x not in list") from None
            self._splice(tracker, at, at + 1, [])
        finally:
            tracker.lock.release()

    def clear(self) -> None:
        """Take every item out."""
        tracker = begin(self)
        try:
            if self:
                self._splice(tracker, 0, len(self), [])
        finally:
            tracker.lock.release()

    def sort(self, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
        """Sort in place."""
        tracker = begin(self)
        try:
            before = list(self)
            self.hf_note(tracker, 0, 0, 0)  # the digest is stale from now on
            try:
                super().sort(key=key, reverse=reverse)
            finally:
                self._note_moved(tracker, before)
        finally:
            tracker.lock.release()

    def reverse(self) -> None:
        """Reverse in place."""
        tracker = begin(self)
        try:
            before = list(self)
            super().reverse()
            self._note_moved(tracker, before)
        finally:
            tracker.lock.release()

    def _note_moved(self, tracker: Tracker, before: list[object]) -> None:
        """Note the part that a reordering really moved."""
        start, stop = 0, len(before)
        while start < stop and self[start] is before[start]:
            start += 1
        while stop > start and self[stop - 1] is before[stop - 1]:
            stop -= 1
        if start < stop:
            self.hf_note(tracker, start, stop, stop - start)

    def __setitem__(self, index: Value, value: Value, /) -> None:
        if isinstance(index, slice):
            self._set_slice(index, value)
            return
        tracker = begin(self, index)
        try:
            at = _place(index, len(self))
            if at is None:
                super().__setitem__(index, value)  # raises
            elif self[at] is not value:
                self._splice(tracker, at, at + 1, [value])
        finally:
            tracker.lock.release()

    def _set_slice(self, index: slice, value: Iterable[object]) -> None:
        begin(self).lock.release()  # refuse before anything is taken from an iterator
        items = list(value)
        tracker = begin(self)
        try:
            start, stop, step = index.indices(len(self))
            if step == 1:
                self._splice(tracker, start, max(start, stop), items)
                return
            low, high = _bounds(range(start, stop, step))
            part = self[low:high]
            part[slice(start - low, None, step)] = items  # raises if there are too many or few
            self._splice(tracker, low, high, part)
        finally:
            tracker.lock.release()

    def __delitem__(self, index: SupportsIndex | slice, /) -> None:
        tracker = begin(self)
        try:
            if isinstance(index, slice):
                start, stop, step = index.indices(len(self))
                low, high = _bounds(range(start, stop, step))
                part = self[low:high]
                del part[slice(start - low, None, step)]
                if low < high:
                    self._splice(tracker, low, high, part)
                return
            at = _place(index, len(self))
            if at is None:
                super().__delitem__(index)  # raises
            else:
                self._splice(tracker, at, at + 1, [])
        finally:
            tracker.lock.release()

    def __iadd__(self, items: Iterable[object], /) -> Self:  # type: ignore[misc]  # the stub of `+` takes lists alone
        self.extend(items)
        return self

    def __imul__(self, times: SupportsIndex, /) -> Self:
        tracker = begin(self)
        try:
            count = operator.index(times)
            if count <= 0:
                self.clear()
            elif count > 1:
                self._splice(tracker, len(self), len(self), list.__mul__(self, count - 1))
            return self
        finally:
            tracker.lock.release()

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        new: list[Any] = []
        memo[id(self)] = new
        new.extend(copy.deepcopy(item, memo) for item in self)
        return new

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        return list, (list(self),)


def _count(_self: object, item: object, /) -> int:
    return getrefcount(item)


def _count_alone() -> int:
    """Give what `getrefcount` says in `append` of an item that nobody else holds.

    -1 where it says the same of one that the caller holds: then it proves nothing.
    """
    held: dict[str, int] = {}
    alone = _count(None, {})
    return alone if alone < _count(None, held) else -1


_ALONE: Final = _count_alone()


def _place(index: SupportsIndex, length: int) -> int | None:
    """Give the index counted from the front; None if there is no such item."""
    at = operator.index(index)
    if at < 0:
        at += length
    return at if 0 <= at < length else None


def _bounds(places: range) -> tuple[int, int]:
    """Give the smallest slice that holds all `places`."""
    if not places:
        return 0, 0  # An empty slice that goes backwards may begin at -1, which is no place.
    return min(places[0], places[-1]), max(places[0], places[-1]) + 1
