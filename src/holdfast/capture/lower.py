"""From live containers to the values of a base or delta; see `wire` for what is written."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

from msgspec.msgpack import Ext

from holdfast import errors
from holdfast.capture import wire
from holdfast.capture.fixed import BASIC, Value, is_fixed
from holdfast.capture.leaves import Leaves, Now
from holdfast.capture.node import KINDS, Node, children, path_below, step
from holdfast.store.codec import values

DEPTH_MAX: Final = 128
"""Containers in containers that one save writes; each level takes a few frames of the stack."""

_TEXT: Final = frozenset({str})
_OPEN: Final = (
    -2
)  # the id of a container whose content is being lowered: meeting it again is a cycle


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
        is_careful: bool,
    ) -> None:
        self.next = first
        self.leaves_written: dict[int, int] = {}
        self._root = root
        self._floor = floor
        self._leaves = leaves
        self._seen = seen
        self._names_answers = names_answers
        self._is_careful = is_careful  # text and integers may be beyond what msgpack holds
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
            return _nodes([value.hf_node - self._floor])
        if value.hf_node == _OPEN:
            raise errors.NotStorable(
                self._place_of(value), KINDS[kind].__name__, "it contains itself"
            )
        if value.hf_source is not None and self._names_answers:
            named = self._answer(value)
            if named is not None:
                return named
        node = self._give(value, _OPEN)
        self._depth += 1
        if self._depth > DEPTH_MAX:
            why = f"it is nested deeper than {DEPTH_MAX} containers"
            raise errors.NotStorable(self._place_of(value), KINDS[kind].__name__, why)
        body = self.pairs(value, value) if isinstance(value, dict) else self.items(value)
        self._depth -= 1
        value.hf_node = node
        return body

    def items(self, items: list[Any]) -> list[Any]:
        """Give what stands for the items of a list, with runs of known nodes in one item each."""
        if not self._is_careful and BASIC.issuperset(map(type, items)):
            return items
        lowered: list[Any] = []
        run: list[int] = []
        for item in items:
            node = self._known(item)
            if node is not None:
                run.append(node)
                continue
            if run:
                lowered.append(_nodes(run))
                run = []
            lowered.append(self.value(item))
        if run:
            lowered.append(_nodes(run))
        return lowered

    def pairs(self, mapping: dict[Value, Value], keys: Iterable[Value]) -> Value:
        """Give what stands for the given keys of a dict and their values."""
        if not self._is_careful and _TEXT.issuperset(map(type, keys)):
            if keys is mapping and BASIC.issuperset(map(type, mapping.values())):
                return mapping
            return {key: self.value(mapping[key]) for key in keys}
        flat: list[Any] = []
        for key in keys:
            flat += (self.key(mapping, key), self.value(mapping[key]))
        return Ext(wire.PAIRS, wire.pack(flat))

    def key(self, mapping: object, key: object) -> Value:
        """Give what stands for a key; one that could not be found again is refused."""
        if type(key) in BASIC and key == key:  # noqa: PLR0124 NaN is not equal to itself
            return self._basic(key)
        try:
            data = values.encode(key, path="")
        except errors.NotStorable as error:
            path = self._place_of(mapping) + step(key) + error.path
            raise errors.NotStorable(path, error.type_name, error.why) from error
        if values.decode(data) != key:
            path = self._place_of(mapping) + step(key)
            why = "it does not equal itself once stored, so it is no key that is found again"
            raise errors.NotStorable(path, type(key).__name__, why)
        return Ext(wire.FIXED, data)

    def _known(self, value: Value) -> int | None:
        """Give the number under which `value` is known from here on; None if it is not."""
        kind = type(value)
        if kind in BASIC:
            return None
        if kind in KINDS:
            node: int = value.hf_node
            return node - self._floor if node >= self._floor else None
        known = self.leaves_written.get(id(value))
        if known is None and id(value) in self._seen:
            known = self._leaves.unchanged(self._seen[id(value)], self._floor)
        return None if known is None else known - self._floor

    def _basic(self, value: Value) -> Value:
        try:
            wire.pack(value)
        except (UnicodeEncodeError, OverflowError):
            return Ext(wire.FIXED, values.encode(value, path=""))
        return value

    def _leaf(self, leaf: object) -> Value:
        if type(leaf) is dict or type(leaf) is list:
            # Only what goes around the methods of a container leaves a plain one in it.
            raise errors.ChangedOutside(self._place_of(leaf))
        if is_fixed(leaf):
            try:
                return Ext(wire.FIXED, values.encode(leaf, path=""))
            except errors.NotStorable as error:
                path = self._place_of(leaf) + error.path
                raise errors.NotStorable(path, error.type_name, error.why) from error
        known = self._known(leaf)
        if known is not None:
            return _nodes([known])
        now = self._seen.get(id(leaf))
        if now is None:
            raise errors.ChangedOutside(self._place_of(leaf))
        self.leaves_written[id(leaf)] = self.next
        self.next += 1
        return Ext(wire.LEAF, now.data)

    def _place_of(self, value: object) -> str:
        return path_below(self._root, value) or "a removed part of the state"

    def _answer(self, top: Value) -> Ext | None:
        """Name the recorded answer that `top` still is, unless part of it is known already."""
        found = preorder(top)
        if any(node.hf_node >= self._floor or node.hf_node == _OPEN for node in found):
            return None
        for node in found:
            node.hf_node = self._give(node, _OPEN)
        keys: list[object] = []
        above, last = top.hf_source
        while above is not None:
            keys.append(self.key(top, last))
            above, last = above
        return Ext(wire.ANSWER, wire.pack([len(found), last, *reversed(keys)]))

    def _give(self, node: Node, mark: int) -> int:
        self._given.append((node, node.hf_node))
        node.hf_node = mark
        self.next += 1
        return self.next - 1


def _nodes(ids: list[int]) -> Ext:
    return Ext(wire.NODES, wire.pack([ids[0], *(b - a for a, b in pairwise(ids))]))


def preorder(top: Node) -> list[Node]:
    """Give `top` and the containers in it, each once, before what is in it."""
    found: dict[int, Node] = {}
    stack: list[Any] = [top]
    while stack:
        node = stack.pop()
        if id(node) not in found:
            found[id(node)] = node
            values_in = children(node)
            if not BASIC.issuperset(map(type, values_in)):
                inner = [value for value in values_in if type(value) in KINDS]
                stack.extend(reversed(inner))
    return list(found.values())
