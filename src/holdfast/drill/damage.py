"""Damage to a store while its run has no process: through SQLite, which others have open."""

import contextlib
import random
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.drill.ledger import Ledger, Line
from holdfast.model.journal import Intended, Saved, TurnEnded
from holdfast.report.episodes import PROGRESS
from holdfast.store.backends.sqlite import FILE
from holdfast.store.reader import Reader


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """What can be done to the stored bytes of one run; done, it is told to the outside ledger."""

    store: Path
    run: str
    reader: Reader
    ledger: Ledger

    def flip_any(self, rows: Sequence[int], chance: random.Random) -> None:
        """Flip one bit of one of the rows that can be reached, if there is any."""
        if not rows:
            return
        had, first = self._progress(), chance.choice(rows)
        if any(self.flip(row, chance) for row in (first, *reversed(rows))):
            self.ledger.add(Line(what="damaged", counts={"had": had}))

    def _progress(self) -> int:
        """How far the run has come, in answers and turns, as episodes count it."""
        run = self.reader.find(self.run)
        if run is None:
            return 0
        head = run.row.head
        rows = self.reader.rows(head, self.reader.first(head), self.reader.end(head))
        return sum(isinstance(each, PROGRESS) for placed in rows for each in placed.row.entries)

    def checkpoints(self, *, is_free: bool = False) -> list[int]:
        """The rows that checkpoints of the run's head stand in.

        Those that are free have no effect in them or after them.
        """
        run = self.reader.find(self.run)
        if run is None:
            return []
        head = run.row.head
        found: list[int] = []
        for placed in self.reader.rows(head, self.reader.first(head), self.reader.end(head)):
            entries = placed.row.entries
            if any(isinstance(each, TurnEnded | Saved) and each.mark for each in entries):
                found.append(placed.id)
            if is_free and any(isinstance(each, Intended) for each in entries):
                found = []
        return found

    def flip(self, row: int, chance: random.Random) -> bool:
        """Flip one bit of what a row of the journal holds; False if it is packed."""
        link = sqlite3.connect(self.store / FILE, timeout=10)
        with contextlib.closing(link), link:
            found = link.execute("SELECT body FROM j WHERE id = ?", (row,)).fetchone()
            if found is None:
                return False
            body = bytearray(found[0])
            body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
            link.execute("UPDATE j SET body = ? WHERE id = ?", (bytes(body), row))
        return True
