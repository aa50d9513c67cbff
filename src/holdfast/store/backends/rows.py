"""Rows of the database as the values they stand for."""

from holdfast.store.backends.base import BranchRow, JournalRow, RunRow


def run_row(found: tuple[int, bytes, int, int, bytes, bytes]) -> RunRow:
    """A run of the catalog."""
    no, kid, epoch, head, mac, body = found
    return RunRow(no=no, kid=kid, epoch=epoch, head=head, mac=mac, body=body)


def branch_row(found: tuple[int, int, int, int, bytes, bytes]) -> BranchRow:
    """A line of a run's history."""
    no, run, parent, at, mac, body = found
    return BranchRow(no=no, run=run, parent=parent, at=at, mac=mac, body=body)


def journal_row(found: tuple[int, bytes, bytes]) -> JournalRow:
    """A commit of a run."""
    return JournalRow(id=found[0], mac=found[1], body=found[2])
