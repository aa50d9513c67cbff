"""Run the unfinished turn anew with today's code: its steps are dropped, its effects stand."""

from collections.abc import Iterator

from holdfast.clock import Clock
from holdfast.model.branches import Forked, Settled
from holdfast.model.journal import (
    Based,
    Declined,
    Entry,
    Happened,
    Intended,
    Redone,
    Started,
    TurnEnded,
    Undone,
)
from holdfast.policy.effects import TAKEN_BACK
from holdfast.store.marks import marks_of
from holdfast.store.reader import History, Placed, Reader
from holdfast.store.writer import RunWriter


def redo_turn(writer: RunWriter, reader: Reader, clock: Clock, reason: str | None) -> None:
    """Branch off where the unfinished turn began; the old branch keeps what was recorded."""
    history = reader.history(writer.run)
    at, copied, rest = _cut(reader, history)
    gone = {e.key for e in rest if isinstance(e, Undone) and e.how in TAKEN_BACK}
    standing = [
        e for e in rest if isinstance(e, Intended | Happened | Declined) and e.key not in gone
    ]
    intents = [mark for entry in (*copied, *standing) for mark in marks_of(entry)]
    redone = Redone(clock.now(), history.last.id, reason)
    writer.grow(at, [*copied, redone, *standing], intents)


def _cut(reader: Reader, history: History) -> tuple[Placed, list[Entry], list[Entry]]:
    """The row to branch from, entries of the next one that still belong before the turn, the rest.

    A turn's end shares its row with what came next, so that part of the row is copied.
    """
    rows = [*history.outside, *history.rows]
    last = max(
        (
            (number, index)
            for number, placed in enumerate(rows)
            for index, entry in enumerate(placed.row.entries)
            if isinstance(entry, TurnEnded | Based | Started) or _is_edited(entry)
        ),
    )
    number, index = last
    entries = rows[number].row.entries
    rest = [*entries[index + 1 :], *_flat(rows[number + 1 :])]
    if index + 1 == len(entries):
        return rows[number], [], rest
    before = reader.before(history.run.row.head, rows[number].id)
    return before, entries[: index + 1], rest


def _is_edited(entry: Entry) -> bool:
    """Whether the state was changed where a fork, or the branch of a rollback, begins."""
    return isinstance(entry, Forked | Settled) and entry.turn >= 0


def _flat(rows: list[Placed]) -> Iterator[Entry]:
    for placed in rows:
        yield from placed.row.entries
