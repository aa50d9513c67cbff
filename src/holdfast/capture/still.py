"""Objects in the state as they are before a call, which has to leave them so.

A tracked container refuses a change from inside a step by itself; an object cannot. So it is looked
at before the call and after it: as far as its shadow tells, since to encode it would cost too much.
"""

from holdfast.capture.leaves import changeable
from holdfast.capture.node import Node, path_below
from holdfast.capture.shadow import Shadow
from holdfast.errors import ChangedInCall


def holds_objects(root: Node) -> bool:
    """Say whether a state may hold objects that can change in place."""
    return root.hf_tracker is not None and bool(root.hf_tracker.holders)


class Still:
    """The objects in the state below `root` as they are now."""

    __slots__ = ("_root", "_seen")

    def __init__(self, root: Node) -> None:
        self._root = root
        self._seen: dict[int, tuple[object, Shadow]] = {}
        tracker = root.hf_tracker
        if tracker is None:
            return
        with tracker.lock:
            for held in list(tracker.holders.values()):
                holder = held()
                if holder is None or holder.hf_tracker is not tracker:
                    continue
                for _, leaf in changeable(holder):
                    if id(leaf) not in self._seen:
                        shadow = tracker.shadows.of(leaf)
                        if shadow is not None:
                            self._seen[id(leaf)] = leaf, shadow

    def refuse_changes(self, function: str) -> None:
        """Raise `ChangedInCall` if one of them, which is in the state yet, is another now."""
        for leaf, shadow in self._seen.values():
            if not shadow.is_true() and (path := path_below(self._root, leaf)) is not None:
                raise ChangedInCall(function, path)
