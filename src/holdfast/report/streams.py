"""Streams in the story of a run: one event for each call of one, however many records it has."""

from msgspec.structs import replace

from holdfast.model.journal import ENDED, Streamed
from holdfast.policy.parameters import used_by
from holdfast.report.event import Event, when
from holdfast.store.reference import length

OPEN, ANEW = "not over", "partial; was begun anew"


def streamed(event: Event, entry: Streamed) -> Event:
    """The event with one more record of its stream."""
    return replace(
        event,
        at=event.at or when(entry.at),
        outcome={ENDED: "answered", "": OPEN}.get(entry.how, entry.how),
        took_s=entry.took_s,
        attempts=entry.attempt,
        count=(event.count or 0) + entry.count,
        bytes=(event.bytes or 0) + length(entry.items),
        model=used_by(entry).model,
        tokens_out=(event.tokens_out or 0) + entry.tokens,
    )


def superseded(event: Event) -> Event:
    """The event of a partial answer that counts no more; what it cost stays."""
    return replace(event, outcome=ANEW)
