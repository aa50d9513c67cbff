"""Effects in doubt, as the story of a run lists them."""

import datetime as dt
from collections.abc import Iterable

import msgspec

from holdfast.report.event import Event


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """An effect with a recorded intent and no recorded outcome."""

    key: str
    effect: str
    asked: str
    turn: int | None
    since: dt.datetime | None


def doubts_in(events: Iterable[Event]) -> list[Doubt]:
    """The effects of a story whose outcome is not known."""
    return [_doubt(event) for event in events if _is_doubtful(event)]


def _is_doubtful(event: Event) -> bool:
    return event.kind == "effect" and event.outcome == "in doubt"


def _doubt(event: Event) -> Doubt:
    return Doubt(
        key=event.key or "",
        effect=event.name or "",
        asked=event.asked or "",
        turn=event.turn,
        since=event.at,
    )
