"""Putting a restored state in place, inside the containers that the program already holds."""

from collections.abc import Iterable
from typing import Any
from weakref import ref

from holdfast.capture.fixed import Value
from holdfast.capture.leaves import Leaves, Saved
from holdfast.capture.lower import preorder
from holdfast.capture.node import (
    KINDS,
    UNSAVED,
    Node,
    Tracker,
    entries,
    forget_source,
    link,
    stale,
)


class Adoption:
    """`ours` takes over the content, ids and marks of `theirs`.

    A container of ours keeps its identity if one of the same kind stands at the same path in
    theirs; the other ones of ours lose their place, and raise when they are changed.
    """

    def __init__(self, ours: Node, theirs: Node) -> None:
        self._old = preorder(ours)
        self._new = preorder(theirs)
        self._standing: dict[int, Node] = {}  # by identity of theirs: ours that takes its place
        self._pair(ours, theirs)

    def _pair(self, ours: Node, theirs: Node) -> None:
        self._standing[id(theirs)] = ours
        taken = {id(ours)}
        stack: list[tuple[Any, Any]] = [(ours, theirs)]
        while stack:
            old, new = stack.pop()
            for key, value in entries(new):
                if type(value) not in KINDS or id(value) in self._standing:
                    continue
                kept: Any = _at(old, key)
                is_same_kind = type(kept) is type(value)
                if is_same_kind and id(kept) not in taken:
                    taken.add(id(kept))
                    self._standing[id(value)] = kept
                    stack.append((kept, value))

    def apply(self, ours: Tracker, theirs: Tracker) -> int:
        """Do it, with both trackers locked; give what is added to every id of theirs."""
        shift = ours.next - theirs.floor
        for node in self._old:
            _clear(node)
        contents = [(node, list(entries(node))) for node in self._new]
        for node, content in contents:
            place = self._place(node)
            place.hf_tracker, place.hf_hash, place.hf_mark = ours, None, node.hf_mark
            place.hf_source = node.hf_source
            place.hf_node = node.hf_node + shift if node.hf_node >= theirs.floor else UNSAVED
            if place is not node:
                node.hf_tracker = None
            self._fill(place, content)
        ours.floor, ours.next = theirs.floor + shift, theirs.next + shift
        ours.dirty = [self._place(node) for node in theirs.dirty]
        ours.suspects = [ref(self._place(node)) for node in _living(theirs.suspects)]
        holders = [self._place(node) for node in _living(theirs.holders.values())]
        ours.holders = {id(node): ref(node) for node in holders}
        for node in self._old:
            if node.hf_tracker is None and node.hf_watch is not None:
                ours.originals.remove(node.hf_watch)
        return shift

    def _place(self, node: Value) -> Value:
        return self._standing.get(id(node), node)

    def _fill(self, place: Value, content: list[tuple[Value, Value]]) -> None:
        kind: Any = KINDS[type(place)]
        kind.clear(place)
        for key, value in content:
            item = value
            if type(value) in KINDS:
                item = self._place(value)
                link(item, ref(place))
            if kind is dict:
                dict.__setitem__(place, key, item)
            else:
                list.append(place, item)


def _clear(node: Node) -> None:
    """Take a container of ours out of its place, until it is given a new one."""
    if node.hf_hash is not None:
        stale(node)
    forget_source(node)
    node.hf_hash = node.hf_mark = node.hf_tracker = None


def _living(held: Iterable[ref[Node]]) -> list[Node]:
    return [node for weak in held if (node := weak()) is not None]


def _at(node: Value, key: Value) -> object:
    if isinstance(node, dict):
        return node.get(key)
    return node[key] if key < len(node) else None


def shifted(leaves: Leaves, shift: int) -> Leaves:
    """Give the same leaves under ids that are `shift` larger."""
    new = Leaves()
    new.saved = {
        key: Saved(saved.leaf, saved.node + shift, saved.digest)
        for key, saved in leaves.saved.items()
    }
    return new
