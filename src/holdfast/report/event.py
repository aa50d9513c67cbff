"""One thing that happened to a run, as a timeline tells it."""

import datetime as dt
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from holdfast.model.decision import Decision
from holdfast.model.failure import Failure
from holdfast.model.journal import (
    Decided,
    Failed,
    Finished,
    Interrupted,
    Redone,
    Retried,
)
from holdfast.model.secrets import Exposed, Incomplete, Redacted

Single: TypeAlias = Finished | Failed | Redone | Redacted | Incomplete | Exposed
"""Entries that are one event each, whatever came before."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened; what does not apply, or is not known, is None.

    `kind` is started, resumed, step, stream, child, effect, note, question, turn, base, checkpoint,
    snapshot, redacted, exposed, redone, degraded, pruned, forked, aborted, rolled back,
    taking back, taken back, settled, returned, allowed, finished, failed, retry,
    decision or interrupted. An effect is one event however often it was tried, and so is a call of
    a stream; `at` is when it was first meant. `row` is the journal row, as errors name it.
    """

    kind: str
    row: str
    at: dt.datetime | None = None
    turn: int | None = None
    name: str | None = None
    asked: str | None = None
    is_inside: bool = False
    outcome: str | None = None
    how: str | None = None
    key: str | None = None
    attempts: int | None = None
    value: str | None = None
    error: str | None = None
    took_s: float | None = None
    bytes: int | None = None
    count: int | None = None
    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    failure: Failure | None = None
    decision: Decision | None = None


def judged(event: Event, entry: Retried | Decided | Interrupted) -> Event:
    """A failure and what was decided about it, or that a person called the run off."""
    if isinstance(entry, Interrupted):
        return replace(event, kind="interrupted", at=when(entry.at), name=entry.why)
    if isinstance(entry, Retried):
        event = replace(event, attempts=entry.attempt, took_s=entry.took_s)
    else:
        event = replace(event, turn=entry.turn if entry.turn >= 0 else None, how=entry.by)
    return replace(
        event,
        at=when(entry.at),
        outcome=entry.decision.action,
        error=entry.failure.what,
        failure=entry.failure,
        decision=entry.decision,
    )


def when(at: float) -> dt.datetime | None:
    """A recorded time for people; None where no calendar has it."""
    try:
        return dt.datetime.fromtimestamp(at, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return None
