"""Checking mode: after each save, what would be restored is compared with what is there."""

from collections.abc import Callable
from typing import Any

from holdfast import errors
from holdfast.capture.fixed import Value
from holdfast.capture.leaves import changeable
from holdfast.capture.live import LiveLift
from holdfast.capture.lower import preorder
from holdfast.capture.node import KINDS, Node, Tracker, entries, step, where
from holdfast.capture.shadow import mutable_in
from holdfast.store.chunks import Chunks
from holdfast.store.codec import values


class Mirror:
    """The state as a restore would give it, kept beside the live one."""

    def __init__(self, answer: Callable[[Any], object] | None, aside: Chunks | None) -> None:
        self._answer = answer or _no_answer
        self._aside = aside
        self._saves: list[bytes] = []
        self._lift: LiveLift | None = None
        self._root: Node | None = None

    def follow(self, saves: list[bytes]) -> None:
        """Become what a base and the deltas after it give."""
        self._saves = saves
        self._lift = LiveLift(Tracker(), self._answer, self._aside, goes_on=True)
        self._root = self._lift.base(saves[0])
        for delta in saves[1:]:
            self._lift.delta(delta)

    def check_base(self, data: bytes, live: Node) -> None:
        """Compare the live state with a base that is about to be given out."""
        before = self._saves
        self.follow([data])
        self._compare(live, before)

    def check_delta(self, data: bytes | None, live: Node) -> None:
        """Compare the live state with what it would be after one more delta, if there is one."""
        before = self._saves
        if data is not None and self._lift is not None:
            self._lift.delta(data)
            self._saves = [*before, data]
        self._compare(live, before)

    def _compare(self, live: Node, before: list[bytes]) -> None:
        place = first_difference(live, self._root)
        try:
            if place is not None:
                raise errors.ChangedOutside(place, "around its methods")
            refuse_shared(live)
        except errors.HoldfastError:
            if before:
                self.follow(before)
            raise


def _no_answer(source: object) -> object:
    raise errors.Damaged(f"answer {source!r}", "no answers are at hand to compare with")


def first_difference(live: Value, saved: Value) -> str | None:
    """Find where two states differ in content, types, order of keys, or what is shared in them."""
    partner: dict[int, int] = {}
    stack = [(live, saved, "state")]
    while stack:
        ours, theirs, path = stack.pop()
        if type(ours) is not type(theirs):
            return path
        if type(ours) not in KINDS:
            if not _is_same_leaf(ours, theirs):
                return path
            continue
        is_met = id(ours) in partner or id(theirs) in partner
        if is_met:
            if partner.get(id(ours)) != id(theirs) or partner.get(id(theirs)) != id(ours):
                return path
            continue
        partner[id(ours)], partner[id(theirs)] = id(theirs), id(ours)
        pairs = list(zip(entries(ours), entries(theirs), strict=False))
        if len(ours) != len(theirs) or any(not _is_same_leaf(a[0], b[0]) for a, b in pairs):
            return path
        stack.extend((a[1], b[1], path + step(a[0])) for a, b in reversed(pairs))
    return None


def refuse_shared(live: Node) -> None:
    """Raise `NotStorable` where two leaves share what may change: each is saved by itself."""
    owners: dict[int, tuple[object, str]] = {}
    for node in preorder(live):
        for place, leaf in changeable(node):
            path = where(node) + step(place)
            for part in mutable_in(leaf):
                owner, other = owners.setdefault(id(part), (leaf, path))
                if owner is not leaf:
                    why = (
                        f"a {type(part).__name__} in it stands in {other} too, and a restart would "
                        "make two of it; give one of the places a copy"
                    )
                    raise errors.NotStorable(path, type(leaf).__name__, why)


def _is_same_leaf(ours: object, theirs: object) -> bool:
    if ours is theirs:
        return True
    return values.canonical(ours, path="") == values.canonical(theirs, path="")
