"""A reading made again if it met damage: others may have removed meanwhile what it was to read.

A run is read in many looks at the database. Garbage collection or an erasure between two of them
makes the second one miss what the first one named. Damage stays as it is; a removal does not.
"""

from collections.abc import Callable
from typing import TypeVar

from holdfast.errors import Damaged

T = TypeVar("T")

TRIES_MAX = 5


def steadily(read: Callable[[], T]) -> T:
    """What `read` gives; `Damaged` only if it meets the same damage twice, one after the other.

    `read` begins with finding the run, so that it says of one that is gone that it is gone.
    """
    before: tuple[object, ...] | None = None
    for _ in range(TRIES_MAX):
        try:
            return read()
        except Damaged as damage:
            if damage.args == before:
                raise
            before = damage.args
    return read()
