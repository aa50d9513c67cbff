"""What every tracked container carries, and what a change of one means to the others."""

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from threading import Lock, RLock
from typing import Any, Final, Protocol
from weakref import ref

from holdfast import errors
from holdfast.capture.fixed import BASIC, Value, is_fixed
from holdfast.capture.hashes import Cache
from holdfast.capture.shadow import Shadows
from holdfast.capture.watch import Originals, Watch

inside: ContextVar[str | None] = ContextVar("holdfast_inside", default=None)
"""The name of the step or effect that runs now; while it is set, tracked containers are fixed."""

KINDS: Final[dict[type, type]] = {}
"""Tracked class -> plain class; `tracked` fills it."""

TRACKED: Final[dict[type, type]] = {}
"""Plain class -> tracked class; `tracked` fills it."""

SLOTS: Final = (
    "hf_tracker", "hf_node", "hf_mark", "hf_hash", "hf_source", "hf_up", "hf_watch", "__weakref__",
)  # fmt: skip
UNSAVED: Final = -1
DEPTH_MAX: Final = 128
"""Containers in containers that one save writes; each level takes a few frames of the stack."""
WHOLE: Final = object()
"""Stands for the key of a change that is of no single key."""
PARENTS_BEFORE_PRUNING: Final = 8


class Node(Protocol):
    """A tracked dict or list, as the modules that do not make one see it."""

    hf_tracker: "Tracker | None"  # None: it lost its place when a restored state was put in
    hf_node: int  # its id, if at least its tracker's `floor`; else it was never saved
    hf_mark: Any  # Window or Changes since the last save; None: clean, or never saved
    hf_hash: Any  # bytes or Cache; None: nobody above it has a digest that includes it
    hf_source: Any  # while it is as stored: (None, token), below that (source above, key), or
    # (Place, ordinal) in a save
    hf_up: Any  # None, one parent, or a dict of them: all that ever held it, never too few
    hf_watch: Watch | None  # the plain object it was copied from, while others may hold that

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...


class Tracker:
    """The marks and the lock that the containers of one state share."""

    __slots__ = (
        "dirty", "floor", "holders", "lock", "next", "originals", "root", "shadows", "suspects",
    )  # fmt: skip

    def __init__(self) -> None:
        self.lock = RLock()
        self.root: ref[Node] | None = None
        self.floor = 0  # ids below belong to an older base
        self.next = 0
        self.dirty: list[Node] = []
        self.holders: dict[int, ref[Node]] = {}  # containers with leaves that may change in place
        self.suspects: list[ref[Node]] = []  # containers in which a cycle may have been closed
        self.originals = Originals()
        self.shadows = Shadows()


LOOSE: Final = Tracker()
"""Stands in for the tracker of containers that are part of no state yet. Its lock is taken after
that of a state, never before."""

links: Final = Lock()
"""Held while a container learns who holds it."""


def begin(node: Node, key: object = WHOLE) -> Tracker:
    """Take the lock under which `node` may change, or refuse; the caller releases it.

    `key` is what is to be changed in it, if that is one thing.
    """
    function = inside.get()
    if function is not None:
        raise errors.ChangedInCall(function, _changed_at(node, key))
    while True:
        tracker = node.hf_tracker
        if tracker is None:
            raise out_of_place()
        tracker.lock.acquire()
        if node.hf_tracker is tracker:
            return tracker
        tracker.lock.release()  # it became part of a state while we waited


def _changed_at(node: Node, key: object) -> str:
    path = where(node)
    return path if key is WHOLE or not path.startswith("state") else path + step(key)


def out_of_place() -> errors.UsageError:
    """Make the error for a container that a restored state has no place for."""
    return errors.UsageError(
        "this container was part of the state before the run's restored state was put in place, "
        "and has no place in it; take it from `run.state` again inside the loop"
    )


def children(node: Node) -> Iterable[object]:
    """Give the values in `node`, in order."""
    return node.values() if isinstance(node, dict) else node


