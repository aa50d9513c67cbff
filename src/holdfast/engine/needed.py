"""Which rows a point of a run needs: those of its saves, and all that is named by them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter

from holdfast.capture.document import needs
from holdfast.capture.places import Needs
from holdfast.capture.wire import BESIDE
from holdfast.model.branches import Forked, Settled
from holdfast.model.ids import Point, branch_of
from holdfast.model.journal import (
    Based,
    Entry,
    Finished,
    Kept,
    LoopLeft,
    Saved,
    TurnEnded,
)
from holdfast.store.reader import Placed, Reader

_Part = tuple[Point, int]
"""Where a save stands, and the ordinal of a container in it."""

_change_in = attrgetter("delta")
_SAVES: Mapping[type[Entry], Callable[[Entry], bytes | None]] = {
    Based: attrgetter("state"),
    **dict.fromkeys((TurnEnded, LoopLeft, Kept, Saved, Finished, Forked, Settled), _change_in),
}


def save_of(entry: Entry) -> bytes | None:
    """The base or change of the state that an entry holds."""
    save_in = _SAVES.get(type(entry))
    return None if save_in is None else save_in(entry)


def rows_to(reader: Reader, head: int, point: Point) -> Iterator[Placed]:
    """The rows that the state at a point is read from: from the newest base before it."""
    row, index = point
    placed = reader.row(row)
    base = placed.row.base
    if any(isinstance(entry, Based) for entry in placed.row.entries[index:]):
        base = reader.before(head, row).row.base
    return reader.rows(head, base if base >= 0 else reader.first(head), row)


def rows_used(reader: Reader, rows: Iterable[Placed]) -> set[int]:
    """The rows that the saves in these rows name, or need to replay what stands outside turns.

    Such a replay passes the ends of earlier loops, each with the state that was there.
    """
    found: set[int] = set()
    due: set[_Part] = set()
    outside: set[int] = set()
    while rows:
        spans: set[int] = set()
        for placed in rows:
            for index, entry in enumerate(placed.row.entries):
                save = save_of(entry)
                if save is not None:
                    named = needs(reader.chunks.fetch(save))
                    found |= named.rows_without()
                    due |= _holding(named, (placed.id, index))
                for span in entry.outside if isinstance(entry, Based) else ():
                    spans.update(range(span.first, span.last + 1))
        rows = list(_rows_to_loops(reader, spans - outside))
        outside |= spans
        found.update(placed.id for placed in rows)
    return found | outside | _rows_below(reader, due)


def _rows_to_loops(reader: Reader, outside: set[int]) -> Iterator[Placed]:
    """The rows that the states are read from with which loops in these rows were left."""
    for placed in reader.some(outside):
        for index, entry in enumerate(placed.row.entries):
            if isinstance(entry, LoopLeft) and placed.id in outside:
                yield from rows_to(reader, branch_of(placed.id), (placed.id, index))


def _rows_below(reader: Reader, due: set[_Part]) -> set[int]:
    """The rows that containers in saves name in turn, and so on."""
    found: set[int] = set()
    met: set[_Part] = set()
    while due := due - met:
        met |= due
        below: set[_Part] = set()
        rows = {placed.id: placed for placed in reader.some(row for (row, _), _ in due)}
        for at, ordinal in due:
            entries = rows[at[0]].row.entries
            save = save_of(entries[at[1]]) if at[1] < len(entries) else None
            if save is not None:  # Else it was pruned: whoever needs it finds out.
                named = needs(reader.chunks.fetch(save), ordinal)
                found |= named.rows_without()
                below |= _holding(named, at)
        due = below
    return found


def _holding(named: Needs, at: Point) -> set[_Part]:
    """What of that, named by a save that stands `at`, may name something itself."""
    beside = at[0], at[1] - 1
    return {(beside if place == BESIDE else place, ordinal) for place, ordinal in named.holding()}
