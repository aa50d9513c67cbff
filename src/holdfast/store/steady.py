"""What others remove meanwhile is not called damaged: read again, left out, or said to be gone.

A run is read in many looks at the database. Garbage collection or an erasure between two of them
makes the second one miss what the first one named. Damage stays as it is; a removal does not.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from holdfast.errors import Damaged, RunErased, UnknownRun
from holdfast.store.reader import Reader, Run

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


def of_each(reader: Reader, runs: Iterable[Run], read: Callable[[Run], T]) -> Iterator[T]:
    """What `read` gives of every run; those that are removed before they are read are left out."""

    def again(run: Run) -> list[T]:
        found = _now(reader, run)
        return [] if found is None else [read(found)]

    for run in runs:
        try:
            found = [read(run)]
        except Damaged:
            found = steadily(partial(again, run))
        yield from found


@contextlib.contextmanager
def unless_gone(reader: Reader, run: Run, path: Path) -> Iterator[None]:
    """Let `Damaged` rise only if the run is still there; else it is said to be gone."""
    try:
        yield
    except Damaged:
        refuse_gone(reader, run, path)
        raise


def refuse_gone(reader: Reader, run: Run, path: Path) -> None:
    """Raise `UnknownRun` or `RunErased` if a run was removed since it was read."""
    if is_gone(reader, run):
        reader.find(run.body.id)  # `RunErased` where it was erased.
        raise UnknownRun(run.body.id, str(path)) from None


def is_gone(reader: Reader, run: Run) -> bool:
    """Whether a run was removed since it was read; another may have its id by now."""
    return _now(reader, run) is None


def left_of(reader: Reader, id_: str) -> Run | None:
    """The run of that id; None if there is none any more, also where it was erased."""
    with contextlib.suppress(RunErased):
        return reader.find(id_)
    return None


def _now(reader: Reader, run: Run) -> Run | None:
    found = left_of(reader, run.body.id)
    return found if found is not None and found.row.no == run.row.no else None
