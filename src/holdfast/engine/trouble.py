"""What a person has to look at, as items of the inbox: escalations, blocks, failed undos."""

import hashlib
from collections.abc import Iterator, Sequence

from holdfast.engine.faults import to_exception
from holdfast.engine.item import (
    ALLOW,
    BLOCK,
    BY_HAND,
    DISMISS,
    ESCALATION,
    RETRY,
    STANDS,
    UNDO,
    Item,
)
from holdfast.engine.unsettled import last_word, unsettled, why_left
from holdfast.errors import Blocked
from holdfast.model.decision import Action
from holdfast.model.failure import REPAIRED
from holdfast.model.journal import Decided, Entry, Failed
from holdfast.model.run import Status
from holdfast.store.reader import Reader, Run

STOPPED = (Status.FAILED, Status.DIVERGED, Status.BLOCKED)
"""How a run may have ended so that somebody has to look at it."""


def trouble(reader: Reader, run: Run) -> Iterator[Item]:
    """What a person has to look at in a run that has stopped, or that a rollback left undone."""
    if run.body.undos_left and run.body.status is not Status.ROLLING_BACK:
        yield from _left_undone(reader, run)
    if run.body.status not in STOPPED:
        return
    placed = reader.row(reader.end(run.row.head))
    if run.body.status is Status.BLOCKED:
        yield from _block(run, placed.row.entries)
        return
    entries, last = placed.row.entries, placed.row.entries[-1]
    if isinstance(last, Failed) and last.error.name == REPAIRED:
        yield _escalation(reader, run, placed.id, last.error.message, last.at)
        return
    if not any(isinstance(entry, Decided) for entry in entries):
        # The decision rides along with the end of the run, and may have been committed before it.
        entries = reader.before(run.row.head, placed.id).row.entries
    for entry in entries:
        if isinstance(entry, Decided) and entry.decision.action is Action.ESCALATE:
            text = f"{entry.failure.what}: {entry.decision.reason}"
            yield _escalation(reader, run, placed.id, text, entry.at)


def _escalation(reader: Reader, run: Run, row: int, text: str, at: float) -> Item:
    name = run.body.id.encode("utf-8", "surrogatepass") + row.to_bytes(8, "big")
    made = hashlib.sha256(b"escalation" + reader.store_id + name).hexdigest()[:16]
    return Item(id=made, kind=ESCALATION, run=run.body.id, text=text, options=[DISMISS], since=at)


def _left_undone(reader: Reader, run: Run) -> Iterator[Item]:
    """Effects that a rollback was to take back and could not."""
    for lost in unsettled(reader, run):
        taken, said = lost.taken, last_word(reader, run, lost.taken.key)
        why = why_left(reader, run, taken)
        yield Item(
            id=taken.key,
            kind=UNDO,
            run=run.body.id,
            text=f"{taken.effect} was to be undone and stands ({why})",
            options=[RETRY, BY_HAND, STANDS],
            since=lost.meant.at if said is None else said.at,
        )


def _block(run: Run, entries: Sequence[Entry]) -> Iterator[Item]:
    for entry in entries:
        error = to_exception(entry.error) if isinstance(entry, Failed) else None
        if isinstance(entry, Failed) and isinstance(error, Blocked):
            text = f"do {error.effect} although {error.standing} {error.how}?"
            yield Item(
                id=error.key,
                kind=BLOCK,
                run=run.body.id,
                text=text,
                options=[ALLOW],
                since=entry.at,
            )
