"""What stands in a state that is being restored where a part of it could not be read."""

from typing import Any, Final

from holdfast.capture.node import Node, children
from holdfast.capture.tracked import TrackedDict, TrackedList
from holdfast.errors import HoldfastError

_CONTAINERS: Final = frozenset({dict, list, TrackedDict, TrackedList})


class Lost:
    """A value, or a container with all that was in it, that could not be read, and why.

    It never leaves the restore: a later change may have replaced it; if not, its section goes.
    """

    __slots__ = ("error",)

    def __init__(self, error: HoldfastError) -> None:
        self.error = error


class LostKey:
    """A key of a dict that could not be read, known by its bytes, and why."""

    __slots__ = ("data", "error")

    def __init__(self, data: bytes, error: HoldfastError) -> None:
        self.data, self.error = data, error

    def __eq__(self, other: object) -> bool:
        return type(other) is LostKey and other.data == self.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return "a key that cannot be read"


def lost_in(root: dict[Any, Any]) -> dict[Any, HoldfastError]:
    """The sections of a state in which something is missing, each with the first reason."""
    found = {key: key if type(key) is LostKey else _first(value) for key, value in root.items()}
    return {key: lost.error for key, lost in found.items() if lost is not None}


def _first(value: object) -> Lost | LostKey | None:
    seen: set[int] = set()
    stack: list[Any] = [value]
    while stack:
        node = stack.pop()
        if type(node) is Lost or type(node) is LostKey:
            return node
        if type(node) in _CONTAINERS and id(node) not in seen:
            seen.add(id(node))
            stack.extend(reversed(list(_inner(node))))
    return None


def _inner(node: Node) -> list[Any]:
    keys = [key for key in node if type(key) is LostKey]
    return keys + [
        each for each in children(node) if type(each) in _CONTAINERS or type(each) is Lost
    ]
