"""A run removed from its store: not while anybody works on it, grows from it or took it up."""

from holdfast.store.backends import sweep
from holdfast.store.gc import pins
from holdfast.store.graves import Grave, note_of
from holdfast.store.open import Opened
from holdfast.store.reader import Run


def remove(
    opened: Opened, run: Run, grave: Grave | None = None, *, owner: Run | None = None
) -> bool:
    """Remove a run as it was read; False if it was taken up, forked or pinned since, and stays.

    With a `grave` the store remembers that it was erased. It stays too if the `owner` of its
    ledger, which is to go as well, was taken up since.
    """
    row = run.row
    with opened.records.alone() as link:
        own = sweep.branches(link, row.no, row.epoch)
        if grave is None and any(pin[0] == row.no for pin in pins.read(link)):
            return False
        if own is None or opened.leases.is_held(row.no):
            return False
        if owner is not None and (
            sweep.epoch_of(link, owner.row.no) != owner.row.epoch
            or opened.leases.is_held(owner.row.no)
        ):
            return False
        # First the note of what was acknowledged: a kill in between leaves it behind, not ahead.
        opened.records.heads.forget(own)
        sweep.remove(link, row.no, own, None if grave is None else note_of(row.kid, grave))
    return True
