"""The dict that notices every change made through its methods."""

import copy
from typing import Any, Final, Self, SupportsIndex, final
from weakref import ref

from holdfast import native
from holdfast.capture.fixed import BASIC, Value
from holdfast.capture.hashes import DictCache
from holdfast.capture.inherit import Heir, succeed
from holdfast.capture.insert import carry, put_in
from holdfast.capture.marks import Changes
from holdfast.capture.node import KINDS, LOOSE, SLOTS, Node, Tracker, begin, forget_source, stale
from holdfast.capture.watch import Watch

_MISSING: Final[Any] = object()


@final
class TrackedDict(dict[Any, Any]):
    """A dict that notices its changes."""

    __slots__ = SLOTS
    __holdfast_plain__ = dict

    hf_tracker: Tracker | None
    hf_node: int
    hf_mark: Changes | None
    hf_hash: bytes | DictCache | None
    hf_source: Any
    hf_up: ref[Node] | dict[int, ref[Node]] | None
    hf_watch: Watch | None

    def __new__(cls, *_args: object, **_kwargs: object) -> "TrackedDict":
        """Make an empty one that is part of no state."""
        self = super().__new__(cls)
        carry(self, LOOSE)
        return self

    def __init__(self, *args: Value, **kwargs: object) -> None:
        self.update(*args, **kwargs)

    def hf_note(self, tracker: Tracker, key: object, *, is_set: bool) -> None:
        """Note that `key` is about to be set or deleted."""
        if self.hf_node >= tracker.floor:
            mark = self.hf_mark
            if mark is None:
                tracker.dirty.append(self)
                mark = self.hf_mark = Changes(len(self))
            if not is_set:
                mark.delete(key)
            elif key in self:
                mark.overwrite(key)
            else:
                mark.add(key)
        known = self.hf_hash
        if known is not None:
            if isinstance(known, bytes):
                self.hf_hash = None
                stale(self)
            else:
                if known.root is not None:
                    stale(self)
                known.touch(key)
        if self.hf_source is not None:
            forget_source(self)

    def __setitem__(self, key: object, value: object, /) -> None:
        if native.set_items is not None and native.set_items(self, {key: value}):
            return
        tracker = begin(self, key)
        try:
            if type(value) not in BASIC:
                standing = self.get(key)
                if type(value) in KINDS and standing is value:
                    return  # `d[k] += more` sets what stands there already
                value = put_in(self, value, tracker)
                if type(standing) in KINDS:
                    Heir().take(value, standing)
                    if type(value) in KINDS:
                        succeed(value, standing, self, tracker)
            self.hf_note(tracker, key, is_set=True)
            dict.__setitem__(self, key, value)
        finally:
            tracker.lock.release()

    def __delitem__(self, key: object, /) -> None:
        tracker = begin(self, key)
        try:
            if key in self:
                self.hf_note(tracker, key, is_set=False)
            super().__delitem__(key)
        finally:
            tracker.lock.release()

    def pop(self, key: object, default: Value = _MISSING, /) -> Value:
        """Take a key out and give its value, or `default`."""
        tracker = begin(self, key)
        try:
            if key in self:
                self.hf_note(tracker, key, is_set=False)
                return super().pop(key)
            return super().pop(key) if default is _MISSING else default
        finally:
            tracker.lock.release()

    def popitem(self) -> tuple[Any, Any]:
        """Take the last key out and give it with its value."""
        tracker = begin(self)
        try:
            if self:
                self.hf_note(tracker, next(reversed(self)), is_set=False)
            return super().popitem()
        finally:
            tracker.lock.release()

    def clear(self) -> None:
        """Take every key out."""
        tracker = begin(self)
        try:
            for key in list(self):
                del self[key]
        finally:
            tracker.lock.release()

    def update(self, *args: Value, **kwargs: object) -> None:
        """Set many; what an iterator gave before it failed stays, as in a dict."""
        if native.set_items is not None and not kwargs and len(args) == 1:
            (items,) = args
            if type(items) is dict and native.set_items(self, items):
                return
        begin(self).lock.release()  # refuse before anything is taken from the iterator
        taken: dict[object, object] = {}
        try:
            taken.update(*args, **kwargs)
        finally:
            if native.set_items is None or not native.set_items(self, taken):
                self._set_each(taken)

    def _set_each(self, items: dict[object, object]) -> None:
        tracker = begin(self)
        try:
            for key, value in items.items():
                self[key] = value
        finally:
            tracker.lock.release()

    def setdefault(self, key: object, default: object = None, /) -> Value:
        """Give the value of `key`, after setting it to `default` if it was not there."""
        value = self.get(key, _MISSING)
        if value is not _MISSING:
            return value
        tracker = begin(self, key)
        try:
            if key not in self:
                self[key] = default
            return self[key]
        finally:
            tracker.lock.release()

    def __ior__(self, other: Value, /) -> Self:  # type: ignore[misc]  # the stub of `|` takes dicts alone
        self.update(other)
        return self

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        new: dict[Any, Any] = {}
        memo[id(self)] = new
        new.update({copy.deepcopy(k, memo): copy.deepcopy(v, memo) for k, v in self.items()})
        return new

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]:
        return dict, (dict(self),)
