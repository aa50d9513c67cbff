"""The time between one call of a run and the next: what saving takes, and at most that."""

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
)

_APART = (Raised, Retried, Resumed, Decided, Declined, Failed, Questioned, Answered)


def gaps_of(entries: Iterable[Entry]) -> list[float]:
    """Every gap; failures, waits and people in between have times of their own."""
    gaps: list[float] = []
    before: float | None = None
    for entry in entries:
        if isinstance(entry, Answer | Happened):
            if before is not None:
                gaps.append(max(0.0, entry.at - entry.took_s - before))
            before = entry.at
        elif isinstance(entry, _APART):
            before = None
    return gaps
