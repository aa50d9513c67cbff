"""Large values of a run that resemble each other, and which of them the next is a patch on.

A step that hands back the whole conversation, a text that grows, a matrix of which a row changes:
each value is nearly the one before. In a line of such values number n is a patch on the number that
n is without its lowest bit (12 on 8, 13 on 12). So one of a thousand is read through ten others at
most, and all of them take what they added times about half the logarithm of their count.

A line lives in memory, for one life of one run: what another run holds may be erased with it.
"""

import threading
from collections.abc import Mapping
from typing import NamedTuple

from holdfast.store.reference import value_id

LINES_MAX = 4
"""Lines that a run has at a time; one that was not used for longest makes room."""
PATCHED_BYTES_MAX = 16 * 1024 * 1024
"""A larger value is stored whole: a patch needs it and what it is made on in memory."""
_NUMBERS = 1 << 12
_SAMPLE_BYTES = 48
_SAMPLES = 3
_SAMPLES_MIN = 2
_PATCH_PART_MAX = 2


class Kept(NamedTuple):
    """A value as it is stored: its reference, and every object that this leads to, by name."""

    reference: bytes
    objects: Mapping[bytes, bytes]


class Line:
    """The newest of some values that resemble each other, and what it is built on."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, Kept]] = []
        self._samples: list[bytes] = []

    def find(self, id_: bytes) -> Kept | None:
        """The value of that hash, if it is the newest or one that this is built on."""
        found = (kept for _, kept in self._steps if value_id(kept.reference) == id_)
        return next(found, None)

    def is_like(self, data: bytes) -> bool:
        """Whether pieces of the newest value stand in `data` too."""
        return sum(sample in data for sample in self._samples) >= _SAMPLES_MIN

    @property
    def base(self) -> Kept | None:
        """What the next value is to be a patch on; None: it begins the line, or begins it anew."""
        number = self._next
        wanted = number & (number - 1)
        if number == _NUMBERS:
            return None
        return next((kept for known, kept in self._steps if known == wanted), None)

    def go_on(self, kept: Kept, data: bytes) -> None:
        """`data` is the newest value now, stored as a patch on `base`."""
        number = self._next
        wanted = number & (number - 1)
        self._steps = [step for step in self._steps if step[0] <= wanted] + [(number, kept)]
        self._sample(data)

    def begin(self, kept: Kept, data: bytes) -> None:
        """`data` is the newest value now, stored whole."""
        self._steps = [(0, kept)]
        self._sample(data)

    @property
    def _next(self) -> int:
        return self._steps[-1][0] + 1 if self._steps else 0

    def _sample(self, data: bytes) -> None:
        places = (len(data) * n // (_SAMPLES + 1) for n in range(1, _SAMPLES + 1))
        self._samples = [data[at : at + _SAMPLE_BYTES] for at in places]


class Lines:
    """The lines of a run, the one that was used last in front."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._lines: list[Line] = []

    def find(self, id_: bytes) -> Kept | None:
        """The value of that hash, if it is still at hand."""
        return next((found for line in self._lines if (found := line.find(id_))), None)

    def like(self, data: bytes) -> Line:
        """The line that `data` belongs to; an empty one if it is like nothing before."""
        line = next((line for line in self._lines if line.is_like(data)), None)
        if line is None:
            line = Line()
            del self._lines[LINES_MAX - 1 :]
        else:
            self._lines.remove(line)
        self._lines.insert(0, line)
        return line


def is_worth_it(patch: bytes, data: bytes) -> bool:
    """Whether a patch is so small that the value would hardly take less if it was stored whole."""
    return len(patch) * _PATCH_PART_MAX <= len(data)
