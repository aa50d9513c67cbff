"""A person's word on an effect: that it happened or not, or that it may pass the fence."""

import contextlib
import datetime as dt

import msgspec

from holdfast import failpoint
from holdfast.clock import Clock
from holdfast.engine import tools
from holdfast.engine.faults import to_exception
from holdfast.engine.fitted import fitted
from holdfast.engine.launch import Launcher
from holdfast.engine.outcomes import Fates
from holdfast.errors import AlreadyAnswered, Blocked, RunHeld, UsageError
from holdfast.model.branches import Allowed
from holdfast.model.ids import branch_of
from holdfast.model.journal import (
    Declined,
    Entry,
    Failed,
    Happened,
    Intended,
)
from holdfast.model.run import Status
from holdfast.store.codec import values
from holdfast.store.codec.veil import redact
from holdfast.store.marks import intent_mark, marks_of
from holdfast.store.open import Opened
from holdfast.store.reader import History, Reader, first_row
from holdfast.store.reader import Run as StoredRun


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the effect with this key happened, what it gave back if it did, and who says so."""

    key: str
    happened: bool
    outcome: object = None
    by: str | None = None


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """The effect that may pass the fence, by its key or how that begins, and why."""

    key: str
    reason: str | None = None


def resolve(
    opened: Opened, launcher: Launcher, clock: Clock, run: StoredRun, verdict: Verdict
) -> None:
    """Record the verdict under a new epoch; the run can then be restarted.

    A fork or child of a fork may be in doubt of the very same effect: it is told too, unless
    somebody is at work on it.
    """
    found = _record(opened, launcher, clock, run, verdict)
    rows = opened.reader.intended(run.ledger, intent_mark(found.call, found.module))
    owners = {branch: opened.reader.owner(branch) for branch in map(branch_of, rows)}
    for other in {owner.row.no: owner for owner in owners.values()}.values():
        if other.row.no != run.row.no and other.body.status in (Status.IN_DOUBT, Status.RUNNING):
            with contextlib.suppress(RunHeld, UsageError):
                _record(opened, launcher, clock, other, verdict)


def _record(
    opened: Opened, launcher: Launcher, clock: Clock, run: StoredRun, verdict: Verdict
) -> Intended:
    """Record the verdict in one run; gives the effect that it is about."""
    if not opened.leases.take(run.row.no):
        raise RunHeld(run.body.id, str(run.body.holder), "its start")
    try:
        history = opened.reader.history(run)
        found = doubts(history).get(verdict.key)
        if found is None:
            raise _settled(history, verdict.key)
        entry = _entry(opened, run, found, verdict, clock.now())
        writer = launcher.take(run, run.body.version)
        body = msgspec.structs.replace(writer.run.body, status=Status.RUNNING)
        _, ticket = writer.submit([entry], body=body)
        failpoint.reach("doubt.resolving")
        writer.finish(ticket)
        failpoint.reach("doubt.resolved")
        return found
    finally:
        opened.leases.give(run.row.no)


def allow(opened: Opened, launcher: Launcher, clock: Clock, run: StoredRun, permit: Permit) -> None:
    """Record that the effect which the fence stopped may be done; the run can then go on."""
    reader = opened.reader
    last = reader.row(reader.end(run.row.head)).row.entries[-1]
    key = _blocked_key(last)
    if key is None or not permit.key or not key.startswith(permit.key):
        known = "none" if key is None else key
        msg = f"run {run.body.id} has no blocked effect with key {permit.key} (blocked: {known})"
        raise UsageError(msg)
    if not opened.leases.take(run.row.no):
        raise RunHeld(run.body.id, str(run.body.holder), "its start")
    try:
        writer = launcher.take(run, run.body.version)
        allowed = Allowed(key, clock.now(), permit.reason)
        _, ticket = writer.submit([allowed], intents=tuple(marks_of(allowed)))
        failpoint.reach("fence.opening")
        writer.finish(ticket)
        failpoint.reach("fence.opened")
    finally:
        opened.leases.give(run.row.no)


def _blocked_key(last: Entry) -> str | None:
    """The key of the effect that the fence stopped, if that is how the run ended."""
    if not isinstance(last, Failed) or last.status != Status.BLOCKED:
        return None
    error = to_exception(last.error)
    return error.key if isinstance(error, Blocked) else None


def doubts(history: History) -> dict[str, Intended]:
    """The effects of a run with an intent and no outcome, by key."""
    open_: dict[str, Intended] = {}
    for placed in [*history.outside, *history.rows]:
        for entry in placed.row.entries:
            if isinstance(entry, Intended):
                open_[entry.key] = entry
            elif isinstance(entry, Happened | Declined):
                open_.pop(entry.key, None)
    return open_


def verdicts(reader: Reader, run: StoredRun) -> list[tuple[Intended | None, Happened | Declined]]:
    """What people said of effects of a run, on whichever branch, newest first; and what was meant.

    The intent is not given where it is another run's, from which this one was forked.
    """
    if run.row.epoch == 1:
        return []  # A word is recorded under a new epoch: most runs need not be read.
    meant: dict[str, Intended] = {}
    found: list[tuple[Intended | None, Happened | Declined]] = []
    for branch in reader.branches(run):
        for placed in reader.rows(branch.no, first_row(branch), reader.end(branch.no)):
            for entry in placed.row.entries:
                if isinstance(entry, Intended):
                    meant[entry.key] = entry
                elif isinstance(entry, Happened | Declined) and entry.how == "person":
                    found.append((meant.get(entry.key), entry))
    return found[::-1]


def _settled(history: History, key: str) -> UsageError:
    """There is no such doubt: who settled it, if it was one."""
    for placed in reversed([*history.outside, *history.rows]):
        for entry in placed.row.entries:
            if isinstance(entry, Happened | Declined) and entry.key == key:
                word = "happened" if isinstance(entry, Happened) else "not done"
                at = f"{dt.datetime.fromtimestamp(entry.at, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
                return AlreadyAnswered(key, f"settled as {word}", entry.by or entry.how, at)
    return UsageError(f"run {history.run.body.id} has no effect in doubt with key {key}")


def _entry(opened: Opened, run: StoredRun, meant: Intended, verdict: Verdict, now: float) -> Entry:
    by, call = verdict.by and redact(verdict.by), meant.call
    if not verdict.happened:
        return Declined(call, verdict.key, None, now, 0.0, "person", by)
    value = _known(opened, run, meant) if verdict.outcome is None else None
    if value is None:
        spec = tools.find(call.name, meant.module)
        outcome = verdict.outcome if spec is None else fitted(spec.fn, verdict.outcome)
        value = opened.chunks.keep(values.encode(outcome, path="the outcome"))
    return Happened(call, verdict.key, value, now, 0.0, "person", None, by)


def _known(opened: Opened, run: StoredRun, meant: Intended) -> bytes | None:
    """The outcome that another line recorded, of an effect that may have been taken back since."""
    fates, mark = Fates(opened.reader, run.ledger), intent_mark(meant.call, meant.module)
    same = [each for each in fates.entered(fates.rows(mark)) if each.meant.key == meant.key]
    found = fates.of(same[0]) if same else None
    return found.value if isinstance(found, Happened) else None
