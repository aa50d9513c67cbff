"""How long a run lay at rest: over, waiting for a person, cancelled or put down, then gone on with.

Such time is neither work nor an outage: nothing was running that could have failed.
"""

import math
from collections.abc import Iterable, Sequence

from holdfast.model.journal import Entry, Failed, Finished, Interrupted, Resumed
from holdfast.report.episodes import NO_FAILURE, Episode


def rested_s(entries: Iterable[Entry], failures: Sequence[Episode]) -> float:
    """The time between such an end and the life that went on; what lies in an outage is one."""
    found: list[tuple[float, float]] = []
    since: float | None = None
    for entry in entries:
        match entry:
            case Finished() | Interrupted():
                since = entry.at
            case Failed():
                since = entry.at if entry.status in NO_FAILURE else None
            case Resumed() if since is not None and entry.facts is not None:
                found.append((since, entry.at))
                since = None
    return math.fsum(
        max(0.0, until - since)
        for since, until in found
        if not any(_is_down(each, since) for each in failures)
    )


def _is_down(failure: Episode, at: float) -> bool:
    ended = failure.resumed_at
    return failure.failed_at <= at and (ended is None or at < ended)
