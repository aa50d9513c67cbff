"""Cancelling a run: at once where nobody holds it, else at its next call."""

import contextlib

from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.engine.faults import describe, to_error
from holdfast.engine.launch import Launcher
from holdfast.errors import Cancelled, RollbackUnfinished, UsageError
from holdfast.model.journal import Failed, Resumed, Spawned
from holdfast.model.run import Status
from holdfast.store import wishes
from holdfast.store.open import Opened
from holdfast.store.reader import Reader, Run
from holdfast.store.steady import left_of
from holdfast.store.writer import take_up

_TOO_LATE = (Status.FINISHED, Status.ROLLING_BACK)


def cancel(opened: Opened, launcher: Launcher, clock: Clock, run: Run, reason: str | None) -> None:
    """Cancel a run and its children. Who holds it is asked, and records it at its next call.

    The wish is durable: if that process dies before, whoever takes the run up next is asked.
    """
    if not _is_over(run):
        opened.records.revive()
        wishes.ask(opened, run.row.no)
        if opened.leases.take(run.row.no):
            try:
                found = opened.reader.find(run.body.id)
                assert found is not None
                if found.body.status in _TOO_LATE:  # It has let go since it was looked for.
                    wishes.forget(opened, run.row.no)
                if not _is_over(found):
                    _record(opened, launcher, clock, found, reason)
                wishes.forget(opened, run.row.no)
            finally:
                opened.leases.give(run.row.no)
    for child in children_of(opened.reader, run):  # After their parent, which begins no more.
        if child.body.status not in _TOO_LATE:
            with contextlib.suppress(UsageError, RollbackUnfinished):  # So it is by now.
                cancel(opened, launcher, clock, child, reason)


def children_of(reader: Reader, run: Run) -> list[Run]:
    """The children that the run itself began on its line of history, in that order."""
    head = run.row.head
    ids = [
        entry.id
        for placed in reader.rows(head, reader.first(head), reader.end(head))
        for entry in placed.row.entries
        if isinstance(entry, Spawned)
    ]
    found = [left_of(reader, id_) for id_ in dict.fromkeys(ids)]
    return [child for child in found if child is not None and _is_child_of(child, run)]


def _is_child_of(child: Run, run: Run) -> bool:
    return child.body.origin is not None and child.body.origin.run == run.body.id


def _is_over(run: Run) -> bool:
    """Whether it is cancelled already; an error where it cannot be."""
    if run.body.status is Status.FINISHED:
        msg = f"run {run.body.id} has finished; there is nothing left to cancel"
        raise UsageError(msg)
    if run.body.status is Status.ROLLING_BACK:
        raise RollbackUnfinished(run.body.id)
    return run.body.status is Status.CANCELLED


def _record(opened: Opened, launcher: Launcher, clock: Clock, run: Run, reason: str | None) -> None:
    now, holder = clock.now(), launcher.holder()
    error = to_error(Cancelled(run.body.id, reason or ""))
    body = replace(
        run.body, holder=holder, status=Status.CANCELLED, ended=now, error=describe(error)
    )
    take_up(
        opened.committer,
        opened.reader.seals,
        opened.reader.history(run),
        opened.records.tail(run.row.head),
        body=body,
        entry=Resumed(now, run.row.epoch + 1, holder, run.body.version),
        more=[Failed(now, str(Status.CANCELLED), error)],
    )
