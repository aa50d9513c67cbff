"""Forks, rollbacks, and what became of effects in them, as a timeline tells them."""

import contextlib
import datetime as dt
from collections.abc import Iterable

from msgspec.structs import replace

from holdfast.errors import StoreError
from holdfast.model.branches import (
    Allowed,
    Forked,
    Retaken,
    Retaking,
    Returned,
    RolledBack,
    Settled,
    Undoing,
)
from holdfast.model.ids import branch_of
from holdfast.model.journal import Call, Intended, Undone
from holdfast.model.rollback import Take
from holdfast.report.event import Event
from holdfast.report.shown import shown
from holdfast.store.reader import Reader
from holdfast.store.reference import length

Branched = (
    Forked | Undone | Allowed | RolledBack | Undoing | Settled | Returned | Retaking | Retaken
)


def branched(entry: Branched, row: str) -> Event:
    """The event that an entry is."""
    event = Event(kind="forked", row=row, at=_when(entry.at))
    match entry:
        case Undoing() | Undone() | Allowed():
            event = _of_effect(event, entry)
        case Forked():
            event = replace(
                event,
                name=f"from {entry.run}",
                turn=_turn(entry.turn),
                value=entry.reason,
                bytes=length(entry.delta or b""),
            )
        case RolledBack():
            only = f", sections {', '.join(entry.only)}" if entry.only else ""
            name = f"from branch {branch_of(entry.of)}{only}"
            event = replace(
                event, kind="rolled back", name=name, turn=_turn(entry.turn), value=entry.reason
            )
        case Retaking():
            who = "by hand" if entry.is_by_hand else "by their handlers"
            name = f"{len(entry.takes)} of an earlier rollback, {who}"
            event = replace(event, kind="taking back again", name=name)
        case Retaken():
            event = replace(event, kind="taken back again")
        case Settled():
            event = replace(event, kind="settled", turn=_turn(entry.turn), value=shown(entry.note))
        case Returned():
            name = f"from branch {branch_of(entry.of)}"
            event = replace(event, kind="returned", name=name, value=entry.reason)
    return event


def effects_of(reader: Reader, takes: Iterable[Take]) -> dict[str, str]:
    """The effects that are taken back, in words by their keys: they stand on another branch.

    One whose row cannot be read stays without a name; what the head holds is told all the same.
    """
    found = dict[str, str]()
    for take in takes:
        with contextlib.suppress(StoreError):
            meant = reader.row(take.row).row.entries[take.index]
            if isinstance(meant, Intended):
                found[take.key] = called(meant.call)
    return found


def called(call: Call) -> str:
    """A call in words."""
    return f"{call.name}({', '.join(f'{each.name}={each.brief}' for each in call.asked)})"


def _of_effect(event: Event, entry: Undoing | Undone | Allowed) -> Event:
    """What was said of an effect, by its key."""
    match entry:
        case Undoing():
            return replace(event, kind="taking back", key=entry.key, name=entry.how)
        case Undone():
            failed = entry.error
            return replace(
                event,
                kind="taken back",
                key=entry.key,
                outcome=entry.how,
                took_s=entry.took_s,
                error=None if failed is None else f"{failed.name}: {failed.message}",
            )
        case Allowed():
            return replace(event, kind="allowed", key=entry.key, value=entry.reason)


def _when(at: float) -> dt.datetime | None:
    try:
        return dt.datetime.fromtimestamp(at, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _turn(turn: int) -> int | None:
    return turn if turn >= 0 else None
