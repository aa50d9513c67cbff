"""Large values that no row names: found, looked for again while nobody commits, then removed.

A writer keeps a value first and names it in a row later. So a value that nobody names may be about
to be named. Two things make it safe to remove one all the same: the rows that came since are read
again while no commit can happen, and a commit that names a value which is gone writes it again
(`Records.commit`, `objects`). Leaving out either loses data; a test goes through every schedule.
"""

from collections.abc import Container

from holdfast import failpoint
from holdfast.store.inside import references_of
from holdfast.store.open import Opened
from holdfast.store.reader import Run, first_row
from holdfast.store.steady import of_each

BATCH = 64
"""Values that are removed while others wait to commit."""


class Named:
    """The large values that the rows of a store name, as far as they were read.

    For a plan, `runs` (by number) and `rows` that are to go count as gone.
    """

    def __init__(
        self, opened: Opened, *, runs: Container[int] = (), rows: Container[int] = ()
    ) -> None:
        self._opened, self._runs_gone, self._rows_gone = opened, runs, rows
        self._read: dict[int, int] = {}  # branch → its newest row that was read
        self.names: set[bytes] = set()

    def read_on(self) -> None:
        """Take in every row that was committed since the last time."""
        reader = self._opened.reader
        runs = (run for run in reader.runs() if run.row.no not in self._runs_gone)
        for _ in of_each(reader, runs, self._read_run):
            pass

    def _read_run(self, run: Run) -> None:
        reader, chunks = self._opened.reader, self._opened.chunks
        for branch in reader.branches(run, with_ledger=True):
            start = self._read.get(branch.no, first_row(branch) - 1) + 1
            end = reader.end(branch.no)
            for placed in reader.rows(branch.no, start, end) if start <= end else ():
                if placed.id in self._rows_gone:
                    continue
                for entry in placed.row.entries:
                    for reference in references_of(entry, chunks.fetch):
                        self.names.update(chunks.names(reference))
            self._read[branch.no] = end  # Last: what is cut off is read again.


def unnamed(opened: Opened, named: Named) -> list[bytes]:
    """The names of large values that no row names at this moment."""
    named.read_on()
    return [name for name in opened.objects.ids() if name not in named.names]


def remove(opened: Opened, named: Named, names: list[bytes]) -> list[bytes]:
    """Remove those of `names` that still nobody names; says which."""
    gone: list[bytes] = []
    for start in range(0, len(names), BATCH):
        with opened.records.alone():
            named.read_on()
            for name in names[start : start + BATCH]:
                if name not in named.names:
                    failpoint.reach("gc.removing")
                    opened.objects.remove(name)
                    failpoint.reach("gc.removed")
                    gone.append(name)
    return gone
