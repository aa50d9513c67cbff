"""Which rows a replay of the code outside turns needs."""

from collections.abc import Sequence

from holdfast.model.journal import Entry, Interrupted, LoopLeft


def is_outside(turn: int, entries: Sequence[Entry]) -> bool:
    """Whether a replay outside turns needs these entries after the turn is over."""
    for entry in entries:
        if type(entry) is LoopLeft:
            return True
        if type(entry) is Interrupted and any(type(s) is int and s < 0 for s, *_ in entry.exits):
            return True
        call = getattr(entry, "call", None)
        if call is not None and (turn if type(call.scope) is bytes else call.scope) < 0:
            return True
    return False
