"""A person's word on an effect in doubt, recorded as its outcome."""

import msgspec

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.engine.launch import Launcher
from holdfast.errors import RunHeld, UsageError
from holdfast.model.journal import Call, Declined, Entry, Happened, Intended
from holdfast.model.run import Status
from holdfast.store.codec import values
from holdfast.store.open import Opened
from holdfast.store.reader import History
from holdfast.store.reader import Run as StoredRun


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the effect with this key happened, and what it gave back if it did."""

    key: str
    happened: bool
    outcome: object = None


def resolve(
    opened: Opened, launcher: Launcher, clock: Clock, run: StoredRun, verdict: Verdict
) -> None:
    """Record the verdict under a new epoch; the run can then be restarted."""
    if not opened.leases.take(run.row.no):
        raise RunHeld(run.body.id, str(run.body.holder), "its start")
    try:
        call = doubts(opened.reader.history(run)).get(verdict.key)
        if call is None:
            msg = f"run {run.body.id} has no effect in doubt with key {verdict.key}"
            raise UsageError(msg)
        entry = _entry(opened, call, verdict, clock.now())
        writer = launcher.take(run, run.body.version)
        body = msgspec.structs.replace(writer.run.body, status=Status.RUNNING)
        _, ticket = writer.submit([entry], body=body)
        failpoint.reach("doubt.resolving")
        writer.finish(ticket)
        failpoint.reach("doubt.resolved")
    finally:
        opened.leases.give(run.row.no)


def doubts(history: History) -> dict[str, Call]:
    """The effects of a run with an intent and no outcome, by key."""
    open_: dict[str, Call] = {}
    for placed in [*history.outside, *history.rows]:
        for entry in placed.row.entries:
            if isinstance(entry, Intended):
                open_[entry.key] = entry.call
            elif isinstance(entry, Happened | Declined):
                open_.pop(entry.key, None)
    return open_


def _entry(opened: Opened, call: Call, verdict: Verdict, now: float) -> Entry:
    if verdict.happened:
        value = opened.chunks.keep(values.encode(verdict.outcome, path="the outcome"))
        return Happened(call, verdict.key, value, now, 0.0, "person", None)
    return Declined(call, verdict.key, None, now, 0.0, "person")
