"""What is different between two states: paths added, removed, changed; lists aligned."""

import dataclasses
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, Literal

import msgspec

from holdfast.capture.digest import digest
from holdfast.capture.paths import show
from holdfast.store.codec.shapes import is_pydantic

ALIGNED_ITEMS_MAX = 2000
"""Longer unequal parts of lists are cut at items that stand once in each; where there are none,
they are compared place by place."""

MATCHES_MAX = 2500
MATCHES_EACH = 4
"""Lists with more pairs of equal items than that, in all and for each item, are aligned by the
fewest edits: difflib, whose pairing reads better, takes time with the cube of their length."""

EDITS_MAX = 500
"""Such lists are compared place by place where that takes more edits."""

Opcode = tuple[str, int, int, int, int]
"""What becomes of old[i:j] and new[k:m], as difflib says it."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One difference. `path` is where it stands in the newer state (the older one if removed)."""

    kind: Literal["added", "removed", "changed"]
    path: str
    before: Any = None
    after: Any = None


def diff(before: object, after: object) -> list[Change]:
    """Every difference from `before` to `after`, in the order of their paths."""
    return list(_compare(Place((), ()), before, after))


class Place(msgspec.Struct, frozen=True):
    """Where two values stand that are compared: in the older state, and in the newer one."""

    old: tuple[object, ...]
    new: tuple[object, ...]

    def at(self, old: object, new: object) -> "Place":
        """A place inside: by key, or by the index that an item has in each list."""
        return Place((*self.old, old), (*self.new, new))


def _compare(place: Place, before: Any, after: Any) -> Iterator[Change]:  # noqa: ANN401 any state
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _mappings(place, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(place, before, after)
    elif not _is_equal(before, after):
        inner: list[Change] = []
        if type(before) is type(after) and (fields := _fields(before)) is not None:
            inner = list(_mappings(place, fields, _fields(after) or {}))
        whole = Change(kind="changed", path=show(place.new), before=before, after=after)
        yield from inner or [whole]


def _fields(value: Any) -> dict[str, Any] | None:  # noqa: ANN401 any state
    """The fields of an object that has names for them; None for any other value."""
    if is_pydantic(type(value)):
        return dict(value.__dict__)
    names: Iterable[str] = ()
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    return {name: getattr(value, name) for name in names if hasattr(value, name)} or None


def _mappings(
    place: Place, before: Mapping[Any, Any], after: Mapping[Any, Any]
) -> Iterator[Change]:
    now = {key: key for key in after}
    replaced = set()  # 1, True and 1.0 are one key to a dict, and not the same
    for key, value in before.items():
        if key in after and _is_same_key(key, now[key]):
            yield from _compare(place.at(key, key), value, after[key])
        else:
            yield Change(kind="removed", path=show((*place.old, key)), before=value)
            replaced.add(key)
    for key, value in after.items():
        if key not in before or key in replaced:
            yield Change(kind="added", path=show((*place.new, key)), after=value)


def _is_same_key(before: object, after: object) -> bool:
    if type(before) is str:
        return type(after) is str
    return before is after or _is_equal(before, after)


def _lists(place: Place, before: list[Any], after: list[Any]) -> Iterator[Change]:
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
            inside = place.at(low + i + n, low + k + n)
            yield from _compare(inside, before[low + i + n], after[low + k + n])
        for n in range(i + pairs, j):
            yield Change(kind="removed", path=show((*place.old, low + n)), before=before[low + n])
        for n in range(k + pairs, m):
            yield Change(kind="added", path=show((*place.new, low + n)), after=after[low + n])


def _opcodes(old: list[bytes], new: list[bytes]) -> Iterator[Opcode]:
    is_long = max(len(old), len(new)) > ALIGNED_ITEMS_MAX
    i = k = 0
    for j, m in [*(_anchors(old, new) if is_long else ()), (len(old), len(new))]:
        if max(j - i, m - k) > ALIGNED_ITEMS_MAX:
            yield "replace", i, j, k, m
        else:
            for tag, *ends in _aligned(old[i:j], new[k:m]):
                yield tag, i + ends[0], i + ends[1], k + ends[2], k + ends[3]
        i, k = j + 1, m + 1


def _aligned(old: list[bytes], new: list[bytes]) -> Iterator[Opcode]:
    there = Counter(new)
    matches = sum(count * there[item] for item, count in Counter(old).items())
    if matches <= max(MATCHES_MAX, MATCHES_EACH * (len(old) + len(new))):
        yield from SequenceMatcher(None, old, new, False).get_opcodes()  # noqa: FBT003 autojunk
        return
    i = k = 0
    for j, m in [*_kept(old, new), (len(old), len(new))]:
        if i < j or k < m:
            yield "replace", i, j, k, m
        i, k = j + 1, m + 1


def _kept(old: list[bytes], new: list[bytes]) -> list[tuple[int, int]]:
    """Places of the items that the fewest edits keep; none where that takes too many (Myers)."""
    most = min(EDITS_MAX, len(old) + len(new))
    far = [0] * (2 * most + 3)  # in `old`, for each difference to the place in `new`
    trail: list[list[int]] = []
    for edits in range(most + 1):
        trail.append(far.copy())
        for ahead in range(-edits, edits + 1, 2):
            before = _before(far, ahead, edits)
            at = far[before] + (before < ahead)
            while at < len(old) and at - ahead < len(new) and old[at] == new[at - ahead]:
                at += 1
            far[ahead] = at
            if at >= len(old) and at - ahead >= len(new):
                return _walked(trail, len(old), len(new))
    return []


def _before(far: list[int], ahead: int, edits: int) -> int:
    """Where the last edit came from: one place fewer ahead, or one more."""
    is_insertion = ahead == -edits or (ahead != edits and far[ahead - 1] < far[ahead + 1])
    return ahead + 1 if is_insertion else ahead - 1


def _walked(trail: list[list[int]], at: int, there: int) -> list[tuple[int, int]]:
    """The pairs on the way that led to the end, from the first on."""
    found: list[tuple[int, int]] = []
    for edits in range(len(trail) - 1, -1, -1):
        far, ahead = trail[edits], at - there
        before = _before(far, ahead, edits)
        while at > far[before] and there > far[before] - before:
            at, there = at - 1, there - 1
            found.append((at, there))
        at, there = far[before], far[before] - before
    return found[::-1]


def _anchors(old: list[bytes], new: list[bytes]) -> list[tuple[int, int]]:
    """Places of items that stand once in each list: the most of them that keep their order."""
    there = _places_of_single(new)
    here = _places_of_single(old)
    pairs = [(at, there[item]) for item, at in here.items() if item in there]
    lowest: list[int] = []  # where the row of so many pairs ends that leaves most room after it
    last: list[int] = []
    before: list[int | None] = []
    for n, (_, place) in enumerate(pairs):
        length = bisect_left(lowest, place)
        lowest[length : length + 1] = [place]
        last[length : length + 1] = [n]
        before.append(last[length - 1] if length else None)
    found: list[tuple[int, int]] = []
    at: int | None = last[-1] if last else None
    while at is not None:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _places_of_single(items: list[bytes]) -> dict[bytes, int]:
    """Where each item stands that stands there once, in their order."""
    counts = Counter(items)
    return {item: at for at, item in enumerate(items) if counts[item] == 1}


def _is_equal(before: object, after: object) -> bool:
    return type(before) is type(after) and digest(before) == digest(after)
