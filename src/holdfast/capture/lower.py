"""From live containers to the values of a base or delta; see `wire` for what is written."""

from collections.abc import Callable, Container, Iterable
from hashlib import sha256
from itertools import islice, pairwise
from typing import Any, Final

from msgspec.msgpack import Ext

from holdfast import errors, native
from holdfast.capture import wire
from holdfast.capture.dicts import TrackedDict
from holdfast.capture.fixed import BASIC, Value, is_fixed
from holdfast.capture.known import Known, is_worth_naming
from holdfast.capture.leaves import Leaves, Now
from holdfast.capture.node import DEPTH_MAX, KINDS, Node, children, is_flat, path_below, step
from holdfast.capture.packable import are_numbers, is_packable
from holdfast.capture.places import Named, Place, name, stands_at
from holdfast.store.chunks import CHUNK_BYTES_MIN, Chunks
from holdfast.store.codec import values

_TEXT: Final = frozenset({str})
_OPEN: Final = -2  # the id of a container that is being lowered: meeting it again is a cycle
_LONG: Final = frozenset({str, bytes})
_BYTES_PER_CHARACTER: Final = 4
_SMALL_ITEMS: Final = 8
_SMALL_TEXT: Final = 32


class Lowering:
    """One save. Ids are given as containers are met; `undo` takes them back if the save fails."""

    def __init__(
        self,
        *,
        root: Node,
        floor: int,
        first: int,
        leaves: Leaves,
        seen: dict[int, Now],
        names_answers: bool,
        known: Known | None,
        is_careful: bool,
        repeats_small: bool,
        aside: Chunks | None,
    ) -> None:
        self.next = first
        self.leaves_written: dict[int, int] = {}
        self.whole: list[tuple[Node, int]] = []  # containers written without a reference in them
        self.named = 0  # containers and leaves that are named instead of written
        self.leaf_numbers: dict[bytes, int] = {}  # of leaves that can be named, by their digests
        self.leaves_named: set[bytes] = set()
        self.bytes_aside = 0  # of large leaves, which are named too
        self._root = root
        self._floor = floor
        self._leaves = leaves
        self._seen = seen
        self._names_answers = names_answers
        self._known = known
        self._leaf_count = 0  # leaves written so far, as items 4 and 5
        # Text and integers may be beyond what msgpack holds, or large enough to be put aside.
        self._is_careful = is_careful
        self._aside = aside
        self._repeats_small = repeats_small  # what is small is not worth another read
        self._links = 0  # references to nodes so far, and leaves that may change
        self._given: list[tuple[Node, int]] = []
        self._depth = 0

    def undo(self) -> None:
        """Take back every id that was given."""
        for node, before in self._given:
            node.hf_node = before

    def value(self, value: Value) -> Value:
        """Give what stands for `value`."""
        kind = type(value)
        if kind in BASIC:
            return self._basic(value) if self._is_careful else value
        if kind not in KINDS:
            return self._leaf(value)
        if value.hf_node >= self._floor:
            self._links += 1
            return _nodes([value.hf_node - self._floor])
        if value.hf_node == _OPEN:
            raise errors.NotStorable(
                self._place_of(value), KINDS[kind].__name__, "it contains itself"
            )
        if value.hf_source is not None:
            found = self._named(value)
            if found is not None:
                count, (source, keys) = found
                lowered = [self.key(value, key) for key in keys]
                return Ext(wire.ANSWER, wire.pack([count, source, *lowered]))
        return self.written(value)

    def written(self, value: Value) -> Value:
        """Give a container by its content."""
        if not self._is_careful and self._depth < DEPTH_MAX and _is_packed_as_it_is(value):
            value.hf_node = node = self._give(value, _OPEN)
            self.whole.append((value, node))
            return value
        node = self._give(value, _OPEN)
        links = self._links
        self._depth += 1
        if self._depth > DEPTH_MAX:
            why = f"it is nested deeper than {DEPTH_MAX} containers"
            raise errors.NotStorable(self._place_of(value), KINDS[type(value)].__name__, why)
        body = self.pairs(value, value) if isinstance(value, dict) else self.items(value)
        self._depth -= 1
        value.hf_node = node
        if links == self._links:
            self.whole.append((value, node))
        return body

    def items(self, items: list[Any]) -> list[Any]:
        """Give what stands for the items of a list, with runs of known nodes in one item each."""
        if are_numbers(items) if self._is_careful else BASIC.issuperset(map(type, items)):
            return items
        lowered: list[Any] = []
        # Most of what a base holds are messages that stand elsewhere.
        run: list[Any] = self._messages(items) if self._repeats_small else []
        before: Callable[[list[Any]], Ext] | None = _stored if run else None
        for item in islice(items, len(run), None):
            pack, part = self._part_of_run(item)
            if before is not None and pack is not before:
                lowered.append(before(run))
                run = []
            before = pack
            if pack is None:
                lowered.append(self.value(item))
            else:
                run.append(part)
        if before is not None:
            lowered.append(before(run))
        return lowered

    def _messages(self, items: list[Any]) -> list[tuple[int, tuple[int, ...]]]:
        """Name the flat dicts that a list begins with, up to the first that is not stored.

        What `_part_of_run` gives for each, written out: a base asks for thousands of them.
        """
        found: list[tuple[int, tuple[int, ...]]] = []
        floor, given, number = self._floor, self._given, self.next
        if native.messages is not None and self._names_answers:
            found = native.messages(items, floor, number, given)
            self.next += len(found)
            self.named += len(found)
            return found
        for item in items if self._names_answers else ():
            if type(item) is not TrackedDict:
                break
            before, source = item.hf_node, item.hf_source
            if before >= floor or before == _OPEN or source is None:
                break
            if not BASIC.issuperset(map(type, item.values())) or _is_small(item):
                break
            above, last = source
            if type(above) is Place and above.at is not None:
                found.append((1, (*above.at, last)))
            elif above is None and len(last) > 1:
                found.append((1, last))
            else:
                break
            given.append((item, before))
            item.hf_node = number
            number += 1
        self.next = number
        self.named += len(found)
        return found

    def _part_of_run(self, item: Value) -> tuple[Callable[[list[Any]], Ext] | None, Value]:
        """Give what `item` adds to a run of its kind, and what makes one item of the run."""
        if type(item) not in KINDS:
            node = self._known_leaf(item)
        elif item.hf_node >= self._floor:
            node = item.hf_node - self._floor
        elif item.hf_source is not None and self._names_answers:
            source = stands_at(item.hf_source)
            count = None if source is None else self._count_named(item)
            return (None, None) if count is None else (_stored, (count, source))
        else:
            return None, None
        if node is None:
            return None, None
        self._links += 1
        return _nodes, node

    def pairs(self, mapping: dict[Value, Value], keys: Iterable[Value]) -> Value:
        """Give what stands for the given keys of a dict and their values."""
        if not self._is_careful and _TEXT.issuperset(map(type, keys)):
            if keys is mapping and BASIC.issuperset(map(type, mapping.values())):
                return mapping
            return {
                key: value if type(value := mapping[key]) in BASIC else self.value(value)
                for key in keys
            }
        flat: list[Any] = []
        for key in keys:
            flat += (self.key(mapping, key), self.value(mapping[key]))
        return Ext(wire.PAIRS, wire.pack(flat))

    def key(self, mapping: object, key: object) -> Value:
        """Give what stands for a key; one that could not be found again is refused."""
        is_basic = type(key) in BASIC and key == key  # noqa: PLR0124 NaN is not equal to itself
        if is_basic and (not self._is_careful or is_packable(key)):
            return key
        data = values.encode(key, path=lambda: self._place_of(mapping) + step(key))
        if values.decode(data) != key:
            path = self._place_of(mapping) + step(key)
            why = "it does not equal itself once stored, so it is no key that is found again"
            raise errors.NotStorable(path, type(key).__name__, why)
        return Ext(wire.FIXED, data)

    def _known_leaf(self, value: object) -> int | None:
        """Give the number under which a leaf is known from here on; None if it is not."""
        if type(value) in BASIC:
            return None
        known = self.leaves_written.get(id(value))
        if known is None and id(value) in self._seen:
            known = self._leaves.unchanged(self._seen[id(value)], self._floor)
        return None if known is None else known - self._floor

    def _basic(self, value: Value) -> Value:
        if type(value) in _LONG and len(value) * _BYTES_PER_CHARACTER >= CHUNK_BYTES_MIN:
            data = self._encoded(value)
            kept = self._kept(data)
            if kept is not data:
                return self._item(wire.FIXED, kept)
        return self._packable(value)

    def _packable(self, value: Value) -> Value:
        if is_packable(value):
            return value
        return self._item(wire.FIXED, self._encoded(value))

    def _encoded(self, leaf: object) -> bytes:
        return values.encode(leaf, path=lambda: self._place_of(leaf))

    def _kept(self, data: bytes) -> bytes:
        """Give the codec's bytes, or a reference under which they are durable now."""
        kept = data if self._aside is None else self._aside.keep(data)
        if kept is not data:
            self.bytes_aside += len(data)
        return kept

    def _leaf(self, leaf: object) -> Value:
        if type(leaf) is dict or type(leaf) is list:
            # Only what goes around the methods of a container leaves a plain one in it.
            raise errors.ChangedOutside(self._place_of(leaf))
        if is_fixed(leaf):
            data = self._encoded(leaf)
            digest = sha256(data).digest() if is_worth_naming(data) else b""
            named = self._named_leaf(wire.FIXED_AT, digest)
            return named or self._written_leaf(wire.FIXED, data, digest)
        self._links += 1
        known = self._known_leaf(leaf)
        if known is not None:
            return _nodes([known])
        now = self._seen.get(id(leaf))
        if now is None:
            raise errors.ChangedOutside(self._place_of(leaf))
        self.leaves_written[id(leaf)] = self.next
        self.next += 1
        named = self._named_leaf(wire.LEAF_AT, now.digest)
        return named or self._written_leaf(wire.LEAF, now.data(), now.digest)

    def _named_leaf(self, code: int, digest: bytes) -> Ext | None:
        """Give a leaf by where it is stored; None if it is not, or cannot be named there."""
        found = self._known.name(digest) if self._known is not None else None
        if found is None:
            return None
        self._links += 1  # What holds it is written again, and names it again.
        self.named += 1
        self.leaves_named.add(digest)
        return Ext(code, wire.pack(found))

    def _written_leaf(self, code: int, data: bytes, digest: bytes) -> Ext:
        kept = self._kept(data)
        if kept is data and is_worth_naming(data):
            self.leaf_numbers[digest] = self._leaf_count
        return self._item(code, kept)

    def _item(self, code: int, data: bytes) -> Ext:
        self._leaf_count += 1
        return Ext(code, data)

    def _place_of(self, value: object) -> str:
        return path_below(self._root, value) or "a removed part of the state"

    def _named(self, top: Value) -> tuple[int, Named] | None:
        """Name what holds `top`, with the number of nodes in it; None if it is to be written."""
        named = name(top.hf_source) if self._names_answers else None
        count = None if named is None else self._count_named(top)
        return None if named is None or count is None else (count, named)

    def _count_named(self, top: Value) -> int | None:
        """Number the nodes of what is named, and count them; None if it is to be written.

        It is written if part of it is known by a number already.
        """
        if self._repeats_small and _is_small(top):
            return None
        found = [top] if is_flat(top) else preorder(top)
        for node in found:
            if node.hf_node >= self._floor or node.hf_node == _OPEN:
                return None
        for node in found:
            node.hf_node = self._give(node, _OPEN)
        self.named += 1
        return len(found)

    def _give(self, node: Node, mark: int) -> int:
        self._given.append((node, node.hf_node))
        node.hf_node = mark
        self.next += 1
        return self.next - 1


