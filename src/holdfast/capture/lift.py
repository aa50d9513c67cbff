"""From the bytes of a base and its deltas to live containers; see `wire` for what is read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any
from weakref import ref

import msgspec
from msgspec.msgpack import Ext

from holdfast import errors
from holdfast.capture import wire
from holdfast.capture.fixed import BASIC, Value
from holdfast.capture.insert import blank, tracked_dict
from holdfast.capture.lost import Lost
from holdfast.capture.lower import preorder
from holdfast.capture.node import (
    KINDS,
    TRACKED,
    Node,
    Tracker,
    forget_source,
    is_flat,
    link,
    may_change,
)
from holdfast.capture.places import At, Place, parts, rows_named
from holdfast.capture.tracked import TrackedDict, TrackedList, plain, track
from holdfast.store.chunks import Chunks
from holdfast.store.codec import values
from holdfast.store.codec.vault import guard


class Lift:
    """A state being read: the nodes met so far, by number.

    If it `goes_on`, a part that cannot be read is `Lost`, and what else there is is read.
    """

    def __init__(
        self,
        tracker: Tracker,
        answer: Callable[[Any], object],
        aside: Chunks | None = None,
        *,
        goes_on: bool = False,
    ) -> None:
        self.nodes: list[Any] = []
        self.named = 0  # containers that were read from elsewhere
        self._tracker = tracker
        self._answer = answer
        self._aside = aside
        self._goes_on = goes_on
        self.has_lost = False
        self._answers: dict[Any, Any] = {}
        self._parts: dict[At, tuple[Place, list[Any]]] = {}
        self._place: Place | None = None  # where what is being read stands
        self._first = 0  # the number of the node with ordinal 0 in it
        self._links = 0  # references to nodes so far, and leaves that may change

    def base(self, data: bytes, at: At | None = None) -> TrackedDict:
        """Read a base, which stands at `at`; give its root."""
        with _naming_damage(), self._standing_at(at):
            return self._base(data)

    def delta(self, data: bytes, at: At | None = None) -> None:
        """Read the delta that follows what was read before."""
        with _naming_damage(), self._standing_at(at):
            self._delta(data)

    @contextmanager
    def _standing_at(self, at: At | None, ordinal: int = 0) -> Iterator[None]:
        """What is read inside stands at `at`, the next node with that ordinal."""
        before = self._place, self._first
        self._place = None if at is None else Place(at)
        self._first = len(self.nodes) - ordinal
        try:
            yield
        finally:
            self._place, self._first = before

    def _base(self, data: bytes) -> TrackedDict:
        document = _document(data)
        if len(document) != 2 or type(document[1]) not in (dict, Ext):  # noqa: PLR2004
            raise _damaged("it is no base")
        root = self._value(document[1])
        if type(root) is not TrackedDict:
            raise _damaged("its root is no dict")
        root.hf_source = None  # a base always writes its root
        return root

    def _delta(self, data: bytes) -> None:
        _, first, *parts = _document(data)
        if first != len(self.nodes) or len(parts) % 3:
            raise _damaged(f"it begins at node {first!r}, where {len(self.nodes)} were read")
        for at in range(0, len(parts), 3):
            number, head, body = parts[at : at + 3]
            node = self._node(number)
            if type(node) in KINDS and node.hf_source is not None:
                forget_source(node)
            if type(node) is TrackedList:
                self._change_list(node, head, body)
            elif type(node) is TrackedDict:
                self._change_dict(node, head, body)
            elif type(node) is Lost:
                self._pass_over(body)
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

    def _pass_over(self, body: Value) -> None:
        """Number what was put into a container that is lost: it may stand elsewhere too."""
        if type(body) is list:
            self._items(body, blank(TrackedList, self._tracker))
        else:
            self._set(blank(TrackedDict, self._tracker), body)

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
            dict.__setitem__(node, key, self._put(self._value(lowered), node))

    def _value(self, lowered: Value) -> Value:
        kind = type(lowered)
        if kind in BASIC:
            return lowered
        if kind is dict:
            return self._written(TrackedDict, lowered)
        if kind is list:
            return self._written(TrackedList, lowered)
        if kind is not Ext:
            raise _damaged(f"it holds a {kind.__name__}")
        return self._item(lowered)

    def _written(self, kind: type, lowered: Value) -> Value:
        """Give a new container by its content; it can be named where it stands if that is whole."""
        node = blank(kind, self._tracker)
        links, number = self._links, len(self.nodes)
        self._number(node)
        if kind is TrackedDict:
            self._set(node, lowered)
        else:
            list.extend(node, self._items(lowered, node))
        if links == self._links and self._place is not None:
            node.hf_source = (self._place, number - self._first)
        return node

    def _item(self, item: Ext) -> Value:
        match item.code:
            case wire.NODES:
                self._links += 1
                return self._node(wire.unpack(item.data)[0])
            case wire.PAIRS:
                return self._written(TrackedDict, item)
            case wire.ANSWER:
                count, source, *keys = wire.unpack(item.data)
                return self._from_elsewhere(count, tuple(source), keys)
            case wire.FIXED:
                return self._leaf(bytes(item.data))
            case wire.LEAF:
                self._links += 1
                leaf = self._leaf(bytes(item.data))
                self.nodes.append(leaf)
                return leaf
            case code:
                raise _damaged(f"it holds an item {code}")

    def _leaf(self, data: bytes) -> Value:
        try:
            return values.decode(data if self._aside is None else self._aside.fetch(data))
        except errors.HoldfastError as error:
            return self._lose(0, error)

    def _items(self, lowered: list[Any], parent: TrackedList) -> list[Any]:
        if BASIC.issuperset(map(type, lowered)):
            return lowered
        items: list[Any] = []
        for item in lowered:
            if type(item) is Ext and item.code == wire.NODES:
                self._links += 1
                ids = accumulate(wire.unpack(item.data))
                items.extend(self._put(self._node(number), parent) for number in ids)
            elif type(item) is Ext and item.code == wire.STORED:
                items.extend(self._stored(wire.unpack(item.data), ref(parent)))
            else:
                items.append(self._put(self._value(item), parent))
        return items

    def _put(self, value: Value, parent: Node) -> Value:
        """Note that `value` is to stand in `parent`."""
        kind = type(value)
        if kind in KINDS:
            link(value, ref(parent))
        elif may_change(value):
            self._tracker.holders[id(parent)] = ref(parent)
        return value

    def _stored(self, columns: list[list[int]], parent: "ref[Node]") -> Iterator[Value]:
        counts, steps, indexes, ordinals = columns
        rows = accumulate(steps)
        nodes, tracker = self.nodes, self._tracker
        for count, row, index, ordinal in zip(counts, rows, indexes, ordinals, strict=True):
            source: Any
            try:
                if ordinal < 0:
                    plain, source = self._value_at((row, index)), (None, (row, index))
                else:
                    place, written = self._parts_at((row, index))
                    plain, source = written[ordinal], (place, ordinal)
            except errors.HoldfastError as error:
                yield self._lose(count, error)
                continue
            if count == 1 and type(plain) is dict and BASIC.issuperset(map(type, plain.values())):
                # The usual message; all that follows is for the others.
                value = tracked_dict(plain, tracker, len(nodes), source)
                nodes.append(value)
                self.named += 1
            else:
                name = (row, index) if ordinal < 0 else (row, index, ordinal)
                value = self._from_elsewhere(count, name, ())
            if type(value) is not Lost:
                value.hf_up = parent  # it was made just now: nothing else holds it
            yield value

    def _lose(self, count: int, error: errors.HoldfastError) -> Lost:
        """Number the containers of a part that could not be read."""
        if not self._goes_on or not isinstance(error, errors.Damaged | errors.NotStorable):
            raise error  # A store that is busy or closed has lost nothing.
        self.has_lost = True
        lost = Lost(error)
        self.nodes.extend([lost] * count)
        return lost

    def _from_elsewhere(self, count: int, source: tuple[int, ...], keys: Sequence[Value]) -> Value:
        """Give a container that is named by what holds it, and number what is in it."""
        self.named += 1
        first = len(self.nodes)
        is_saved = len(source) == 3  # noqa: PLR2004 row, index, ordinal
        try:
            value = self._from_save(*source) if is_saved else self._from_answer(source, keys)
        except errors.HoldfastError as error:
            del self.nodes[first:]
            return self._lose(count, error)
        if len(self.nodes) - first != count:
            found = len(self.nodes) - first
            raise _damaged(f"{source!r} has {found} containers, not {count}")
        return value

    def _parts_at(self, at: At) -> tuple[Place, list[Any]]:
        """Give what the save at `at` wrote, by ordinal."""
        if at == wire.BESIDE and self._place is not None and self._place.at is not None:
            row, index = self._place.at
            at = row, index - 1
        known = self._parts.get(at)
        if known is None:
            data: Any = self._answer(at)
            known = self._parts[at] = Place(at), parts(data)
        return known

    def _from_save(self, row: int, index: int, ordinal: int) -> Value:
        place, written = self._parts_at((row, index))
        before = self._place, self._first, self._links
        self._place, self._first = place, len(self.nodes) - ordinal
        value = self._value(written[ordinal])
        self._place, self._first, links = before
        if type(value) not in KINDS or links != self._links:
            raise _damaged(f"what was saved at {place.at!r} holds no container {ordinal} by itself")
        return value

    def _value_at(self, source: tuple[int, ...]) -> Value:
        """Give the answer that a source names."""
        value = self._answers.get(source)
        if value is None:
            value = self._answers[source] = self._answer(source)
        return value

    def _from_answer(self, source: tuple[int, ...], lowered: Sequence[Value]) -> Value:
        value = self._value_at(source)
        keys = [self._key(key) for key in lowered] if lowered else ()
        for key in keys:
            value = value[key]
        if type(value) in KINDS:
            value = plain(value)
        if type(value) not in TRACKED:
            raise _damaged(f"the answer {source!r} holds no container where one was")
        top = track(value, source, keys)
        for node in (top,) if is_flat(top) else preorder(top):
            node.hf_tracker = self._tracker
            self._number(node)
        return top

    def _number(self, node: Node) -> None:
        node.hf_node = len(self.nodes)
        self.nodes.append(node)

    def _node(self, number: int) -> Value:
        if not 0 <= number < len(self.nodes):
            raise _damaged(f"it names node {number}, where {len(self.nodes)} were read")
        return self.nodes[number]

    def _key(self, lowered: Value) -> Value:
        return values.decode(bytes(lowered.data)) if type(lowered) is Ext else lowered


def rows_needed(base: bytes) -> set[int]:
    """Give the rows whose entries the reading of a base asks for."""
    with _naming_damage():
        return rows_named(base)


def _document(data: bytes) -> list[Any]:
    guard.get().look(data)
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
