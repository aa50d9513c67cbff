"""Packs of an open store: one hash binds rows, values and place, and vouches for no damage."""

import sqlite3
from collections.abc import Iterator

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.errors import Damaged
from holdfast.model.ids import row_id
from holdfast.model.journal import Answer, Call, Row
from holdfast.store.backends import packs
from holdfast.store.backends.base import Beside, JournalRow
from holdfast.store.backends.packs import Around, Packs, write
from holdfast.store.backends.schema import TABLES
from holdfast.store.chain import Hashed
from holdfast.store.codec import values
from holdfast.store.codec.frame import is_bundle
from holdfast.store.cuttable import cuttable
from holdfast.store.packer import HashedPacker
from tests.unit.store.builders import flipped

HASHED = Hashed(b"sixteen bytes id")
BRANCH = b"b" * 32
COUNT = 5


def message(number: int) -> dict[str, str]:
    return {"author": "kelp", "text": f"what was said in row {number}, at some length"}


def chained() -> list[JournalRow]:
    rows: list[JournalRow] = []
    for number in range(COUNT):
        call = Call(0, "ask", b"digest", number, 0, False, [])
        entry = Answer(call, values.encode(message(number)), 1.0, 0.1, None)
        payload = msgspec.msgpack.encode(Row(-1, 0, [entry]))
        before = rows[-1].mac if rows else BRANCH
        rows.append(HASHED.row(row_id(1, number), before, payload))
    return rows


class Journal:
    """A branch of rows, some of them packed."""

    def __init__(self, link: sqlite3.Connection) -> None:
        self.link, self.packer = link, HashedPacker(HASHED, cuttable)
        self.rows = chained()
        link.execute("INSERT INTO branch VALUES (1, 1, 0, 0, ?, x'')", (BRANCH,))

    def pack(self, first: int, last: int) -> bytes:
        """Pack these rows; the pack's body."""
        known = [(row.id, row.mac, row.body) for row in self.rows[first : last + 1]]
        self.link.executemany("INSERT INTO j VALUES (?,?,?)", known)
        write(self.link, self.packer, known[0][0], known[-1][0])
        found = self.link.execute("SELECT body FROM pack WHERE id=?", known[-1][:1])
        body: bytes = found.fetchone()[0]
        return body

    def beside(self, first: int, last: int, body: bytes) -> Beside | None:
        ids = self.rows[first].id, self.rows[last].id
        return self.packer.beside(*ids, body, Around(self.link, ids[0]))


@pytest.fixture(autouse=True)
def _always_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "CUT_FROM", 0)


@pytest.fixture
def journal() -> Iterator[Journal]:
    link = sqlite3.connect(":memory:", isolation_level=None)
    for sql in TABLES.values():
        link.execute(sql)
    yield Journal(link)
    link.close()


def test_values_are_read_without_rows_and_rows_as_they_were(journal: Journal) -> None:
    journal.pack(0, 2)
    journal.pack(3, 4)
    reads, ids = Packs(journal.packer), (journal.rows[0].id, journal.rows[-1].id)

    one, two = reads.beside(journal.link, *ids)

    assert isinstance(one, Beside)
    assert isinstance(two, Beside)
    assert [message(n) for n in range(COUNT)] == [*one.values, *two.values]
    assert [(1, row.id, 0, -1) for row in journal.rows] == [*one.names, *two.names]
    assert (BRANCH, two.ends[0]) == one.ends
    assert journal.rows[-1].mac == two.ends[1]
    assert journal.rows == list(reads.rows(journal.link, *ids))


def test_the_first_rows_of_a_branch_are_packed_without_values_beside_them(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs, "CUT_FROM", 3)

    assert not is_bundle(journal.pack(0, 2))
    assert is_bundle(journal.pack(3, 4))


def test_any_change_of_a_pack_is_refused_by_who_reads_its_values(journal: Journal) -> None:
    body = journal.pack(0, 2)
    accepted = []

    for changed in [*flipped(body), *(body[:n] for n in range(len(body)))]:
        try:
            found = journal.beside(0, 2, changed)
        except Damaged:
            continue
        if found is not None:  # As version 1 it has none, and its rows are read.
            accepted.append(changed)

    assert [] == accepted


def test_a_pack_is_read_in_its_own_place_and_store_only(journal: Journal) -> None:
    body = journal.pack(0, 2)

    for first, last in [(1, 3), (0, 3), (1, 2), (3, 2)]:
        with pytest.raises(Damaged, match=r"hash does not match|begins with"):
            journal.beside(first, last, body)
    journal.packer = HashedPacker(Hashed(b"another store id"), cuttable)
    with pytest.raises(Damaged, match="hash does not match"):
        journal.beside(0, 2, body)


def test_the_hash_of_a_pack_does_not_vouch_for_a_row_that_was_changed_before(
    journal: Journal,
) -> None:
    row = journal.rows[1]
    journal.rows[1] = replace(row, body=row.body.replace(b"row 1", b"row 7"))

    body = journal.pack(0, 2)

    assert not is_bundle(body)
    assert journal.beside(0, 2, body) is None
    ids = journal.rows[0].id, journal.rows[2].id
    assert journal.rows[:3] == journal.packer.unpack(*ids, body, Around(journal.link, ids[0]))


def test_a_pack_behind_one_of_version_1_follows_its_last_row(journal: Journal) -> None:
    journal.packer = HashedPacker(HASHED, None)
    old = journal.pack(0, 2)
    journal.packer = HashedPacker(HASHED, cuttable)

    found = journal.beside(3, 4, journal.pack(3, 4))

    assert not is_bundle(old)
    assert found is not None
    assert journal.rows[2].mac == found.ends[0]