def is_flat(node: Value) -> bool:
    """Say whether there is nothing in `node` but values that a save writes as they are."""
    return BASIC.issuperset(map(type, node.values() if isinstance(node, dict) else node))


def entries(node: Node) -> Iterable[tuple[object, object]]:
    """Give the (key or index, value) pairs of `node`, in order."""
    return node.items() if isinstance(node, dict) else enumerate(node)


def may_change(value: object) -> bool:
    """Say whether `value` is a leaf that may change in place."""
    kind = type(value)
    return kind not in BASIC and kind not in KINDS and not is_fixed(value)


def link(child: Node, parent: "ref[Node]") -> None:
    """Remember that `parent` holds `child`.

    A link is never taken away while the parent lives: one too many costs a hash, one too few would
    hide a change. A child that was linked twice has a dict, so it may stand in one parent twice.
    """
    with links:
        up = child.hf_up
        if up is None or (type(up) is ref and up() is None):
            child.hf_up = parent
        elif type(up) is dict:
            up[id(parent)] = parent
            many = len(up)
            if many >= PARENTS_BEFORE_PRUNING and not many & (many - 1):
                child.hf_up = {key: held for key, held in up.items() if held() is not None}
        else:
            child.hf_up = {id(up): up, id(parent): parent}


def parents(node: Node) -> list[Node]:
    """Give every container that may hold `node`."""
    up = node.hf_up
    if up is None:
        return []
    if type(up) is dict:
        return [parent for held in list(up.values()) if (parent := held()) is not None]
    parent = up()
    return [] if parent is None else [parent]


def is_within(node: Node, tops: set[int]) -> bool:
    """Say whether `node` is, or may stand below, one of the containers with ids `tops`."""
    seen = {id(node)}
    stack = [node]
    while stack:
        at = stack.pop()
        if id(at) in tops:
            return True
        for parent in parents(at):
            if id(parent) not in seen:
                seen.add(id(parent))
                stack.append(parent)
    return False


def stale(node: Node) -> None:
    """Tell all that hold `node` that its digest is no longer what they hashed."""
    stack = [node]
    while stack:
        child = stack.pop()
        for parent in parents(child):
            known = parent.hf_hash
            if type(known) is bytes:
                parent.hf_hash = None
                stack.append(parent)
            elif isinstance(known, Cache) and known.child_changed(id(child)):
                stack.append(parent)


def forget_digests(root: Node) -> None:
    """Forget the digests of `root` and of all containers below it."""
    seen = {id(root)}
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        node.hf_hash = None
        for _, value in entries(node):
            if type(value) in KINDS and id(value) not in seen:
                seen.add(id(value))
                stack.append(value)  # type: ignore[arg-type]  # what is in `KINDS` is a Node


def forget_source(node: Node) -> None:
    """Note that `node`, and so every answer it is part of, is no longer what was recorded.

    Above a container without a source there is none with one, so the walk ends there.
    """
    stack = [node]
    while stack:
        at = stack.pop()
        if at.hf_source is not None:
            at.hf_source = None
            stack.extend(parents(at))


def where(value: object) -> str:
    """Find the path of a tracked container by searching from the root of its state."""
    tracker = getattr(value, "hf_tracker", None)
    if tracker is LOOSE:
        return "an argument"
    root = None if tracker is None or tracker.root is None else tracker.root()
    path = None if root is None else path_below(root, value)
    return "a removed part of the state" if path is None else path


def path_below(root: Node, target: object) -> str | None:
    """Find `target`, by identity, in the state whose root is `root`."""
    if root is target:
        return "state"
    seen = {id(root)}
    stack = [(root, "state")]
    while stack:
        node, path = stack.pop()
        for key, value in entries(node):
            if value is target:
                return path + step(key)
            if type(value) in KINDS and id(value) not in seen:
                seen.add(id(value))
                stack.append((value, path + step(key)))  # type: ignore[arg-type]  # what is in `KINDS` is a Node
    return None


def step(key: object) -> str:
    """Give one step of a path as it would be written in Python."""
    return f'["{key}"]' if type(key) is str else f"[{key!r}]"
