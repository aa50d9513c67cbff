"""The newest point of a damaged run that really restores: what is offered instead."""

import contextlib
from collections.abc import Callable, Iterator

from holdfast.errors import Damaged, NotStorable, UnknownCheckpoint
from holdfast.model.ids import Point, branch_of, point_id, row_id, seq_of
from holdfast.model.journal import Finished, Kept, Saved, TurnEnded
from holdfast.store.reader import Placed, Reader, Run

ROWS_MAX = 2000
"""How many rows are looked at, newest first, before nothing is offered."""

Restore = Callable[[Run, Point], object]


@contextlib.contextmanager
def offering(reader: Reader, run: Run, restore: Restore) -> Iterator[None]:
    """Let `Damaged` name the newest good point of the run as well."""
    try:
        yield
    except Damaged as damage:
        good = None
        if not damage.good:
            with contextlib.suppress(NotStorable):  # What this program does not know it cannot try.
                good = newest_good(reader, run, restore)
        if good is None:
            raise
        name = point_id(run.body.id, good)
        raise Damaged(damage.where, damage.why, name) from damage


@contextlib.contextmanager
def offering_known(reader: Reader, run: Run, restore: Restore) -> Iterator[None]:
    """Let `NotStorable` name a point of the run that holds only what this program knows."""
    try:
        yield
    except NotStorable as refused:
        known = _newest_known(reader, run, restore)
        if known is None:
            raise
        name = point_id(run.body.id, known)
        raise NotStorable(refused.path, refused.type_name, refused.why, name) from refused


def _newest_known(reader: Reader, run: Run, restore: Restore) -> Point | None:
    """The newest point that this program can read, if what is unknown came in once and stayed.

    Trying each would take long where nothing is known, as without the module of a class.
    """

    def is_known(at: int) -> bool:
        with contextlib.suppress(Damaged, NotStorable, UnknownCheckpoint):
            restore(run, points[at])
            return True
        return False

    points = list(_points(reader, run, is_at_end=False))
    unknown, known = -1, 0
    while known < len(points) and not is_known(known):
        unknown, known = known, 2 * known + 1
    if known >= len(points):
        known = len(points) - 1
        if known <= unknown or not is_known(known):
            return None
    while known - unknown > 1:
        middle = (known + unknown) // 2
        unknown, known = (unknown, middle) if is_known(middle) else (middle, known)
    return points[known]


def newest_good(
    reader: Reader, run: Run, restore: Restore, *, is_at_end: bool = False
) -> Point | None:
    """The newest point on the run's line of history that restores; None where none does.

    `is_at_end` asks for the end of a turn or of the run.
    """
    for point in _points(reader, run, is_at_end=is_at_end):
        with contextlib.suppress(Damaged, UnknownCheckpoint):  # The other: pruned away.
            restore(run, point)
            return point
    return None


def _points(reader: Reader, run: Run, *, is_at_end: bool) -> Iterator[Point]:
    """The points of whole states on the run's line of history, newest first."""
    for placed in _backwards(reader, run.row.head):
        for index in range(len(placed.row.entries) - 1, -1, -1):
            entry = placed.row.entries[index]
            is_whole = isinstance(entry, Saved | Kept) and entry.only is None and not is_at_end
            if is_whole or isinstance(entry, TurnEnded | Finished):
                yield placed.id, index


def _backwards(reader: Reader, head: int) -> Iterator[Placed]:
    """The rows of a line of history that can be read, newest first."""
    with contextlib.suppress(Damaged):
        line = reader.line(head)
        ends = [*(branch.at for branch in line[1:]), reader.end(head)]
        left = ROWS_MAX
        for branch, end in zip(reversed(line), reversed(ends), strict=True):
            first = row_id(branch.no, seq_of(branch.at) + 1 if branch.parent else 0)
            for id_ in range(end, max(first, end - left) - 1, -1):
                assert branch_of(id_) == branch.no
                with contextlib.suppress(Damaged):
                    yield reader.row(id_)
            left -= end - first + 1
            if left <= 0:
                return
