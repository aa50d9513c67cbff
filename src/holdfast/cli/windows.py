"""A window of time as people say it: by ages (30d, 12h) or by dates (2026-11-01)."""

import datetime as dt
from dataclasses import dataclass

from holdfast.errors import UsageError
from holdfast.model.limits import seconds
from holdfast.report.facts import Window


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """When a window begins and ends: an age in seconds, or a moment; None is open."""

    since: float | dt.datetime | None
    until: float | dt.datetime | None

    def before(self, now: float) -> Window:
        """The same in seconds since the epoch: ages move with `now`, dates do not."""
        return Window(since=_at(self.since, now), until=_at(self.until, now))


def window_said(since: str | None, until: str | None, now: float) -> Said:
    """What `--since` and `--until` say; `UsageError` where nothing lies between them."""
    found = Said(since=_edge("--since", since), until=_edge("--until", until))
    window = found.before(now)
    if window.since is not None and window.until is not None and window.since >= window.until:
        msg = (
            f"--since {since} --until {until} leaves no time between them; --since is the longer "
            "ago: --since 60d --until 30d"
        )
        raise UsageError(msg)
    return found


def _edge(name: str, text: str | None) -> float | dt.datetime | None:
    if text is None:
        return None
    try:
        return seconds(text)
    except ValueError:
        pass
    try:  # Without a zone it is this machine's, as times are printed.
        return dt.datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        msg = (
            f"{name}: {text!r} is no age (30d, 12h, 5m) and no date (2026-11-01, 2026-11-01T08:00)"
        )
        raise UsageError(msg) from None


def _at(edge: float | dt.datetime | None, now: float) -> float | None:
    if isinstance(edge, dt.datetime):
        return edge.timestamp()
    return None if edge is None else now - edge
