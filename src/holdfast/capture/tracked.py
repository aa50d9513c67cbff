"""Tracked containers: the dict and the list that notice every change, and ways in and out.

They are real subclasses, so `==`, `json`, `{**x}` and `isinstance` just work; what copies them
(`copy`, slices, `+`, `|`, pickling) gives plain containers. C code that changes a list or dict
without its methods (`heapq`, `list.append(x, ...)`) is not seen: give it `plain(x)` and put the
result back, or run with `State(check=True)`, which compares.
"""

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any
from weakref import ref

from holdfast import native
from holdfast.capture.dicts import TrackedDict
from holdfast.capture.fixed import BASIC, Value, is_fixed
from holdfast.capture.hashes import DictCache, ListCache
from holdfast.capture.insert import blank, tracked_dict
from holdfast.capture.lists import TrackedList
from holdfast.capture.marks import Changes, Window
from holdfast.capture.node import (
    KINDS,
    LOOSE,
    TRACKED,
    UNSAVED,
    Tracker,
    forget_source,
    inside,
    is_flat,
    link,
    links,
    stale,
)
from holdfast.capture.places import Place, source_of

__all__ = ["TrackedDict", "TrackedList", "inside", "plain", "track"]

KINDS.update({TrackedDict: dict, TrackedList: list})
TRACKED.update({dict: TrackedDict, list: TrackedList})
if native.bind is not None:
    _CLASSES = TrackedDict, TrackedList, Tracker, Window, Changes, ListCache, DictCache, Place
    native.bind(*_CLASSES, inside, LOOSE, links, stale, forget_source)


def track(value: object, source: object | None = None, keys: Iterable[object] = ()) -> Value:
    """Give a tracked copy of a dict or list, all the way down; a leaf as it is.

    `source` says where the value can be read again: a small tuple of integers, and `keys` what
    leads down to it there. As long as the copy,
    or a container in it, is as it was made, a delta names the source instead of repeating it.
    The caller gives `value` away: a later change of it is not looked for.
    """
    kind = type(value)
    if kind not in TRACKED and kind not in KINDS:
        return value
    if kind is dict and not keys:
        quick = _track_flat(value, source)  # type: ignore[arg-type]  # `kind` says that it is a dict
        if quick is not None:
            return quick
    return _Copying().copy(value, None if source is None else source_of(source, keys))


def _track_flat(plain: dict[Any, Any], source: object | None) -> Value | None:
    if native.track is not None:
        return native.track(plain, source)
    if not is_flat(plain):
        return None
    return tracked_dict(plain, LOOSE, UNSAVED, None if source is None else (None, source))


def copy_with(value: Value, source: tuple[Value, object] | None) -> Value:
    """Give a tracked copy of a tracked container that has the source of the original."""
    return _Copying().copy(value, source)


class _Copying:
    """One value on its way into new tracked containers; what is shared in it stays shared.

    Tracked ones in it are copied too: an answer is never part of the state it was made from.
    """

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}

    def copy(self, value: Value, source: tuple[Value, object] | None) -> Value:
        known = self._copies.get(id(value))
        if known is not None:
            return known
        kind = KINDS.get(type(value), type(value))
        new = self._copies[id(value)] = blank(TRACKED[kind], LOOSE)
        new.hf_source = source
        if kind is dict:
            if BASIC.issuperset(map(type, value.values())):
                dict.update(new, value)
            else:
                for key, item in value.items():
                    dict.__setitem__(new, key, self._item(item, key, new, source))
        elif BASIC.issuperset(map(type, value)):
            list.extend(new, value)
        else:
            list.extend(new, [self._item(item, at, new, source) for at, item in enumerate(value)])
        return new

    def _item(self, item: Value, key: object, parent: Value, source: Value) -> Value:
        kind = type(item)
        if kind in BASIC:
            return item
        if kind not in TRACKED and kind not in KINDS:
            if source is not None and not is_fixed(item):
                forget_source(parent)  # a change of this leaf in place would not be noticed
            return item
        item = self.copy(item, None if source is None else (source, key))
        link(item, ref(parent))
        if item.hf_source is None:
            forget_source(parent)
        return item


def plain(value: Value) -> Value:
    """Give `value` with ordinary dicts and lists in place of tracked ones, copied all the way down.

    What is shared stays shared. Tuples are made anew only if they hold tracked containers; sets,
    dataclasses and other objects are the same objects as before.
    """
    tracker = value.hf_tracker if type(value) in KINDS else None
    with tracker.lock if tracker is not None else nullcontext():
        return _Plain().copy(value)


class _Plain:
    """One value on its way from tracked to plain."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}

    def copy(self, value: Value) -> Value:
        kind = type(value)
        if kind in BASIC:
            return value
        if kind is tuple:
            items = tuple(self.copy(item) for item in value)
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items
        if kind not in KINDS and kind not in TRACKED:
            return value
        new = self._copies.get(id(value))
        if new is None:
            new = self._copies[id(value)] = KINDS.get(kind, kind)()
            if isinstance(value, dict):
                new.update({key: self.copy(item) for key, item in value.items()})
            else:
                new.extend([self.copy(item) for item in value])
        return new
