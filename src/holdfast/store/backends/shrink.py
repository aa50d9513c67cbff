"""A shorter database file: the pages that rows left free when they were packed, given back."""

import contextlib
import sqlite3

from holdfast import failpoint

PAGES_MAX = 256
"""A longer file keeps its free pages for the rows to come: a close does not wait for its copy."""
_FREE_PART = 16
"""Free pages are given back from this part of the file on."""


def shrink(link: sqlite3.Connection, pages_max: int = PAGES_MAX) -> int:
    """Leave out the free pages if that is quick and worth it; says how many pages it logged.

    The last act of a connection. Nothing is lost if it fails or is cut off: then the file is as
    long as it was. A file whose structure is not sound is left as it is, for `repair`.
    """
    pages: int = link.execute("PRAGMA page_count").fetchone()[0]
    free: int = link.execute("PRAGMA freelist_count").fetchone()[0]
    if pages > pages_max or free * _FREE_PART < pages:
        return 0
    # A full disk or a damaged page: the longer file holds all that the shorter one would.
    with contextlib.suppress(sqlite3.Error):
        if link.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok":
            link.execute("PRAGMA temp_store=MEMORY")
            # What a power cut could take is the copy, not what was copied: no flush of its own.
            link.execute("PRAGMA synchronous=NORMAL")
            failpoint.reach("store.shrinking")
            link.execute("VACUUM")
            failpoint.reach("store.shrunk")
    return pages
