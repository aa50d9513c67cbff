"""A run removed from its store: not while anybody works on it, grows from it or took it up."""

from holdfast.store.backends import sweep
from holdfast.store.open import Opened
from holdfast.store.reader import Run


def remove(opened: Opened, run: Run) -> bool:
    """Remove a run as it was read; False if it was taken up or forked since, and stays."""
    row = run.row
    with opened.records.alone() as link:
        own = sweep.branches(link, row.no, row.epoch)
        if own is None or opened.leases.is_held(row.no):
            return False
        # First the note of what was acknowledged: a kill in between leaves it behind, not ahead.
        opened.records.heads.forget(own)
        sweep.remove(link, row.no, own)
    return True
