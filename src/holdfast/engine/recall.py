"""What a life of a run takes over from those before it, besides the state: counts and places."""

from typing import Protocol

from holdfast.engine.outside import is_outside
from holdfast.engine.sections import Sections
from holdfast.model.journal import (
    ENDED,
    Answer,
    Entry,
    Happened,
    Resumed,
    Streamed,
    TurnEnded,
    Usage,
)
from holdfast.model.sections import Declared
from holdfast.policy.parameters import ModelCall
from holdfast.policy.usage import total
from holdfast.store.reader import History


class Life(Protocol):
    """The life that begins."""

    sections: Sections
    outside_rows: list[int]
    bytes_since_base: int
    used: Usage
    steps: int
    model_call: ModelCall | None


def recall(life: Life, history: History) -> None:
    """Take in what the rows of earlier lives say."""
    is_open = False  # Whether the life that wrote these rows wrote any outside turns.
    for placed in [*history.outside, *history.rows]:
        is_next_life = isinstance(placed.row.entries[0], Resumed)
        if is_outside(placed.row.turn, placed.row.entries):
            is_open = True
            life.outside_rows.append(placed.id)
        elif is_open and is_next_life:
            is_open = False
            life.outside_rows.append(placed.id)
    life.bytes_since_base = sum(placed.size for placed in history.rows)
    for placed in history.rows:
        for entry in placed.row.entries:
            _take(life, entry)


def _take(life: Life, entry: Entry) -> None:
    match entry:
        case Declared():
            life.sections.declared = dict(entry.sections)
        case TurnEnded():
            life.used, life.steps = entry.used, entry.steps
            life.model_call = entry.mark or life.model_call
        case Streamed():
            life.steps += entry.how == ENDED
            life.used = total([life.used, Usage(tokens_out=entry.tokens)])
        case Answer() | Happened():
            life.steps += 1
            if entry.usage is not None:
                life.used = total([life.used, entry.usage])
                life.model_call = entry.call, entry.usage
        case _:
            pass
