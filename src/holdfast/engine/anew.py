"""Rows that a repair makes anew, behind the healthy beginning of a branch."""

from holdfast.model.journal import Entry, Row
from holdfast.store.backends.base import JournalRow
from holdfast.store.reader import Placed
from holdfast.store.repair.sift import Sifted
from holdfast.store.seal.base import RunSeals
from holdfast.store.writer import make_row


class Tail:
    """Rows that are made anew, chained behind the healthy beginning of a branch."""

    def __init__(self, seals: RunSeals, head: Sifted) -> None:
        self._seals, self._mac = seals, head.mac
        self.next = head.end + 1
        self.base = -1
        self.rows: list[JournalRow] = []
        self.placed: list[Placed] = []

    def add(self, entries: list[Entry], base: int) -> None:
        """One more row."""
        content = Row(base, -1, entries)
        row = make_row(self._seals, self.next, self._mac, content)
        self.rows.append(row)
        self.placed.append(Placed(id=row.id, mac=row.mac, size=len(row.body), row=content))
        self.next, self._mac, self.base = row.id + 1, row.mac, base

    @property
    def entries(self) -> list[Entry]:
        """All that was added."""
        return [entry for placed in self.placed for entry in placed.row.entries]

    @property
    def last(self) -> Entry | None:
        """The newest entry."""
        return self.placed[-1].row.entries[-1] if self.placed else None
