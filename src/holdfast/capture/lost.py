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


def lost_in(root: dict[Any, Any]) -> dict[Any, HoldfastError]:
    """The sections of a state in which something is missing, each with the first reason."""
    found = {key: _first(value) for key, value in root.items()}
    return {key: lost.error for key, lost in found.items() if lost is not None}


def _first(value: object) -> Lost | None:
    seen: set[int] = set()
    stack: list[Any] = [value]
    while stack:
        node = stack.pop()
        if type(node) is Lost:
            return node
        if type(node) in _CONTAINERS and id(node) not in seen:
            seen.add(id(node))
            stack.extend(reversed(list(_inner(node))))
    return None


def _inner(node: Node) -> list[Any]:
    return [item for item in children(node) if type(item) in _CONTAINERS or type(item) is Lost]
