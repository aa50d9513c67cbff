"""Whether the catalog of runs agrees with itself.

That is asked before a run is said to be absent: an absent run would be started anew.
"""

import sqlite3
from typing import Any

from holdfast.errors import Damaged
from holdfast.store.backends import schema

UNFILED = (
    "SELECT no FROM run AS known NOT INDEXED WHERE {span}NOT EXISTS (SELECT 1 FROM run AS filed "
    "INDEXED BY sqlite_autoindex_run_1 WHERE filed.kid=known.kid AND filed.no=known.no) LIMIT 1"
)
"""A run that its own id does not find: the index is damaged."""
UNLISTED = (
    "SELECT run FROM branch {how} "
    "WHERE {span}NOT EXISTS (SELECT 1 FROM run WHERE run.no=branch.run) LIMIT 1"
)
"""A run of which only branches are left: its own row is lost."""


STRAY = (
    "SELECT run FROM branch AS known NOT INDEXED WHERE NOT EXISTS (SELECT 1 FROM branch AS filed "
    "INDEXED BY branch_run WHERE filed.run=known.run AND filed.no=known.no) LIMIT 1"
)
"""A branch that its run does not find: the index is damaged."""
ROOTLESS = (
    "WITH RECURSIVE known(no) AS (SELECT min(id) >> 32 FROM {rows} UNION "
    "SELECT (SELECT min(id) >> 32 FROM {rows} WHERE id >= (no + 1) << 32) FROM known "
    "WHERE no IS NOT NULL) "
    "SELECT no FROM known WHERE no IS NOT NULL AND no NOT IN (SELECT no FROM branch) LIMIT 1"
)
"""A branch of which only rows are left; one look for each branch, however many rows it has.

No branch twice: where keys are out of order, a look may lead back, and would never end.
"""
NOT_FOUND = "run number {} is there and is not found by its id"
NOT_LISTED = "run number {} is there and is not listed"
CHECKS = {
    UNFILED.format(span=""): NOT_FOUND,
    UNLISTED.format(how="NOT INDEXED", span=""): NOT_LISTED,
    STRAY: "run number {} is there and does not find all of its branches",
    ROOTLESS.format(rows="j"): "branch {} has rows and is not listed",
    ROOTLESS.format(rows="pack"): "branch {} has packed rows and is not listed",
}


LISTED = {
    UNFILED.format(span="no BETWEEN ? AND ? AND "): NOT_FOUND,
    UNLISTED.format(how="INDEXED BY branch_run", span="run BETWEEN ? AND ? AND "): NOT_LISTED,
}
"""The same of the runs on one page of a list, which costs what the page does."""


def check(link: sqlite3.Connection, span: tuple[int, int] | None = None) -> None:
    """Raise `Damaged` unless runs and branches are found by every way that leads to them.

    With a `span` of run numbers only of these, and only of what a list of them would leave out.
    """
    for sql, why in (CHECKS if span is None else LISTED).items():
        found = link.execute(sql, span or ()).fetchone()
        if found is not None:
            raise Damaged("catalog of runs", why.format(found[0]))


def branches(link: sqlite3.Connection, run: int) -> list[tuple[Any, ...]]:
    """Every branch of a run, oldest first; `Damaged` where its index names one that is not its own.

    `STRAY` does not see that: SQLite finds an entry by its first bytes and takes the number of the
    row from its last, and which these are depends on a length that may be damaged.
    """
    found = link.execute(schema.BRANCHES_OF_RUN, (run,)).fetchall()
    before = 0
    for no, owner, *_ in found:
        if owner != run or no <= before:
            why = f"run number {run} finds a branch that is not its own"
            raise Damaged("catalog of runs", why)
        before = no
    return found
