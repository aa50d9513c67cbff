"""From the bytes of a base and its deltas to the tracked containers of a state that goes on."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from weakref import ref

from holdfast.capture.fixed import Value
from holdfast.capture.insert import blank, tracked_dict
from holdfast.capture.known import Known
from holdfast.capture.lift import Lift
from holdfast.capture.lower import preorder
from holdfast.capture.node import KINDS, TRACKED, Node, Tracker, forget_source, is_flat, link
from holdfast.capture.node import may_change as may_change_in_place
from holdfast.capture.places import At, Place
from holdfast.capture.tracked import TrackedDict, TrackedList, track
from holdfast.store.backends.base import Name
from holdfast.store.chunks import Chunks


class LiveLift(Lift):
    """A state being read whose containers know their numbers, where they stand and who holds them.

    What is whole where it was saved or answered can be named by that again.
    """

    kinds: ClassVar[tuple[type, type]] = (TrackedDict, TrackedList)

    def __init__(
        self,
        tracker: Tracker,
        answer: Callable[[Any], object],
        aside: Chunks | None = None,
        *,
        goes_on: bool = False,
        ready: dict[Name, Any] | None = None,
        known: Known | None = None,
    ) -> None:
        super().__init__(answer, aside, goes_on=goes_on, ready=ready)
        self._tracker, self._known = tracker, known

    def _base(self, data: bytes) -> Value:
        root = super()._base(data)
        root.hf_source = None  # a base always writes its root
        return root

    def _change_list(self, node: Value, head: Value, body: list[Value]) -> None:
        if node.hf_source is not None:
            forget_source(node)
        super()._change_list(node, head, body)

    def _change_dict(self, node: Value, gone: list[Value], body: Value) -> None:
        if node.hf_source is not None:
            forget_source(node)
        super()._change_dict(node, gone, body)

    def _blank(self, kind: type) -> Value:
        return blank(TRACKED[kind], self._tracker)

    def _written(self, kind: type, lowered: Value) -> Value:
        links, number = self._links, len(self.nodes)
        node = super()._written(kind, lowered)
        node.hf_node = number
        if links == self._links and self._place is not None:
            node.hf_source = (self._place, number - self._first)
        return node

    def _put(self, value: Value, parent: Value) -> Value:
        if type(value) in KINDS:
            link(value, ref(parent))
        elif may_change_in_place(value):
            self._tracker.holders[id(parent)] = ref(parent)
        return value

    def _note_leaf(self, data: bytes, place: Place | None, number: int) -> None:
        if self._known is not None and place is not None:
            self._known.note(data, place, number)

    def _all_flat(self, found: list[Any], names: list[Name], parent: Value) -> list[Value]:
        return [
            self._flat(value, (row, index), ordinal, parent)
            for value, (_, row, index, ordinal) in zip(found, names, strict=True)
        ]

    def _flat(self, found: dict[Any, Any], at: At, ordinal: int, parent: Value) -> Value:
        source = (None, at) if ordinal < 0 else (self._place_at(at), ordinal)
        node = tracked_dict(found, self._tracker, len(self.nodes), source)
        node.hf_up = ref(parent)  # it was made just now: nothing else holds it
        self.nodes.append(node)
        self.named += 1
        return node

    def _copied(self, value: Value, source: object, keys: Sequence[Value]) -> Value:
        top = track(value, source, keys)
        for node in (top,) if is_flat(top) else preorder(top):
            self._number(node)
        return top

    def _number(self, node: Node) -> None:
        node.hf_tracker, node.hf_node = self._tracker, len(self.nodes)
        self.nodes.append(node)
