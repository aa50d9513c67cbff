"""From the bytes of a base and its deltas to plain containers; see `wire` for what is read.

A state that is only looked at stays plain (`look`); `live` makes tracked ones of the same bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, repeat
from typing import Any, ClassVar

from msgspec.msgpack import Ext

from holdfast import errors
from holdfast.capture import wire
from holdfast.capture.document import UNREADABLE, damaged, document, unreadable
from holdfast.capture.fixed import BASIC, Value
from holdfast.capture.lost import Lost, LostKey
from holdfast.capture.lower import preorder
from holdfast.capture.node import KINDS, TRACKED, is_flat
from holdfast.capture.places import ANSWERED, At, Place
from holdfast.capture.tracked import plain
from holdfast.store.backends.base import Name
from holdfast.store.chunks import Chunks
from holdfast.store.codec import values
from holdfast.store.codec.saved import leaves, parts


class Lift:
    """A state being read: the nodes met so far, by number.

    If it `goes_on`, a part that cannot be read is `Lost`, and what else there is is read. Values
    that are `ready` are taken from there, each once.
    """

    kinds: ClassVar[tuple[type, type]] = (dict, list)

    def __init__(
        self,
        answer: Callable[[Any], object],
        aside: Chunks | None = None,
        *,
        goes_on: bool = False,
        ready: dict[Name, Any] | None = None,
    ) -> None:
        self._ready = {} if ready is None else ready
        self.nodes: list[Any] = []
        self.named = 0  # containers that were read from elsewhere
        self._answer = answer
        self._aside = aside
        self._goes_on = goes_on
        self.has_lost = False
        self._answers: dict[Any, Any] = {}
        self._parts: dict[At, list[Any]] = {}  # what saves wrote, by ordinal
        self._cut: dict[tuple[int, ...], Value] = {}  # what was ready and holds containers
        self._places: dict[At, Place] = {}
        self._place: Place | None = None  # where what is being read stands
        self._first = 0  # the number of the node with ordinal 0 in it
        self._links = 0  # references to nodes so far, and leaves that may change or are named
        self._leaves: dict[At, list[bytes]] = {}  # what saves wrote of leaves, by number
        self._leaf_number: int | None = None  # of the next leaf in what is being read

    def base(self, data: bytes, at: At | None = None) -> Value:
        """Read a base, which stands at `at`; give its root."""
        self._stand_at(at)
        try:
            return self._base(data)
        except UNREADABLE as error:
            raise unreadable(error) from error

    def delta(self, data: bytes, at: At | None = None) -> None:
        """Read the delta that follows what was read before."""
        self._stand_at(at)
        try:
            self._delta(data)
        except UNREADABLE as error:
            raise unreadable(error) from error

    def _stand_at(self, at: At | None) -> None:
        """What is read next stands at `at`, its first new node with ordinal 0."""
        self._place = None if at is None else Place(at)
        self._first = len(self.nodes)
        self._leaf_number = 0

    def _base(self, data: bytes) -> Value:
        found = document(data)
        if len(found) != 2 or type(found[1]) not in (dict, Ext):  # noqa: PLR2004
            raise damaged("it is no base")
        root = self._value(found[1])
        if type(root) is not self.kinds[0]:
            raise damaged("its root is no dict")
        return root

    def _delta(self, data: bytes) -> None:
        _, first, *parts = document(data)
        if first != len(self.nodes) or len(parts) % 3:
            raise damaged(f"it begins at node {first!r}, where {len(self.nodes)} were read")
        for at in range(0, len(parts), 3):
            number, head, body = parts[at : at + 3]
            node = self._node(number)
            kind = type(node)
            if kind is self.kinds[1]:
                self._change_list(node, head, body)
            elif kind is self.kinds[0]:
                self._change_dict(node, head, body)
            elif kind is Lost:
                self._pass_over(body)
            else:
                raise damaged(f"node {number} is no container")

    def _change_list(self, node: list[Any], head: Value, body: list[Value]) -> None:
        trim, lo, hi = (0, head, 0) if type(head) is int else head
        length = len(node)
        if min(trim, lo, hi) < 0 or trim + lo + hi > length:
            raise damaged(f"it keeps more of a list than the {length} items there are")
        list.__setitem__(node, slice(trim + lo, length - hi), self._items(body, node))
        list.__delitem__(node, slice(0, trim))

    def _change_dict(self, node: dict[Any, Any], gone: list[Value], body: Value) -> None:
        for lowered in gone:
            key = self._key(lowered)
            if key not in node:
                if type(key) is LostKey:
                    raise key.error
                raise damaged(f"it deletes the key {key!r}, which is not there")
            dict.__delitem__(node, key)
        self._set(node, body)

    def _pass_over(self, body: Value) -> None:
        """Number what was put into a container that is lost: it may stand elsewhere too."""
        if type(body) is list:
            self._items(body, self._blank(list))
        else:
            self._set(self._blank(dict), body)

    def _set(self, node: dict[Any, Any], body: Value) -> None:
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
            return self._written(dict, lowered)
        if kind is list:
            return self._written(list, lowered)
        if kind is not Ext:
            raise damaged(f"it holds a {kind.__name__}")
        return self._item(lowered)

    def _written(self, kind: type, lowered: Value) -> Value:
        """Give a new container by its content."""
        node = self._blank(kind)
        self.nodes.append(node)
        if kind is dict:
            self._set(node, lowered)
        else:
            list.extend(node, self._items(lowered, node))
        return node

    def _blank(self, kind: type) -> Value:
        """Make an empty dict or list."""
        return kind()

    def _item(self, item: Ext) -> Value:
        match item.code:
            case wire.NODES:
                self._links += 1
                return self._node(wire.unpack(item.data)[0])
            case wire.PAIRS:
                return self._written(dict, item)
            case wire.ANSWER:
                count, source, *keys = wire.unpack(item.data)
                return self._from_elsewhere(count, tuple(source), keys)
            case wire.FIXED:
                return self._written_leaf(bytes(item.data))
            case wire.FIXED_AT:
                return self._named_leaf(item)
            case wire.LEAF | wire.LEAF_AT:
                self._links += 1
                is_named = item.code == wire.LEAF_AT
                leaf = self._named_leaf(item) if is_named else self._written_leaf(bytes(item.data))
                self.nodes.append(leaf)
                return leaf
            case code:
                raise damaged(f"it holds an item {code}")

    def _written_leaf(self, data: bytes) -> Value:
        if self._leaf_number is not None:
            self._note_leaf(data, self._place, self._leaf_number)
            self._leaf_number += 1
        return self._leaf(data)

    def _named_leaf(self, item: Ext) -> Value:
        """Give a leaf whose bytes stand elsewhere."""
        self._links += 1
        row, index, number = wire.unpack(item.data)
        at = self._at(row, index)
        try:
            data = self._bytes_at(at, number)
        except errors.HoldfastError as error:
            return self._lose(0, error)
        self._note_leaf(data, self._place_at(at), number)
        self.named += 1
        return self._leaf(data)

    def _bytes_at(self, at: At, number: int) -> bytes:
        if at not in self._leaves:
            is_answer = number == ANSWERED
            found: Any = self._answer((*at, ANSWERED) if is_answer else at)
            self._leaves[at] = [found] if is_answer else leaves(found)
        return self._leaves[at][number]

    def _note_leaf(self, data: bytes, place: Place | None, number: int) -> None:
        """Note that a leaf stands there."""

    def _leaf(self, data: bytes) -> Value:
        try:
            return values.decode(data if self._aside is None else self._aside.fetch(data))
        except errors.HoldfastError as error:
            return self._lose(0, error)

    def _items(self, lowered: list[Any], parent: list[Any]) -> list[Any]:
        if BASIC.issuperset(map(type, lowered)):
            return lowered
        items: list[Any] = []
        for item in lowered:
            if type(item) is Ext and item.code == wire.NODES:
                self._links += 1
                ids = accumulate(wire.unpack(item.data))
                items.extend(self._put(self._node(number), parent) for number in ids)
            elif type(item) is Ext and item.code == wire.STORED:
                items.extend(self._stored(wire.unpack(item.data), parent))
            else:
                items.append(self._put(self._value(item), parent))
        return items

    def _put(self, value: Value, parent: Value) -> Value:  # noqa: ARG002 tracked ones are linked
        """Note that `value` is to stand in `parent`."""
        return value

    def _stored(self, columns: list[list[int]], parent: list[Any]) -> list[Value]:
        """Give containers that stand elsewhere, which are to be items of `parent`."""
        counts, steps, indexes, ordinals = columns
        names = list(zip(counts, accumulate(steps), indexes, ordinals, strict=True))
        ready = list(map(self._ready.pop, names, repeat(None)))
        items: list[Any] = []
        begin = 0
        for at, value in enumerate(ready):
            if value is None or counts[at] != 1:
                if begin < at:
                    items += self._all_flat(ready[begin:at], names[begin:at], parent)
                items.append(self._one(names[at], value, parent))
                begin = at + 1
        items += self._all_flat(ready[begin:], names[begin:], parent)
        return items

    def _all_flat(self, found: list[Any], names: list[Name], parent: list[Any]) -> list[Value]:  # noqa: ARG002 tracked ones know them
        """Give dicts that hold no containers and that nobody else has."""
        self.nodes.extend(found)
        self.named += len(found)
        return found

    def _one(self, name: Name, ready: Value, parent: list[Any]) -> Value:
        """Give a container that stands elsewhere, if need be from there."""
        count, row, index, ordinal = name
        at, found = (row, index) if row else self._at(row, index), ready
        try:
            if ready is None:
                if ordinal < 0:
                    found = self._value_at(at)
                else:
                    found = (self._parts.get(at) or self._saved(at))[ordinal]
        except errors.HoldfastError as error:
            return self._lose(count, error)
        if count == 1 and type(found) is dict and BASIC.issuperset(map(type, found.values())):
            return self._flat(found, at, ordinal, parent)  # the usual message
        if ready is not None:
            self._cut[(*at, ordinal)] = ready
        value = self._from_elsewhere(count, at if ordinal < 0 else (*at, ordinal), ())
        return value if type(value) is Lost else self._put(value, parent)

    def _at(self, row: int, index: int) -> At:
        """Give the place that is meant, also where that is right before what is being read."""
        if (row, index) == wire.BESIDE and self._place is not None and self._place.at is not None:
            return self._place.at[0], self._place.at[1] - 1
        return row, index

    def _place_at(self, at: At) -> Place:
        """Give the place of the save at `at`, one for all that it wrote."""
        return self._places.get(at) or self._places.setdefault(at, Place(at))

    def _flat(self, found: dict[Any, Any], at: At, ordinal: int, parent: list[Any]) -> Value:  # noqa: ARG002 tracked ones know it
        """Give a dict that holds no container, found at `at`, to be an item of `parent`."""
        node = found.copy()
        self.nodes.append(node)
        self.named += 1
        return node

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
            raise damaged(f"{source!r} has {found} containers, not {count}")
        return value

    def _saved(self, at: At) -> list[Any]:
        """Give what the save at `at` wrote, by ordinal."""
        known = self._parts.get(at)
        if known is None:
            data: Any = self._answer(at)
            known = self._parts[at] = parts(data)
        return known

    def _from_save(self, row: int, index: int, ordinal: int) -> Value:
        at = self._at(row, index)
        cut = self._cut.pop((*at, ordinal), None)
        written = self._saved(at)[ordinal] if cut is None else cut
        before = self._place, self._first, self._leaf_number, self._links
        self._place, self._first = self._place_at(at), len(self.nodes) - ordinal
        self._leaf_number = None  # How many leaves stand before it in that save is not known.
        value = self._value(written)
        self._place, self._first, self._leaf_number, links = before
        if type(value) not in self.kinds or links != self._links:
            raise damaged(f"what was saved at {at!r} holds no container {ordinal} by itself")
        return value

    def _value_at(self, source: tuple[int, ...]) -> Value:
        """Give the answer that a source names."""
        value = self._answers.get(source)
        if value is None:
            cut = self._cut.pop((*source, -1), None)
            value = self._answers[source] = self._answer(source) if cut is None else cut
        return value

    def _from_answer(self, source: tuple[int, ...], lowered: Sequence[Value]) -> Value:
        value = self._value_at(source)
        keys = [self._key(key) for key in lowered] if lowered else ()
        for key in keys:
            value = value[key]
        if type(value) in KINDS:
            value = plain(value)
        if type(value) not in TRACKED:
            raise damaged(f"the answer {source!r} holds no container where one was")
        return self._copied(value, source, keys)

    def _copied(self, value: Value, source: object, keys: Sequence[Value]) -> Value:  # noqa: ARG002 tracked ones know it
        """Give a copy of a part of an answer, and number the containers in it."""
        top = plain(value)
        self.nodes.extend([top] if is_flat(top) else preorder(top, TRACKED))
        return top

    def _node(self, number: int) -> Value:
        if not 0 <= number < len(self.nodes):
            raise damaged(f"it names node {number}, where {len(self.nodes)} were read")
        return self.nodes[number]

    def _key(self, lowered: Value) -> Value:
        if type(lowered) is not Ext:
            return lowered
        data = bytes(lowered.data)
        try:
            return values.decode(data)
        except errors.HoldfastError as error:
            return LostKey(data, self._lose(0, error).error)
