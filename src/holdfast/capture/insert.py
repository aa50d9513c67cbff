"""Putting a value into a tracked container: plain ones are copied, tracked ones keep their place.

A plain dict or list becomes a tracked copy, all the way down, and the original is watched while
others may still change it. A tracked container is put in as the very same object. Anything else is
a leaf and is kept as it is.
"""

from typing import Any
from weakref import ref

from holdfast import errors
from holdfast.capture.fixed import BASIC, Value
from holdfast.capture.node import (
    DEPTH_MAX,
    KINDS,
    LOOSE,
    TRACKED,
    UNSAVED,
    Node,
    Tracker,
    children,
    is_flat,
    is_within,
    link,
    may_change,
    out_of_place,
    where,
)
from holdfast.capture.watch import Watch


def blank(kind: type, tracker: Tracker) -> Value:
    """Make an empty tracked container of the tracked class `kind`."""
    new: Any = KINDS[kind].__new__(kind)  # type: ignore[call-overload]  # `dict` or `list`, whose `__new__` differ
    carry(new, tracker)
    return new


def tracked_dict(plain: dict[Any, Any], tracker: Tracker, node: int, source: Value) -> Value:
    """Make the tracked dict with the content of a flat one, unchanged, with a source."""
    kind = TRACKED[dict]
    new: Any = dict.__new__(kind)
    dict.update(new, plain)
    new.hf_tracker, new.hf_node, new.hf_source = tracker, node, source
    new.hf_mark = new.hf_hash = new.hf_up = new.hf_watch = None
    return new


def carry(node: Node, tracker: Tracker) -> None:
    """Give a new container what every one carries."""
    node.hf_tracker = tracker
    node.hf_node = UNSAVED
    node.hf_mark = node.hf_hash = node.hf_source = node.hf_up = node.hf_watch = None


def put_in(target: Node, value: Value, tracker: Tracker) -> Value:
    """Make `value` ready to stand in `target`, whose lock the caller holds."""
    kind = type(value)
    if kind in BASIC:
        return value
    if kind in KINDS and value.hf_tracker is LOOSE and _settle_flat(value, tracker):
        link(value, ref(target))
        return value
    insertion = Insertion(target, tracker)
    ready = insertion.ready(value, target)
    insertion.look_for_cycle()
    return ready


def _settle_flat(node: Node, tracker: Tracker) -> bool:
    """Make a loose container part of a state if there is nothing in it to be settled too."""
    with LOOSE.lock:
        if node.hf_tracker is not LOOSE or node.hf_watch is not None or not is_flat(node):
            return False
        node.hf_tracker = tracker
        return True


def put_own_in(target: Node, value: dict[Any, Any], tracker: Tracker) -> Value:
    """Make a flat dict that nobody else holds ready to stand in `target`: there is no original."""
    copy = tracked_dict(value, tracker, UNSAVED, None)
    copy.hf_up = ref(target)
    return copy


class Insertion:
    """One value, or the values of one call, on the way into `target`."""

    __slots__ = ("_depth", "_placed", "_target", "_tracker")

    def __init__(self, target: Node, tracker: Tracker) -> None:
        self._target = target
        self._tracker = tracker
        self._placed: set[int] = set()  # containers that had a place in the state before
        self._depth = 0

    def ready(self, value: object, parent: Node) -> Value:
        """Give what is to stand in `parent`: `value`, or its tracked copy."""
        kind = type(value)
        if kind in BASIC:
            return value
        if kind is dict or kind is list:
            node = self._copy(value)
        elif kind in KINDS:
            node = value
            self._settle(node)  # type: ignore[arg-type]  # what is in `KINDS` is a Node
        else:
            if self._tracker is not LOOSE and may_change(value):
                self._tracker.holders[id(parent)] = ref(parent)
            return value
        link(node, ref(parent))
        return node

    def look_for_cycle(self) -> None:
        """Note where a container may now stand below itself; the next save finds out.

        A cycle of containers that were never saved is found by the save itself, so only those
        count that had a place before; and of what is part of no state, none was saved.
        """
        if self._placed and is_within(self._target, self._placed):
            self._tracker.suspects.append(ref(self._target))

    def _copy(self, original: Value) -> Value:
        known = self._tracker.originals.copy_of(original)
        if known is None:
            known = LOOSE.originals.copy_of(original)
        if known is not None and known.hf_tracker in (self._tracker, LOOSE):
            self._settle(known)
            return known
        self._depth += 1
        if self._depth > DEPTH_MAX:
            why = f"it is nested deeper than {DEPTH_MAX} containers"
            raise errors.NotStorable(where(self._target), type(original).__name__, why)
        copy = blank(TRACKED[type(original)], self._tracker)
        copy.hf_watch = Watch(original, copy)
        self._tracker.originals.add(copy.hf_watch)
        self._tracker.originals.review_when_many()
        if type(original) is dict and BASIC.issuperset(map(type, original.values())):
            dict.update(copy, original)
        elif type(original) is dict:
            for key, value in original.items():
                dict.__setitem__(copy, key, self.ready(value, copy))
        else:
            list.extend(copy, [self.ready(value, copy) for value in original])
        self._depth -= 1
        return copy

    def _settle(self, node: Node) -> None:
        """Make a tracked container part of the state that `target` is part of."""
        if node.hf_tracker is self._tracker:
            if self._tracker is not LOOSE:
                self._placed.add(id(node))
        elif node.hf_tracker is LOOSE:
            with LOOSE.lock:
                self._attach(node)
        elif node.hf_tracker is None:
            raise out_of_place()
        elif self._tracker is not LOOSE:
            raise errors.UsageError(
                "this container is part of another run's state; put `holdfast.plain(x)` in"
            )

    def _attach(self, top: Node) -> None:
        found: dict[int, Node] = {}
        mixed: list[Node] = []
        stack: list[Any] = [top]
        while stack:
            node = stack.pop()
            if id(node) in found:
                continue
            if node.hf_tracker is not LOOSE:
                self._settle(node)
            else:
                found[id(node)] = node
                values = children(node)
                if not BASIC.issuperset(map(type, values)):
                    stack.extend(value for value in values if type(value) in KINDS)
                    mixed.append(node)
        for node in found.values():
            node.hf_tracker = self._tracker
            if node.hf_watch is not None:
                LOOSE.originals.remove(node.hf_watch)
                self._tracker.originals.add(node.hf_watch)
        for node in mixed:
            if any(may_change(value) for value in children(node)):
                self._tracker.holders[id(node)] = ref(node)
