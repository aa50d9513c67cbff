"""What is put in the place of an equal value takes over where that one is stored.

Libraries give a program its whole conversation anew after every answer, as equal copies. Each is a
container of its own, as in plain Python; but as long as nobody changes it, a save names what was
stored of the one before it instead of storing the same message again.
"""

from collections.abc import Sequence
from itertools import islice, takewhile
from typing import Final
from weakref import ref

from holdfast.capture.fixed import BASIC, Value, is_fixed
from holdfast.capture.marks import Window
from holdfast.capture.node import KINDS, UNSAVED, Node, Tracker, children
from holdfast.errors import NotStorable
from holdfast.store.codec import values

DIRTY_MAX: Final = 256
"""Where more containers than these have changed, a changed list is not looked for among them."""


class Heir:
    """One value that was put in the place of another.

    What stands twice in one of the two is left as it is: whoever read it where the other is stored
    would find one container where there are two, or two where there is one.
    """

    __slots__ = ("_met",)

    def __init__(self) -> None:
        self._met: set[int] = set()

    def take(self, new: Value, old: Value) -> bool:
        """Hand on what is known of `old`, and of its parts, to what in `new` is equal to it.

        Says whether all of it is equal, in type and order too.
        """
        if type(new) not in KINDS:
            return _is_same(new, old)
        if type(old) is not type(new) or self._is_met(new, old):
            return False
        if new is old:
            return True
        if isinstance(new, list):
            is_equal = self.take_items(new, old) and len(new) == len(old)
        else:
            is_equal = len(new) == len(old) and all(map(_is_same, new, old))
            for key, item in new.items():
                is_equal = key in old and self.take(item, old[key]) and is_equal
        if is_equal:
            _take_over(new, old)
        return is_equal

    def take_items(self, new: Sequence[Value], old: Sequence[Value]) -> bool:
        """Do so for items of lists, from the front and the back; say whether all had a match."""
        shorter = min(len(new), len(old))
        front = back = 0
        while front < shorter and self.take(new[front], old[front]):
            front += 1
        while back < shorter - front and self.take(new[-1 - back], old[-1 - back]):
            back += 1
        return front + back == len(new)

    def _is_met(self, new: Value, old: Value) -> bool:
        ids = {id(new), id(old)}
        is_met = not self._met.isdisjoint(ids)
        self._met |= ids
        return is_met


def succeed(new: Value, old: Value, place: Node, tracker: Tracker) -> None:
    """Let a new list go on as what `old` was to the saves, if that stands in this place alone.

    So `state["log"] = state["log"][-50:]` costs what is not the same, also of a list of texts,
    which cannot be named one by one. Where `old` comes back, it is written as a new one.
    """
    is_new = type(new) is type(old) and KINDS[type(new)] is list and new.hf_node < tracker.floor
    is_known = new.hf_source is not None or new.hf_mark is not None
    if not is_new or is_known or old.hf_node < tracker.floor:
        return
    # One that was ever put anywhere else, or here twice, has a dict of parents.
    if type(old.hf_up) is not ref or old.hf_up() is not place:
        return
    shorter = min(len(new), len(old))
    front = sum(1 for _ in takewhile(_are_one, zip(new, old, strict=False)))
    ends = islice(zip(reversed(new), reversed(old), strict=False), shorter - front)
    back = sum(1 for _ in takewhile(_are_one, ends))
    if not front + back or not _take_place(new, old, tracker):
        return
    new.hf_node, old.hf_node = old.hf_node, UNSAVED
    new.hf_mark.splice(front, len(old) - back, len(new) - front - back)


def _take_place(new: Value, old: Value, tracker: Tracker) -> bool:
    """Let the changes of a list be those of a new one; one stands among the changed once."""
    if old.hf_mark is None:
        new.hf_mark = Window(len(old))
        tracker.dirty.append(new)
        return True
    if len(tracker.dirty) > DIRTY_MAX:
        return False
    new.hf_mark, old.hf_mark = old.hf_mark, None
    tracker.dirty = [new if node is old else node for node in tracker.dirty]
    return True


def _are_one(pair: tuple[Value, Value]) -> bool:
    new, old = pair
    return new is old or (type(new) in BASIC and _is_same(new, old))


def _take_over(new: Value, old: Value) -> None:
    """What is equal has the digest of the old one, and can be read again where that one can."""
    below: list[Value] = [item for item in children(new) if type(item) in KINDS]
    # A change is told upwards from one digest to the next, and so from one source to the next.
    hashes = [old.hf_hash, *(item.hf_hash for item in below)]
    if new.hf_hash is None and all(type(known) is bytes for known in hashes):
        new.hf_hash = old.hf_hash
    if new.hf_node != UNSAVED or new.hf_source is not None or old.hf_source is None:
        return
    if all(item.hf_source is not None for item in below):
        new.hf_source = old.hf_source


def _is_same(new: Value, old: Value) -> bool:
    """Whether two values that cannot change are equal and of one type, down to the bits."""
    if type(old) is not type(new) or not is_fixed(new):
        return False
    if new is old:
        return True
    if type(new) in BASIC and type(new) is not float:
        return bool(new == old)
    try:  # 0.0 equals -0.0, and a time another one elsewhere.
        return values.encode(new, path="") == values.encode(old, path="")
    except NotStorable:
        return False
