"""Going back: the newest point of a run whose state passes, and a branch that goes on from it."""

from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any

import msgspec

from holdfast.clock import Clock
from holdfast.engine.restore import PrunedAway, rows_at, state_at
from holdfast.engine.validate import Validator, first_fault
from holdfast.errors import Damaged, NotStorable
from holdfast.model.ids import Point, branch_of
from holdfast.model.journal import Based, Intended, Questioned, Redone, TurnEnded
from holdfast.store.reader import Placed, Reader, Run
from holdfast.store.writer import RunWriter


class Back(msgspec.Struct, frozen=True, kw_only=True):
    """A point to go back to. It is free if nothing that happened since stands outside the state."""

    point: Point
    turn: int
    is_free: bool


def newest_passing(
    reader: Reader, run: Run, checks: Sequence[Validator[Any]], optional: Collection[str]
) -> Back | None:
    """The newest turn's end before the last one whose state passes all validators.

    Where the run has checkpoints, only those are looked at: they passed when they were published.
    """
    head = run.row.head
    rows = list(reader.rows(head, reader.first(head), reader.end(head)))
    ends = [
        ((placed.id, index), entry)
        for placed in rows
        for index, entry in enumerate(placed.row.entries)
        if isinstance(entry, TurnEnded)
    ][:-1]
    marked = [(point, entry) for point, entry in ends if entry.mark is not None]
    for point, entry in reversed(marked or ends):
        try:
            state = state_at(reader, rows_at(reader, point), optional=optional)
        except (Damaged, NotStorable, PrunedAway):
            continue
        if state is not None and first_fault(checks, state.root) is None:
            return Back(point=point, turn=entry.turn, is_free=_is_free(rows, point))
    return None


def _is_free(rows: Sequence[Placed], point: Point) -> bool:
    """Whether no effect was meant, and nobody asked, after a point."""
    is_after = False
    for placed in rows:
        for index, entry in enumerate(placed.row.entries):
            if is_after and isinstance(entry, Intended | Questioned):
                return False
            is_after = is_after or (placed.id, index) == point
    return True


def go_back(
    writer: RunWriter, reader: Reader, clock: Clock, point: Point, reason: str | None
) -> None:
    """Branch off after the turn's end at `point`; the old branch keeps what was recorded."""
    last = reader.end(writer.run.row.head)
    row, index = point
    placed = reader.row(row)
    entries = placed.row.entries
    end = index + 1
    if end < len(entries) and isinstance(entries[end], Based):
        end += 1
    redone = Redone(clock.now(), last, reason)
    if end == len(entries):
        writer.grow(placed, [redone], [])
    else:  # A turn's end shares its row with what came next, so that part of the row is copied.
        _, before = islice(reader.back(branch_of(row), row), 2)
        writer.grow(before, [*entries[:end], redone], [])
