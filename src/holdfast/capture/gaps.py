"""Which values of a restored state lack something that was redacted."""

from collections.abc import Iterator

from holdfast.capture.leaves import within
from holdfast.capture.node import KINDS, Node, entries, step
from holdfast.store.codec.veil import Veiled, VeiledBytes

_VEILED = (Veiled, VeiledBytes)


def gaps_in(root: Node) -> Iterator[tuple[str, str]]:
    """Give the path and section of each leaf below `root` that was read without a part of it."""
    stack: list[tuple[object, str, str]] = [(root, "state", "")]
    seen = {id(root)}
    while stack:
        node, path, section = stack.pop()
        for key, value in entries(node):  # type: ignore[arg-type]  # only Nodes are put on the stack
            place, name = path + step(key), section or str(key)
            if type(value) in KINDS:
                if id(value) not in seen:
                    seen.add(id(value))
                    stack.append((value, place, name))
            elif isinstance(key, _VEILED) or _is_veiled(value):
                yield place, name


def _is_veiled(leaf: object) -> bool:
    """Say whether a leaf, or something inside it, was read without a part of it."""
    return isinstance(leaf, _VEILED) or any(isinstance(part, _VEILED) for part in within(leaf))
