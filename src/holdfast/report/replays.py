"""How many calls restarts answered from the record instead of making them again."""

from collections import Counter
from collections.abc import Iterable

from holdfast.model.branches import RolledBack
from holdfast.model.journal import (
    Answer,
    Declined,
    Entry,
    Happened,
    Raised,
    Redone,
    Resumed,
    TurnEnded,
)

STEP, EFFECT = "step", "effect"


def replayed(entries: Iterable[Entry]) -> Counter[str]:
    """Calls of the open turn, and those outside turns, at each restart; by kind.

    A restart begins behind the newest turn's end: nothing of the turns before is asked again. Calls
    inside calls are not counted.
    """
    found: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    turn: Counter[str] = Counter()
    again = 0
    for entry in entries:
        match entry:
            case Resumed() if entry.facts is not None:
                found += outside + turn
                again = turn[STEP]
            case Redone():  # The restart just counted asks these steps again; its effects stand.
                found[STEP] -= again
                turn.clear()
            case TurnEnded() | RolledBack():
                turn.clear()
            case Answer() | Raised() | Happened() | Declined():
                kind = STEP if isinstance(entry, Answer | Raised) else EFFECT
                if isinstance(entry.call.scope, int):
                    (turn if entry.call.scope >= 0 else outside)[kind] += 1
            case _:
                pass
    return +found
