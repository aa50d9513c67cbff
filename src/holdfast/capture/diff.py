"""What is different between two states: paths added, removed, changed; lists aligned."""

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, Literal

import msgspec

from holdfast.capture.digest import digest
from holdfast.capture.paths import show

ALIGNED_ITEMS_MAX = 2000
"""Longer unequal parts of lists are compared place by place."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One difference. `path` is where it stands in the newer state (the older one if removed)."""

    kind: Literal["added", "removed", "changed"]
    path: str
    before: Any = None
    after: Any = None


def diff(before: object, after: object) -> list[Change]:
    """Every difference from `before` to `after`, in the order of their paths."""
    return list(_compare((), before, after))


def _compare(path: tuple[object, ...], before: Any, after: Any) -> Iterator[Change]:  # noqa: ANN401 any state
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _mappings(path, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(path, before, after)
    elif not _is_equal(before, after):
        yield Change(kind="changed", path=show(path), before=before, after=after)


def _mappings(
    path: tuple[object, ...], before: Mapping[Any, Any], after: Mapping[Any, Any]
) -> Iterator[Change]:
    for key, value in before.items():
        if key in after:
            yield from _compare((*path, key), value, after[key])
        else:
            yield Change(kind="removed", path=show((*path, key)), before=value)
    for key, value in after.items():
        if key not in before:
            yield Change(kind="added", path=show((*path, key)), after=value)


def _lists(path: tuple[object, ...], before: list[Any], after: list[Any]) -> Iterator[Change]:
    old, new = [digest(item) for item in before], [digest(item) for item in after]
    low = 0
    while low < min(len(old), len(new)) and old[low] == new[low]:
        low += 1
    high = 0
    while high < min(len(old), len(new)) - low and old[-1 - high] == new[-1 - high]:
        high += 1
    old_part, new_part = old[low : len(old) - high], new[low : len(new) - high]
    for tag, i, j, k, m in _opcodes(old_part, new_part):
        if tag == "equal":
            continue
        pairs = min(j - i, m - k)
        for n in range(pairs):
            place = (*path, low + k + n)
            yield from _compare(place, before[low + i + n], after[low + k + n])
        for n in range(i + pairs, j):
            yield Change(kind="removed", path=show((*path, low + n)), before=before[low + n])
        for n in range(k + pairs, m):
            yield Change(kind="added", path=show((*path, low + n)), after=after[low + n])


def _opcodes(old: list[bytes], new: list[bytes]) -> list[tuple[str, int, int, int, int]]:
    if max(len(old), len(new)) > ALIGNED_ITEMS_MAX:
        return [("replace", 0, len(old), 0, len(new))]
    return list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())


def _is_equal(before: object, after: object) -> bool:
    return type(before) is type(after) and digest(before) == digest(after)
