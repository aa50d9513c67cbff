"""What saves took of a run: how long each held it up, and the bytes of state that it recorded."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from holdfast.model.journal import Based, Entry, Kept, Saved, TurnEnded
from holdfast.store.reference import length

ASKED = "asked"
"""The agent itself asked for the checkpoint."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint or snapshot; `granularity` is the rule that asked for it, in a word.

    `blocked_s` is the part of its cost that it measured itself, so it is at least that.
    """

    mode: str
    granularity: str
    blocked_s: float


def held_of(entries: Iterable[Entry]) -> Iterator[Held]:
    """Every save that measured itself."""
    for entry in entries:
        match entry:
            case TurnEnded() if entry.mark is not None:
                yield _held(entry, "turns", only=None)
            case Kept():
                yield _held(entry, entry.why, only=entry.only)
            case Saved():
                yield _held(entry, ASKED, only=entry.only)
            case _:
                pass


def bytes_of(entries: Iterable[Entry]) -> Counter[str]:
    """The bytes of state that saves recorded, before packing: whole, changes, or some sections."""
    found: Counter[str] = Counter()
    for entry in entries:
        match entry:
            case TurnEnded():
                found["change"] += length(entry.delta or b"")
            case Kept():
                found["change"] += length(entry.delta or b"")
                found["snapshot"] += length(entry.state or b"")
            case Saved():
                found["change"] += length(entry.delta or b"")
                found["whole" if entry.only is None else "snapshot"] += length(entry.state or b"")
            case Based():
                found["whole"] += length(entry.state)
            case _:
                pass
    return found


def _held(entry: TurnEnded | Kept | Saved, granularity: str, *, only: list[str] | None) -> Held:
    assert entry.mark is not None
    mode = "checkpoint" if only is None else "snapshot"
    return Held(mode=mode, granularity=granularity, blocked_s=entry.mark.blocked_s)
