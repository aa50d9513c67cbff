"""Where a state holds secrets: in clear, as references, or without a value."""

from collections.abc import Iterator
from typing import Any

from holdfast.capture.leaves import within
from holdfast.capture.node import step
from holdfast.store.codec.secret import Secret
from holdfast.store.codec.vault import Part, mark_of, vault
from holdfast.store.codec.veil import Veiled, VeiledBytes, text_bytes

_REFERRING = (Secret, Veiled, VeiledBytes)


def clear_in(root: dict[Any, Any]) -> Iterator[tuple[str, str, str]]:
    """Path, section and reference of each declared secret that stands in clear below `root`.

    `root` is plain, and was read without putting secrets back.
    """
    for path, section, parts in _leaves(root):
        found: set[str] = set()
        for part in parts:
            if type(part) is str:
                found |= vault.declared_in(text_bytes(part))
            elif type(part) is bytes:
                found |= vault.declared_in(part)
        for reference in sorted(found):
            yield path, section, reference


def missing_in(root: dict[Any, Any]) -> Iterator[tuple[str, str, Part]]:
    """Path and section of each secret below `root` that was read without its value; which one."""
    for path, section, parts in _leaves(root):
        for part in parts:
            if isinstance(part, Veiled | VeiledBytes):
                yield from ((path, section, each) for each in part.pieces if type(each) is Part)
            elif type(part) is Secret and part.reveal() == mark_of(part.reference):
                yield path, section, Part(part.reference, expires=part.expires)


def refers(root: dict[Any, Any]) -> bool:
    """Whether a reference to a secret stands anywhere below `root`."""
    return any(isinstance(part, _REFERRING) for _, _, parts in _leaves(root) for part in parts)


def _leaves(root: dict[Any, Any]) -> Iterator[tuple[str, str, list[object]]]:
    """Path and section of each key and leaf, and all that it is made of."""
    stack: list[tuple[Any, str, str]] = [(root, "state", "")]
    seen = {id(root)}
    while stack:
        node, path, section = stack.pop()
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            place, name = path + step(key), section or str(key)
            parts = [key]
            if type(value) in (dict, list):
                if id(value) not in seen:
                    seen.add(id(value))
                    stack.append((value, place, name))
            else:
                parts += [value, *within(value)]
            yield place, name, parts
