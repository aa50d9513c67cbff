"""A run that nothing may recover by itself is recorded as a person's to look at."""

import msgspec

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.engine.faults import describe, to_error
from holdfast.engine.launch import Launcher
from holdfast.errors import Escalated, RunHeld
from holdfast.model.journal import Decided, Entry, Failed
from holdfast.model.run import Status
from holdfast.store.open import Opened
from holdfast.store.reader import Run as StoredRun


def escalate(
    opened: Opened, launcher: Launcher, clock: Clock, run: StoredRun, decided: Decided
) -> Escalated:
    """Record the decision under a new epoch; returns the error to raise.

    From then on nobody restarts the run by itself: not another supervisor, not a watch.
    """
    if not opened.leases.take(run.row.no):
        raise RunHeld(run.body.id, str(run.body.holder), "its start")
    try:
        error = Escalated(run.body.id, decided.failure.what, decided.decision.reason)
        now, recorded = clock.now(), to_error(error)
        writer = launcher.take(run, run.body.version)
        body = msgspec.structs.replace(
            writer.run.body, status=Status.FAILED, ended=now, error=describe(recorded)
        )
        entries: list[Entry] = [decided, Failed(now, str(Status.FAILED), recorded)]
        _, ticket = writer.submit(entries, body=body)
        failpoint.reach("escalation.recording")
        writer.finish(ticket)
        failpoint.reach("escalation.recorded")
        return error
    finally:
        opened.leases.give(run.row.no)
