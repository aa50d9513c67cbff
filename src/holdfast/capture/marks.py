"""What changed in a container since the last save: a list's windows, a dict's keys."""

from bisect import bisect_left
from itertools import pairwise
from operator import itemgetter
from statistics import median_low
from typing import Final, TypeAlias

FAR: Final = 8
"""Changes of a list with this many items between them are told apart."""
EDITS_MAX: Final = 256
"""When there are more in one save, those that are nearest to each other become one."""

Edit: TypeAlias = tuple[int, int, int]
"""Items `start:stop` of a list, and how many saved items they stand for."""


class Window:
    """The middle of a list that is no longer what was saved.

    Of the saved items `trim` were dropped from the front, the next `lo` and the last `hi` still
    stand; what is between them is written by its final value. Never a log of operations: a log
    that holds live objects applies changes twice.

    Where two changes are far apart, most of the middle still stands too: then `edits` are the
    parts that do not, in order, with something that stands between any two of them.
    """

    __slots__ = ("edits", "hi", "length", "length_saved", "lo", "trim")

    def __init__(self, length: int) -> None:
        self.length = self.length_saved = self.lo = self.hi = length
        self.trim = 0
        self.edits: list[Edit] | None = None

    def splice(self, start: int, stop: int, count: int) -> None:
        """Note that items `start:stop` are replaced by `count` others."""
        if start == stop and not count:
            return
        is_trim = start == 0 and count == 0 and stop <= self.lo
        if self.edits is not None:
            self._edit(start, stop, count)
        elif not is_trim and self._is_far(start, stop):
            self.edits = self._edits()
            self._edit(start, stop, count)
        if is_trim:
            self.trim += stop
            self.lo -= stop
        elif start < self.lo:
            self.lo = start
        self.hi = min(self.hi, self.length - stop)
        self.length += count - (stop - start)

    def cut(self, length: int) -> tuple[int, int, int]:
        """Give `trim`, `lo`, `hi` for a list that is now `length` long.

        Another length than was noted means that something changed the list without its methods:
        then nothing is taken for granted and the whole list is written.
        """
        if length != self.length:
            return 0, 0, 0
        return self.trim, self.lo, self._hi()

    def parts(self, length: int) -> list[tuple[int | list[int], int, int]]:
        """Give the parts of a list that are to be written: what stands before them, and which.

        From the back to the front: each `head` is for the list as the part before leaves it.
        """
        if self.is_clean(length):
            return []
        if self.edits is None or length != self.length:
            trim, lo, hi = self.cut(length)
            return [([trim, lo, hi] if trim or hi else lo, lo, length - hi)]
        parts: list[tuple[int | list[int], int, int]] = []
        before = self.length_saved
        for start, stop, was in reversed(self.edits):
            hi = length - stop
            parts.append(([0, before - was - hi, hi], start, stop))
            before += stop - start - was
        assert before == length, "what stands and what is written is the list"
        return parts

    def is_clean(self, length: int) -> bool:
        """Say whether the list is, item for item, the saved one."""
        return self.trim == 0 and self.lo == length == self.length_saved == self.length

    def _hi(self) -> int:
        return min(self.hi, self.length - self.lo, self.length_saved - self.trim - self.lo)

    def _is_far(self, start: int, stop: int) -> bool:
        """Say whether most of what is between a change and the window stands as it was saved."""
        low, high = self.lo, self.length - self._hi()
        is_empty = low == high == self.length_saved - self.trim
        return not is_empty and (stop + FAR < low or high + FAR < start)

    def _edits(self) -> list[Edit]:
        """Give the one window as edits."""
        hi = self._hi()
        edits = [(0, 0, self.trim)] if self.trim else []
        middle = self.lo, self.length - hi, self.length_saved - self.trim - self.lo - hi
        if edits and self.lo == 0:
            return [(0, middle[1], self.trim + middle[2])]
        return [*edits, middle]

    def _edit(self, start: int, stop: int, count: int) -> None:
        edits = self.edits or []
        more = count - (stop - start)
        first = bisect_left(edits, start, key=itemgetter(1))  # the first that ends there or behind
        last = first
        was = stop - start
        while last < len(edits) and edits[last][0] <= stop:
            low, high, before = edits[last]
            was += before - (min(high, stop) - max(low, start))
            start, last = min(start, low), last + 1
            stop = max(stop, high)
        behind = edits[last:]
        if more:
            behind = [(low + more, high + more, before) for low, high, before in behind]
        edits[first:] = [(start, stop + more, was), *behind]
        self.edits = edits if len(edits) <= EDITS_MAX else _joined(edits)


def _joined(edits: list[Edit]) -> list[Edit]:
    """Give the same in half as many edits, in which more is written."""
    near = median_low([after[0] - before[1] for before, after in pairwise(edits)])
    joined = edits[:1]
    for start, stop, was in edits[1:]:
        low, high, before = joined[-1]
        if start - high <= near:
            joined[-1] = low, stop, before + start - high + was
        else:
            joined.append((start, stop, was))
    return joined


class Changes:
    """The keys of a dict that are no longer what was saved.

    `gone` are saved keys that were deleted, also if they came back since. `put` are the keys to
    set after that, in order; its value says whether the key stands at the end (it was added since
    the save) or in its saved place (it was overwritten). So key order comes back exactly.
    """

    __slots__ = ("gone", "length", "put")

    def __init__(self, length: int) -> None:
        self.gone: dict[object, None] = {}
        self.put: dict[object, bool] = {}
        self.length = length

    def add(self, key: object) -> None:
        """Note that `key`, which was not there, is set."""
        self.put[key] = True
        self.length += 1

    def overwrite(self, key: object) -> None:
        """Note that `key`, which was there, is set."""
        if key not in self.put:
            self.put[key] = False

    def delete(self, key: object) -> None:
        """Note that `key`, which was there, is deleted."""
        if not self.put.pop(key, False):
            self.gone[key] = None
        self.length -= 1

    def is_clean(self) -> bool:
        """Say whether the dict is, key for key, the saved one."""
        return not self.gone and not self.put
