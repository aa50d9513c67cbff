"""What each write does to the database, inside the transaction of its commit."""

import sqlite3
from collections.abc import Mapping, Sequence

from holdfast.model.ids import SEQ_MAX, branch_of
from holdfast.store.backends import packs, schema, sweep
from holdfast.store.backends.base import (
    Append,
    BranchRow,
    Create,
    Grow,
    JournalRow,
    RunRow,
    Write,
)
from holdfast.store.backends.packs import Packer, Packs


class Doing:
    """Writes over one connection. `beside` are rows of the tail, which `ready` packs may hold.

    `begun` are the first rows of the branches that were begun.
    """

    def __init__(
        self,
        link: sqlite3.Connection,
        packer: Packer,
        beside: Mapping[int, JournalRow],
        ready: Mapping[int, packs.Ready],
    ) -> None:
        self._link, self._packer = link, packer
        self._beside, self._ready = beside, ready
        self.begun: list[JournalRow] = []

    def do(self, write: Write) -> int:
        """What `Records.commit` says of it."""
        match write:
            case Append():
                done = self._append(write)
                if done >= 0 and write.run is not None:
                    self._update(write.run, write.epoch)
                self._index(write.ledger or write.no, write.intents, done)
                if write.pack_from >= 0:
                    self._pack(write, done)
                if done >= 0 and write.is_pruned:
                    sweep.note_pruned(self._link, branch_of(done))
                return done
            case Create():
                return self._create(write)
            case Grow():
                return self._branch_off(write)

    def _pack(self, write: Append, done: int) -> None:
        """Write the pack that ends with this row; rows that it does not hold stay loose."""
        made, beside, held = self._ready.get(write.row.id), self._beside, set[int]()
        if done >= 0:
            first = write.pack_from
            held = packs.write(self._link, self._packer, first, done, made, beside=self._beside)
        if made is not None:
            left = (beside[id_] for id_ in made.inner if id_ in beside and id_ not in held)
            packs.insert(self._link, left)

    def _append(self, write: Append) -> int:
        row, id_ = write.row, write.row.id
        place = (id_ - 1, id_ - 1, id_, id_ | SEQ_MAX)
        try:
            found = self._link.execute(
                schema.APPEND, (id_, row.mac, row.body, write.no, write.epoch, *place)
            )
            if found.rowcount == 1:
                return id_
        except sqlite3.IntegrityError:
            pass
        # Somebody wrote this place: we did, if it is the same row, else we are fenced.
        return row.id if self._is_at(write.no, write.epoch) and self._stands(row) else -1

    def _is_at(self, no: int, epoch: int) -> bool:
        found = self._link.execute("SELECT epoch FROM run WHERE no=?", (no,)).fetchone()
        return bool(found == (epoch,))

    def _stands(self, row: JournalRow) -> bool:
        loose = packs.read_rows(self._link, row.id, row.id)
        packed = Packs(self._packer).rows(self._link, row.id, row.id)
        return any(row.mac == known.mac for known in loose or packed)

    def _create(self, write: Create) -> int:
        link = self._link
        if link.execute("SELECT 1 FROM run WHERE kid=?", (write.kid,)).fetchone():
            return -1
        run, branch, row = write.build(*sweep.next_numbers(link))
        if branch.parent and not link.execute(schema.BRANCH_BY_NO, (branch.parent,)).fetchone():
            return -1  # It was to grow from a run that was removed or erased since.
        if any(sweep.noted(link, key) != value for key, value in write.notes.items()):
            return -1
        link.execute(schema.RUN_INSERT, (run.no, run.kid, run.epoch, run.head, run.mac, run.body))
        if run.key:
            link.execute("INSERT INTO key VALUES (?,?)", (run.no, run.key))
        self._insert_branch(branch)
        link.execute("INSERT INTO j VALUES (?,?,?)", (row.id, row.mac, row.body))
        self._index(write.ledger or run.no, write.intents, row.id)
        self.begun.append(row)
        return run.no

    def _branch_off(self, write: Grow) -> int:
        link = self._link
        if not self._is_at(write.no, write.epoch):
            return -1
        branch, run, row = write.build(sweep.next_numbers(link)[1])
        self._insert_branch(branch)
        if run is not None:
            self._update(run, write.epoch)
        link.execute("INSERT INTO j VALUES (?,?,?)", (row.id, row.mac, row.body))
        self._index(write.ledger or write.no, write.intents, row.id)
        self.begun.append(row)
        return row.id

    def _insert_branch(self, branch: BranchRow) -> None:
        self._link.execute(
            schema.BRANCH_INSERT,
            (branch.no, branch.run, branch.parent, branch.at, branch.mac, branch.body),
        )

    def _update(self, run: RunRow, epoch: int) -> None:
        self._link.execute(
            schema.RUN_UPDATE, (run.epoch, run.head, run.mac, run.body, run.no, epoch)
        )

    def _index(self, ledger: int, intents: Sequence[bytes], row: int) -> None:
        if row >= 0:
            for intent in intents:
                self._link.execute(schema.EFFECT_INSERT, (ledger, intent, row))
