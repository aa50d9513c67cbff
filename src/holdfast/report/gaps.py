"""How long calls took, and the time between one and the next: what saving takes, and at most that.

Calls that ran side by side, or one inside another, took their time once: it is that of the clock on
the wall which counts. A stream is a call; each of its records tells how long it has gone on.
"""

import math
from collections.abc import Iterable

from holdfast.model.journal import (
    Answer,
    Answered,
    Decided,
    Declined,
    Entry,
    Failed,
    Happened,
    Questioned,
    Raised,
    Resumed,
    Retried,
    Streamed,
)

_APART = (Raised, Retried, Resumed, Decided, Declined, Failed, Questioned, Answered)


def worked_s(entries: Iterable[Entry]) -> float:
    """How long some call or other was under way."""
    spans = sorted(
        (entry.at - entry.took_s, entry.at)
        for entry in entries
        if isinstance(entry, Answer | Happened | Streamed)
    )
    found: list[float] = []
    end = -math.inf
    for began, ended in spans:
        found.append(max(0.0, ended - max(began, end)))
        end = max(end, ended)
    return math.fsum(found)


def gaps_of(entries: Iterable[Entry]) -> list[float]:
    """Every gap; failures, waits and people in between have times of their own."""
    gaps: list[float] = []
    before: float | None = None
    for entry in entries:
        if isinstance(entry, Answer | Happened | Streamed):
            if before is not None:
                gaps.append(max(0.0, entry.at - entry.took_s - before))
            before = entry.at
        elif isinstance(entry, _APART):
            before = None
    return gaps
