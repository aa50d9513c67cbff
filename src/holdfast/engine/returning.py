"""A rollback taken back: the head is the old branch again; what was undone stays undone."""

from msgspec.structs import replace

from holdfast.clock import Clock
from holdfast.engine.launch import Launcher
from holdfast.engine.losses import named
from holdfast.errors import RollbackUnfinished, UsageError
from holdfast.model.branches import Returned, RolledBack
from holdfast.model.ids import branch_of
from holdfast.model.journal import (
    Entry,
    Failed,
    Finished,
    Resumed,
    Undone,
)
from holdfast.model.rollback import Taken
from holdfast.model.run import RunBody, Status
from holdfast.policy.effects import TAKEN_BACK
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.writer import take_up


def go_back(
    opened: Opened, launcher: Launcher, clock: Clock, run: Run, reason: str | None
) -> list[Taken]:
    """Move the head back to the branch that the newest rollback left.

    Returns the effects of that branch that were undone or offset since: they are not done again.
    The lease is held already.
    """
    if run.body.status is Status.ROLLING_BACK:
        raise RollbackUnfinished(run.body.id)
    reader = opened.reader
    rolled, gone = _newest(opened, run)
    old = branch_of(rolled.of)
    last = reader.row(reader.end(old)).row.entries[-1]
    now, holder = clock.now(), launcher.holder()
    more: list[Entry] = [Returned(now, reader.end(run.row.head), reason)]
    body = replace(run.body, holder=holder, status=Status.RUNNING, ended=None, error=None)
    if isinstance(last, Finished | Failed):
        # How the run ended is the last word of its head; its change of the state stands before.
        more.append(replace(last, delta=None) if isinstance(last, Finished) else last)
        body = _ended(body, last)
    then = Run(row=replace(run.row, head=old), body=run.body)
    take_up(
        opened.committer,
        reader.seals,
        reader.history(then),
        opened.records.tail(old),
        body=body,
        entry=Resumed(now, run.row.epoch + 1, holder, run.body.version),
        more=more,
    )
    known = {take.key: take for take in rolled.takes}
    return [
        replace(named(reader, known[entry.key]), how=entry.how)
        for entry in gone
        if entry.key in known and entry.how in TAKEN_BACK
    ]


def _newest(opened: Opened, run: Run) -> tuple[RolledBack, list[Undone]]:
    """The rollback that made the present head, and what it took back."""
    gone: list[Undone] = []
    own = {branch.no for branch in opened.reader.branches(run)}
    for placed in opened.reader.back(run.row.head):
        for entry in reversed(placed.row.entries):
            if isinstance(entry, Undone):
                gone.append(entry)
            if isinstance(entry, RolledBack) and branch_of(placed.id) in own:
                return entry, gone
    msg = f"run {run.body.id} was not rolled back; there is nothing to go back to"
    raise UsageError(msg)


def _ended(body: RunBody, last: Finished | Failed) -> RunBody:
    if isinstance(last, Finished):
        return replace(body, status=Status.FINISHED, ended=last.at)
    error = f"{last.error.name}: {last.error.message}"
    return replace(body, status=Status(last.status), ended=last.at, error=error)
