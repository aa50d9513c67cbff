"""A rollback whose end is lost: how a repair ends it, and which undos nobody knows of any more."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.model.branches import Retaken, Retaking, RolledBack, Settled
from holdfast.model.failure import REPAIRED
from holdfast.model.journal import Entry, Error, Failed, Finished, Undone
from holdfast.model.rollback import Take
from holdfast.model.run import Status
from holdfast.store.codec import values

_LOST = "its record is damaged: look whether it was taken back"


class CutOff(NamedTuple):
    """What ends a rollback; the effects that it may have taken back or not; what a person reads."""

    entries: Sequence[Entry]
    unknown: Sequence[Take]
    told: Sequence[str]


def end_rollback(entries: Iterable[Entry], name: Callable[[Take], str], now: float) -> CutOff:
    """What is to follow these entries of a head, so that no rollback is under way on it.

    None is gone on with: what it undid after what is left of it would be undone twice.
    """
    begun: RolledBack | Retaking | None = None
    ended: list[Entry] = []
    known: set[str] = set()
    for entry in entries:
        match entry:
            case RolledBack() | Retaking():
                begun, known = entry, set()
            case Undone():
                known.add(entry.key)
            case Settled() | Retaken():
                begun = None
            case Finished():
                ended = [replace(entry, delta=None)]
            case Failed():
                ended = [entry]
            case _:
                pass
    if begun is None:
        return CutOff([], [], [])
    unknown = [take for take in begun.takes if take.key not in known]
    told = [f"the undo of {name(take)}" for take in unknown]
    error = Error("holdfast", REPAIRED, _LOST)
    undone = [Undone(take.key, "unknown", now, 0.0, error) for take in unknown]
    if isinstance(begun, Retaking):  # The run stands as it stood.
        again = ended if begun.status != Status.RUNNING else []
        return CutOff([*undone, Retaken(now), *again], unknown, told)
    if begun.only:
        told.append(f"the rollback of {', '.join(begun.only)}")
    note = values.encode({"reason": begun.reason, "unknown": told})
    return CutOff([*undone, Settled(now, begun.turn, None, note)], unknown, told)
