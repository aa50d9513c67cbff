"""Runs removed from their store: not while anybody works on one, grows from it or took it up."""

from collections.abc import Sequence
from itertools import chain

from holdfast.store.backends import sweep
from holdfast.store.gc import pins
from holdfast.store.graves import Grave, note_of
from holdfast.store.open import Opened
from holdfast.store.reader import Run


def remove(opened: Opened, doomed: Sequence[Run], grave: Grave | None = None) -> bool:
    """Remove runs as they were read; False if one was taken up, forked or pinned since: all stay.

    All in one commit: what shares a ledger goes together, or a run that stays would not know what
    the others did. With a `grave` the store remembers that they were erased.
    """
    numbers = [run.row.no for run in doomed]
    own: dict[int, list[int]] = {}
    with opened.records.alone() as link:
        if grave is None and any(pin[0] in numbers for pin in pins.read(link)):
            return False
        for run in doomed:
            row = run.row
            found = sweep.branches(link, row.no, row.epoch, beside=numbers)
            if found is None or opened.leases.is_held(row.no):
                return False
            own[row.no] = found
        # First the note of what was acknowledged: a kill in between leaves it behind, not ahead.
        opened.records.heads.forget(chain.from_iterable(own.values()))
        notes = [] if grave is None else [note_of(run.row.kid, grave) for run in doomed]
        sweep.remove(link, own, notes)
    return True
