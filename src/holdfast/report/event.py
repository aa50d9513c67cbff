"""One thing that happened to a run, as a timeline tells it."""

import datetime as dt

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened; what does not apply, or is not known, is None.

    `kind` is started, resumed, step, effect, note, question, turn, base, checkpoint, redone,
    degraded, pruned, forked, allowed, taken back, finished or failed. An effect is one event
    however often it was tried; `at` is when it was first meant. `row` is the journal row, as errors
    name it.
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
    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