def _nodes(ids: list[int]) -> Ext:
    return Ext(wire.NODES, wire.pack([ids[0], *(b - a for a, b in pairwise(ids))]))


def _stored(found: list[tuple[int, tuple[int, ...]]]) -> Ext:
    """Give one item for containers that stand elsewhere, one after the other in a list."""
    if len(found) == 1:
        return Ext(wire.ANSWER, wire.pack(found[0]))
    counts = [count for count, _ in found]
    tokens = [source for _, source in found]
    rows = [token[0] for token in tokens]
    steps = [rows[0], *(b - a for a, b in pairwise(rows))]
    indexes = [token[1] for token in tokens]
    ordinals = [token[2] if len(token) > 2 else -1 for token in tokens]  # noqa: PLR2004
    return Ext(wire.STORED, wire.pack([counts, steps, indexes, ordinals]))


def _is_packed_as_it_is(node: Value) -> bool:
    if isinstance(node, list):
        return BASIC.issuperset(map(type, node))
    return BASIC.issuperset(map(type, node.values())) and _TEXT.issuperset(map(type, node))


def _is_small(node: Value) -> bool:
    if len(node) > _SMALL_ITEMS:
        return False
    for value in node.values() if isinstance(node, dict) else node:
        kind = type(value)
        if kind in _LONG:
            if len(value) > _SMALL_TEXT:
                return False
        elif kind in KINDS:
            return False
    return True


def preorder(top: Node, kinds: Container[type] = KINDS) -> list[Node]:
    """Give `top` and the containers of these kinds in it, each once, before what is in it."""
    found: dict[int, Node] = {}
    stack: list[Any] = [top]
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            values_in = children(node)
            if not BASIC.issuperset(map(type, values_in)):
                inner = [value for value in values_in if type(value) in kinds]
                stack.extend(reversed(inner))
    return list(found.values())
