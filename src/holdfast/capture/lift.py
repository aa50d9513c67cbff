"""From the bytes of a base and its deltas to live containers; see `wire` for what is read."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Any
from weakref import ref

import msgspec
from msgspec.msgpack import Ext

from holdfast import errors
from holdfast.capture import wire
from holdfast.capture.fixed import BASIC, Value
from holdfast.capture.insert import blank
from holdfast.capture.lower import preorder
from holdfast.capture.node import KINDS, TRACKED, Node, Tracker, link, may_change
from holdfast.capture.tracked import TrackedDict, TrackedList, plain, track
from holdfast.store.codec import values


class Lift:
    """A state being read: the nodes met so far, by number."""

    def __init__(self, tracker: Tracker, answer: Callable[[Any], object]) -> None:
        self.nodes: list[Any] = []
        self._tracker = tracker
        self._answer = answer
        self._answers: dict[Any, Any] = {}

    def base(self, data: bytes) -> TrackedDict:
        """Read a base; give its root."""
        with _naming_damage():
            return self._base(data)

    def delta(self, data: bytes) -> None:
        """Read the delta that follows what was read before."""
        with _naming_damage():
            self._delta(data)

    def _base(self, data: bytes) -> TrackedDict:
        document = _document(data)
        if len(document) != 2 or type(document[1]) not in (dict, Ext):  # noqa: PLR2004
            raise _damaged("it is no base")
        root = self._value(document[1])
        if type(root) is not TrackedDict:
            raise _damaged("its root is no dict")
        return root

    def _delta(self, data: bytes) -> None:
        _, first, *parts = _document(data)
        if first != len(self.nodes) or len(parts) % 3:
            raise _damaged(f"it begins at node {first!r}, where {len(self.nodes)} were read")
        for at in range(0, len(parts), 3):
            number, head, body = parts[at : at + 3]
            node = self._node(number)
            if type(node) is TrackedList:
                self._change_list(node, head, body)
            elif type(node) is TrackedDict:
                self._change_dict(node, head, body)
            else:
                raise _damaged(f"node {number} is no container")

    def _change_list(self, node: TrackedList, head: Value, body: list[Value]) -> None:
        trim, lo, hi = (0, head, 0) if type(head) is int else head
        length = len(node)
        if min(trim, lo, hi) < 0 or trim + lo + hi > length:
            raise _damaged(f"it keeps more of a list than the {length} items there are")
        list.__setitem__(node, slice(trim + lo, length - hi), self._items(body, node))
        list.__delitem__(node, slice(0, trim))

    def _change_dict(self, node: TrackedDict, gone: list[Value], body: Value) -> None:
        for lowered in gone:
            key = self._key(lowered)
            if key not in node:
                raise _damaged(f"it deletes the key {key!r}, which is not there")
            dict.__delitem__(node, key)
        self._set(node, body)

    def _set(self, node: TrackedDict, body: Value) -> None:
        if type(body) is dict:
            if BASIC.issuperset(map(type, body.values())):
                dict.update(node, body)
                return
            pairs: Iterable[tuple[Any, Any]] = body.items()
        else:
            flat = wire.unpack(body.data)
            pairs = [(self._key(key), at) for key, at in zip(flat[::2], flat[1::2], strict=True)]
        for key, lowered in pairs:
            dict.__setitem__(node, key, self._place(self._value(lowered), node))

    def _value(self, lowered: Value) -> Value:
        kind = type(lowered)
        if kind in BASIC:
            return lowered
        if kind is dict:
            node = self._new(TrackedDict)
            self._set(node, lowered)
            return node
        if kind is list:
            node = self._new(TrackedList)
            list.extend(node, self._items(lowered, node))
            return node
        if kind is not Ext:
            raise _damaged(f"it holds a {kind.__name__}")
        return self._item(lowered)

    def _item(self, item: Ext) -> Value:
        match item.code:
            case wire.NODES:
                return self._node(wire.unpack(item.data)[0])
            case wire.PAIRS:
                node = self._new(TrackedDict)
                self._set(node, item)
                return node
            case wire.ANSWER:
                return self._from_answer(*wire.unpack(item.data))
            case wire.FIXED:
                return values.decode(bytes(item.data))
            case wire.LEAF:
                leaf = values.decode(bytes(item.data))
                self.nodes.append(leaf)
                return leaf
            case code:
                raise _damaged(f"it holds an item {code}")

    def _items(self, lowered: list[Any], parent: TrackedList) -> list[Any]:
        if BASIC.issuperset(map(type, lowered)):
            return lowered
        items: list[Any] = []
        for item in lowered:
            if type(item) is Ext and item.code == wire.NODES:
                ids = accumulate(wire.unpack(item.data))
                items.extend(self._place(self._node(number), parent) for number in ids)
            else:
                items.append(self._place(self._value(item), parent))
        return items

    def _place(self, value: Value, parent: Node) -> Value:
        """Note that `value` is to stand in `parent`."""
        kind = type(value)
        if kind in KINDS:
            link(value, ref(parent))
        elif may_change(value):
            self._tracker.holders[id(parent)] = ref(parent)
        return value

    def _from_answer(self, count: int, source: Value, *keys: Value) -> Value:
        if isinstance(source, list):
            source = tuple(source)
        if source not in self._answers:
            self._answers[source] = self._answer(source)
        value: Any = self._answers[source]
        for lowered in keys:
            value = value[self._key(lowered)]
        if type(value) in KINDS:
            value = plain(value)
        if type(value) not in TRACKED:
            raise _damaged(f"the answer {source!r} holds no container where one was")
        top = track(value)
        found = preorder(top)
        if len(found) != count:
            raise _damaged(f"the answer {source!r} has {len(found)} containers, not {count}")
        for node in found:
            node.hf_tracker = self._tracker
            self._number(node)
        return top

    def _new(self, kind: type) -> Value:
        node = blank(kind, self._tracker)
        self._number(node)
        return node

    def _number(self, node: Node) -> None:
        node.hf_node = len(self.nodes)
        self.nodes.append(node)

    def _node(self, number: int) -> Value:
        if not 0 <= number < len(self.nodes):
            raise _damaged(f"it names node {number}, where {len(self.nodes)} were read")
        return self.nodes[number]

    def _key(self, lowered: Value) -> Value:
        return values.decode(bytes(lowered.data)) if type(lowered) is Ext else lowered


def _document(data: bytes) -> list[Any]:
    document = wire.unpack(data)
    if type(document) is not list or not document or document[0] != wire.VERSION:
        raise _damaged("it is of no version that this Holdfast knows")
    return document


@contextmanager
def _naming_damage() -> Iterator[None]:
    """Say of bytes that cannot be understood that they are damaged."""
    try:
        yield
    except (msgspec.DecodeError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise _damaged(f"it cannot be read ({error})") from error


def _damaged(why: str) -> errors.Damaged:
    return errors.Damaged("the saved state", why)
