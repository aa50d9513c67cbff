"""Sealed packs: rows come back as they were, and every byte, place and end of a pack is bound."""

import sqlite3
from collections.abc import Iterator

import pytest

from holdfast.errors import Damaged
from holdfast.model.ids import row_id
from holdfast.store.backends.base import BranchRow, JournalRow, RunRow
from holdfast.store.backends.memory import MemoryRecords
from holdfast.store.backends.packs import Around, Packs, write
from holdfast.store.backends.schema import SEALED_TABLES, TABLES
from holdfast.store.seal import keys
from holdfast.store.seal.packer import SealedPacker
from holdfast.store.seal.sealed import Sealed, SealedRun

ROWS = 6
SEALS = Sealed(MemoryRecords(), keys.make(bytes(16))[0])


class Journal:
    """A run with one branch of sealed rows, in tables of its own."""

    def __init__(self, link: sqlite3.Connection, no: int) -> None:
        self.link, self.packer = link, SealedPacker(SEALS)
        run: SealedRun = SEALS.new(no)
        bare = RunRow(no=no, kid=bytes([no]) * 16, epoch=1, head=no, mac=b"", body=b"")
        link.execute("INSERT INTO key VALUES (?, ?)", (no, run.run(bare, b"").key))
        grown = BranchRow(no=no, run=no, parent=0, at=0, mac=b"", body=b"")
        branch = run.branch(grown, b"")
        values = (no, no, 0, 0, branch.mac, branch.body)
        link.execute("INSERT INTO branch VALUES (?,?,?,?,?,?)", values)
        self.rows: list[JournalRow] = []
        self.befores = [branch.mac]
        for seq in range(ROWS):
            row = run.row(row_id(no, seq), self.befores[-1], b"payload %d" % seq)
            link.execute("INSERT INTO j VALUES (?,?,?)", (row.id, row.mac, row.body))
            self.rows.append(row)
            self.befores.append(row.mac)
        self.run = run

    def pack(self, first: int, last: int) -> bytes:
        """Pack these rows; the pack's body."""
        ids = self.rows[first].id, self.rows[last].id
        write(self.link, self.packer, *ids)
        body: bytes = self.link.execute("SELECT body FROM pack WHERE id=?", ids[1:]).fetchone()[0]
        return body

    def unpack(self, first: int, last: int, body: bytes) -> list[JournalRow]:
        ids = self.rows[first].id, self.rows[last].id
        return self.packer.unpack(*ids, body, Around(self.link, ids[0]))


@pytest.fixture
def link() -> Iterator[sqlite3.Connection]:
    link = sqlite3.connect(":memory:", isolation_level=None)
    for sql in (TABLES | SEALED_TABLES).values():
        link.execute(sql)
    yield link
    link.close()


def test_packed_rows_open_as_they_did_before(link: sqlite3.Connection) -> None:
    journal = Journal(link, 1)
    journal.pack(0, 2)
    journal.pack(3, 5)

    found = list(Packs(journal.packer).rows(link, journal.rows[0].id, journal.rows[-1].id))

    assert [row.mac for row in journal.rows] == [row.mac for row in found]
    for row, before, number in zip(found, journal.befores, range(ROWS), strict=False):
        assert b"payload %d" % number == journal.run.open_row(row, before)
        with pytest.raises(Damaged, match="does not follow"):
            journal.run.open_row(row, b"another")
    assert 0 == link.execute("SELECT count(*) FROM j").fetchone()[0]


def test_every_byte_of_a_pack_counts(link: sqlite3.Connection) -> None:
    journal = Journal(link, 1)
    body = journal.pack(0, 3)
    assert 4 == len(journal.unpack(0, 3, body))

    for place in range(len(body)):
        changed = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        with pytest.raises(Damaged):
            journal.unpack(0, 3, changed)
    for length in range(len(body)):
        with pytest.raises(Damaged):
            journal.unpack(0, 3, body[:length])


def test_a_pack_opens_in_its_own_place_only(link: sqlite3.Connection) -> None:
    journal, other = Journal(link, 1), Journal(link, 2)
    body = journal.pack(1, 3)

    for first, last in ((0, 3), (1, 4), (0, 2), (2, 4)):
        with pytest.raises(Damaged):
            journal.unpack(first, last, body)
    with pytest.raises(Damaged):
        other.unpack(1, 3, body)


def test_a_changed_row_is_not_packed(link: sqlite3.Connection) -> None:
    journal = Journal(link, 1)
    link.execute("UPDATE j SET body=zeroblob(20) WHERE id=?", (journal.rows[1].id,))

    with pytest.raises(Damaged, match=r"not sealed|version"):
        journal.pack(0, 3)
