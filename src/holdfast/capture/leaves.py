"""Leaves that may change in place: each save compares them with what was saved."""

import gc
from collections.abc import Callable, Container, Iterator
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from holdfast import errors
from holdfast.capture.fixed import BASIC, Value
from holdfast.capture.lost import Lost
from holdfast.capture.node import KINDS, Node, Tracker, entries, may_change, step, where
from holdfast.capture.shadow import Shadows
from holdfast.store.codec import values

_TRANSPARENT: Final = frozenset({dict, list, tuple, set, frozenset})
_FIELDS: Final = ("__dataclass_fields__", "__struct_fields__", "__pydantic_fields__")
_WHY_HOLDING: Final = (
    "it holds a container of the state, which would come back as a copy; "
    "put `holdfast.plain(x)` in it instead"
)


class Saved(NamedTuple):
    """A leaf as it was last saved; holding it keeps its identity its own."""

    leaf: object
    node: int
    digest: bytes


class Now:
    """A leaf as it is at this save, at the first place where it was found."""

    __slots__ = ("_data", "_holder", "_place", "digest", "leaf")

    def __init__(self, leaf: object, holder: Node, place: object, shadows: Shadows) -> None:
        self.leaf, self._holder, self._place = leaf, holder, place
        self._data: bytes | None = None
        self.digest = shadows.digest(leaf, self.data)

    def data(self) -> bytes:
        """Give what the codec makes of the leaf."""
        if self._data is None:
            path = partial(_path, self._holder, self._place)
            self._data = values.encode(self.leaf, path=path)
        return self._data


class Leaves:
    """The changeable leaves of one state, by identity."""

    def __init__(self) -> None:
        self.saved: dict[int, Saved] = {}

    def look(self, tracker: Tracker, reach: set[int] | None) -> dict[int, Now]:
        """Give every changeable leaf as it is now, after marking the places of those that changed.

        With `reach`, only containers with those identities are looked at. The leaves of the others
        are marked unseen: one of them may get another id now, by standing elsewhere too.
        """
        found: dict[int, Now] = {}
        for key, held in list(tracker.holders.items()):
            holder = held()
            if holder is None or holder.hf_tracker is not tracker:
                del tracker.holders[key]
                continue
            places = list(changeable(holder))
            if not places:
                del tracker.holders[key]
            for place, leaf in places:
                if reach is None or key in reach:
                    self._look_at(tracker, holder, place, leaf, found)
                elif holder.hf_node >= tracker.floor:
                    mark_place(tracker, holder, place)
        if not self.saved.keys() <= found.keys():
            self._hand_on(found)
        return found

    def _hand_on(self, found: dict[int, Now]) -> None:
        """Let equal copies be what the leaves were that are gone: nobody can tell them apart."""
        gone = {saved.digest: key for key, saved in self.saved.items() if key not in found}
        for key, now in found.items():
            if key not in self.saved and (before := gone.pop(now.digest, None)) is not None:
                self.saved[key] = self.saved.pop(before)._replace(leaf=now.leaf)

    def _look_at(
        self, tracker: Tracker, holder: Node, place: object, leaf: object, found: dict[int, Now]
    ) -> None:
        now = found.get(id(leaf))
        if now is None:
            now = found[id(leaf)] = see(leaf, holder, place, tracker.shadows)
        if self.unchanged(now, tracker.floor) is None:
            if _holds_tracked(leaf):
                path = _path(holder, place)
                raise errors.NotStorable(path, type(leaf).__name__, _WHY_HOLDING)
            if holder.hf_node >= tracker.floor:
                mark_place(tracker, holder, place)

    def unchanged(self, now: Now, floor: int) -> int | None:
        """Give the node id under which the leaf was saved as it is now; None if it was not."""
        saved = self.saved.get(id(now.leaf))
        is_same = saved is not None and saved.node >= floor and saved.digest == now.digest
        return saved.node if is_same and saved is not None else None

    def keep(self, found: dict[int, Now], written: dict[int, int]) -> None:
        """Remember the leaves that a save wrote, and forget those that it did not find."""
        if self.saved:
            self.saved = {key: saved for key, saved in self.saved.items() if key in found}
        for key, node in written.items():
            now = found[key]
            self.saved[key] = Saved(now.leaf, node, now.digest)


def changeable(node: Node) -> Iterator[tuple[Any, object]]:
    """Give the places in `node` that hold a leaf which may change in place."""
    for place, value in entries(node):
        if may_change(value):
            yield place, value


def mark_place(tracker: Tracker, holder: Value, place: Value) -> None:
    """Note that what stands at one place of `holder` is not what was saved."""
    if isinstance(holder, dict):
        holder.hf_note(tracker, place, is_set=True)  # type: ignore[attr-defined]  # each dict here is a TrackedDict
    else:
        holder.hf_note(tracker, place, place + 1, 1)


def see(leaf: object, holder: Node, place: object, shadows: Shadows) -> Now:
    """Look at a leaf; `NotStorable` or `ChangedOutside`, with its place, if it cannot be saved."""
    if type(leaf) is dict or type(leaf) is list:
        raise errors.ChangedOutside(where(holder))  # set without the methods of its container
    return Now(leaf, holder, place, shadows)


def _path(holder: Node, place: object) -> str:
    return where(holder) + step(place)


def _holds_tracked(leaf: object) -> bool:
    """Say whether a tracked container stands somewhere inside `leaf`."""
    return any(type(item) in KINDS for item in within(leaf, but=BASIC))


def within(leaf: object, but: Container[object] = ()) -> Iterator[object]:
    """Give what stands inside `leaf`, each thing once, as far as the codec stores it in parts.

    All `but` what is of these classes, in which nothing stands.
    """
    seen: set[int] = {id(leaf)}
    stack: list[object] = [leaf]
    while stack:
        for item in gc.get_referents(stack.pop()):
            if type(item) not in but and id(item) not in seen:
                seen.add(id(item))
                yield item
                if _is_transparent(type(item)):
                    stack.append(item)


def _look_through(kind: type) -> bool:
    """Say whether the codec stores what is inside an object of this class part by part."""
    return kind in _TRANSPARENT or any(hasattr(kind, name) for name in _FIELDS)


_is_transparent: Callable[[type], bool] = lru_cache(maxsize=256)(_look_through)


def saved_leaves(nodes: list[Any], tracker: Tracker) -> dict[int, Saved]:
    """Give the changeable leaves among what was read, with what they encode to now."""
    numbers = {id(leaf): at for at, leaf in enumerate(nodes) if type(leaf) not in KINDS}
    saved: dict[int, Saved] = {}
    for held in tracker.holders.values():
        holder = held()
        if holder is None:
            continue
        for place, leaf in changeable(holder):
            if id(leaf) in numbers and type(leaf) is not Lost:
                now = see(leaf, holder, place, tracker.shadows)
                saved[id(leaf)] = Saved(leaf, numbers[id(leaf)], now.digest)
    return saved
