"""Saves in the story of a run: ends of turns, checkpoints, snapshots, bases."""

from typing import TypeAlias

from msgspec.structs import replace

from holdfast.model.journal import Based, Kept, Saved, TurnEnded
from holdfast.report.event import Event, when
from holdfast.store.reference import length

Save: TypeAlias = TurnEnded | Saved | Kept | Based


def is_checkpoint(entry: Save) -> bool:
    """Whether the whole state can be found again there by a name."""
    match entry:
        case TurnEnded():
            return entry.mark is not None
        case Saved() | Kept():
            return entry.only is None
        case Based():
            return False


def saved(event: Event, entry: Save, began: float | None) -> Event:
    """The event of a save; `began` is when the turn did."""
    match entry:
        case TurnEnded():
            return replace(
                event,
                kind="turn",
                at=when(entry.at),
                outcome="ended" if entry.mark is None else "checkpoint",
                took_s=None if began is None else max(0.0, entry.at - began),
                bytes=length(entry.delta or b""),
            )
        case Saved():
            bytes_ = length(entry.state or entry.delta or b"")
            kind, name = "checkpoint", entry.mark.label
            if entry.only is not None:
                kind, name = "snapshot", name or ", ".join(entry.only)
            return replace(event, kind=kind, at=when(entry.at), name=name, bytes=bytes_)
        case Kept():
            return replace(
                event,
                kind="checkpoint" if entry.only is None else "snapshot",
                at=when(entry.at),
                name=None if entry.only is None else ", ".join(entry.only),
                how=entry.why,
                bytes=length(entry.state or entry.delta or b""),
            )
        case Based():
            return replace(event, bytes=length(entry.state))
