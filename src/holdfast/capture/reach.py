"""Which containers a state holds; one that contains itself is refused."""

from collections.abc import Iterator
from typing import Any

from holdfast import errors
from holdfast.capture.node import KINDS, Node, entries, step


def reach(root: Node) -> set[int]:
    """Give the identities of all containers below `root`; raise `NotStorable` for a cycle."""
    done: set[int] = set()
    path: dict[int, str] = {id(root): "state"}  # the containers we are in, and how we got there
    stack: list[tuple[Node, Iterator[tuple[object, Any]]]] = [(root, iter(entries(root)))]
    while stack:
        node, rest = stack[-1]
        for key, value in rest:
            if type(value) not in KINDS or id(value) in done:
                continue
            if id(value) in path:
                place = "".join((*path.values(), step(key)))
                raise errors.NotStorable(place, KINDS[type(value)].__name__, "it contains itself")
            path[id(value)] = step(key)
            stack.append((value, iter(entries(value))))
            break
        else:
            stack.pop()
            del path[id(node)]
            done.add(id(node))
    return done
