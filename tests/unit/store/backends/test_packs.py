"""Packs: rows that have aged, compressed together, and nothing of it to be seen outside."""

import itertools
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.clock import SystemClock
from holdfast.errors import Damaged
from holdfast.model.ids import row_id
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.packs import (
    CACHE_PACKS,
    Around,
    OpenPacker,
    Packs,
    make,
    ready,
    unpack,
    write,
)
from holdfast.store.backends.schema import TABLES
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.store.chain import check_row, row_mac
from holdfast.store.codec.frame import seal
from holdfast.testing.rows import append, create, journal_row, there
from tests.unit.store.builders import flipped, noise, tampering

STORE = b"sixteen bytes id"


def chained(first: int, count: int) -> list[JournalRow]:
    """Rows that follow each other, the first one after 32 zeros."""
    rows: list[JournalRow] = []
    for id_ in range(first, first + count):
        before = rows[-1].mac if rows else bytes(32)
        body = seal(noise(id_ % 40) + b"some text " * 15)
        rows.append(JournalRow(id=id_, mac=row_mac(STORE, id_, before, body), body=body))
    return rows


def test_a_pack_holds_rows_and_their_hashes_as_they_were() -> None:
    rows = chained(row_id(1, 5), 30)
    body = make(rows)

    assert rows == unpack(row_id(1, 5), row_id(1, 34), body)
    assert len(body) < sum(len(row.body) for row in rows) / 2


def test_any_change_of_a_pack_is_damage_or_breaks_the_chain() -> None:
    rows = chained(row_id(1, 5), 6)
    accepted = []

    for body in flipped(make(rows)):
        try:
            before = bytes(32)
            for row in unpack(row_id(1, 5), row_id(1, 10), body):
                check_row(STORE, row, before)
                before = row.mac
        except Damaged:
            continue
        accepted.append(body)

    assert [] == accepted


@pytest.mark.parametrize(
    ("first", "last"), [(row_id(1, 4), row_id(1, 10)), (row_id(1, 5), row_id(1, 11))]
)
def test_a_pack_that_does_not_hold_what_it_says_is_damage(first: int, last: int) -> None:
    with pytest.raises(Damaged, match="it holds 6 rows"):
        unpack(first, last, make(chained(row_id(1, 5), 6)))


def test_a_pack_that_cannot_be_decoded_is_damage() -> None:
    with pytest.raises(Damaged, match=r"pack 0x100000009 .* cannot be decoded"):
        unpack(row_id(1, 9), row_id(1, 9), seal(b"no pack"))


@pytest.fixture
def link() -> sqlite3.Connection:
    link = sqlite3.connect(":memory:", isolation_level=None)
    for sql in TABLES.values():
        link.execute(sql)
    return link


def loosen(link: sqlite3.Connection, rows: list[JournalRow]) -> None:
    link.executemany("INSERT INTO j VALUES (?,?,?)", [(row.id, row.mac, row.body) for row in rows])


def test_packing_again_what_is_packed_only_clears_what_is_loose(link: sqlite3.Connection) -> None:
    rows = chained(row_id(1, 0), 4)
    for _ in range(2):
        loosen(link, rows)
        write(link, OpenPacker(), rows[0].id, rows[-1].id)

    assert (0,) == link.execute("SELECT count(*) FROM j").fetchone()
    assert rows == list(Packs(OpenPacker()).rows(link, rows[0].id, rows[-1].id))
    link.close()


class Forgetful(OpenPacker):
    """A packer that reads back other rows than it was given."""

    def unpack(self, first: int, last: int, body: bytes, around: Around) -> list[JournalRow]:
        return [replace(row, body=b"other") for row in super().unpack(first, last, body, around)]


def test_a_pack_that_does_not_read_back_is_refused_and_its_rows_stay(tmp_path: Path) -> None:
    records = SqliteRecords(tmp_path, SystemClock())
    records.commit([create(b"a")])
    records.commit([append(1, journal_row(1, n)) for n in range(1, 4)])
    rows = records.rows(row_id(1, 0), row_id(1, 3))
    records.pack_with(Forgetful())

    with pytest.raises(Damaged, match=r"pack 0x100000004 .*does not read back as it was written"):
        records.commit([append(1, journal_row(1, 4), pack_from=row_id(1, 0))])
    with pytest.raises(Damaged, match="does not read back"):  # Its writer is not used again.
        records.commit([append(1, journal_row(1, 4))])
    records.close()

    with tampering(tmp_path) as link:
        assert (0,) == link.execute("SELECT count(*) FROM pack").fetchone()
        assert [row.id for row in rows] == [id_ for (id_,) in link.execute("SELECT id FROM j")]
    again = SqliteRecords(tmp_path, SystemClock())
    assert rows == again.rows(row_id(1, 0), row_id(1, 4))
    assert [row_id(1, 4)] == again.commit([append(1, journal_row(1, 4), pack_from=row_id(1, 0))])
    again.close()


def test_a_pack_made_before_its_commit_is_made_anew_if_its_rows_are_others_by_then(
    link: sqlite3.Connection,
) -> None:
    rows = chained(row_id(1, 0), 10)
    first, last, new = rows[0].id, rows[-1].id, rows[-1]
    for change in (False, True):
        link.execute("DELETE FROM j")
        link.execute("DELETE FROM pack")
        loosen(link, rows[:-1])
        made = ready(link, OpenPacker(), first, last, new)
        loosen(link, [new])
        if change:  # As garbage collection does it.
            link.execute("UPDATE j SET body=? WHERE id=?", (seal(b"pruned"), rows[3].id))
        write(link, OpenPacker(), first, last, made)

        found = list(Packs(OpenPacker()).rows(link, first, last))
        assert len(found) == 10
        assert (found == rows) is not change
        assert (found[3].body == seal(b"pruned")) is change


def test_a_new_row_behind_one_that_is_not_there_yet_makes_no_pack_of_itself_alone(
    link: sqlite3.Connection,
) -> None:
    rows = chained(row_id(1, 0), 10)
    loosen(link, rows[:-2])
    made = ready(link, OpenPacker(), rows[0].id, rows[-1].id, rows[-1])  # Two in one commit.
    loosen(link, rows[-2:])
    write(link, OpenPacker(), rows[0].id, rows[-1].id, made)

    assert rows == list(Packs(OpenPacker()).rows(link, rows[0].id, rows[-1].id))
    assert link.execute("SELECT count(*) FROM pack").fetchone() == (1,)


def test_rows_before_a_gap_are_not_packed_with_those_behind_it(link: sqlite3.Connection) -> None:
    rows = chained(row_id(1, 0), 6)
    loosen(link, [*rows[:2], *rows[3:]])

    write(link, OpenPacker(), rows[0].id, rows[-1].id)

    assert [(rows[0].id,), (rows[1].id,)] == link.execute("SELECT id FROM j").fetchall()
    assert rows[3:] == list(Packs(OpenPacker()).rows(link, rows[0].id, rows[-1].id))
    link.close()


def test_ranges_may_begin_and_end_inside_packs_and_reach_over_many(
    link: sqlite3.Connection,
) -> None:
    packs, rows = Packs(OpenPacker()), chained(row_id(1, 0), 3 * (CACHE_PACKS + 2))
    loosen(link, rows)
    for start in range(0, len(rows), 3):
        write(link, OpenPacker(), rows[start].id, rows[start + 2].id)

    for low, high in itertools.combinations_with_replacement(range(len(rows)), 2):
        assert rows[low : high + 1] == list(packs.rows(link, rows[low].id, rows[high].id))
    assert [] == list(packs.rows(link, row_id(2, 0), row_id(2, 9)))
    assert rows[-1] == packs.last(link, row_id(1, 0), row_id(2, 0) - 1)
    assert packs.last(link, row_id(2, 0), row_id(3, 0) - 1) is None
    link.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("body", "text"),
        ("body", 7),
        ("body", b""),
        ("first", "text"),
        ("first", b"blob"),
        ("first", row_id(1, 1)),
        ("first", -1),
    ],
)
def test_a_pack_with_a_wrong_column_is_damage(
    link: sqlite3.Connection, column: str, value: object
) -> None:
    rows = chained(row_id(1, 0), 4)
    loosen(link, rows)
    write(link, OpenPacker(), rows[0].id, rows[-1].id)

    link.execute(f"UPDATE pack SET {column}=?", (value,))

    with pytest.raises(Damaged, match="pack 0x100000003"):
        list(Packs(OpenPacker()).rows(link, rows[0].id, rows[-1].id))
    link.close()


def test_a_row_that_lies_loose_before_packed_ones_is_not_taken_for_the_newest(
    tmp_path: Path,
) -> None:
    records = SqliteRecords(tmp_path, SystemClock())
    records.commit([create(b"a")])
    records.commit([append(1, journal_row(1, n)) for n in range(1, 5)])
    with tampering(tmp_path) as damage:
        damage.execute("DELETE FROM j WHERE id=?", (row_id(1, 2),))
    records.commit([append(1, journal_row(1, 5), pack_from=row_id(1, 0))])

    assert row_id(1, 5) == there(records.last(1)).id
    assert [-1] == records.commit([append(1, journal_row(1, 2, b"another"))])
    assert [] == records.rows(row_id(1, 2), row_id(1, 2))
    records.close()


def test_a_pack_that_was_written_anew_in_the_same_length_is_read_anew(tmp_path: Path) -> None:
    first, last = row_id(1, 0), row_id(1, 0)
    halves = noise(800)[:400], noise(800)[400:]
    old, new = ([JournalRow(id=first, mac=half[:32], body=half)] for half in halves)
    bodies = make(old), make(new)
    assert len(bodies[0]) == len(bodies[1])
    packs = Packs(OpenPacker())
    link = sqlite3.connect(tmp_path / "db")
    link.execute("CREATE TABLE pack (id INTEGER PRIMARY KEY, first INTEGER, body BLOB)")
    link.execute("INSERT INTO pack VALUES (?,?,?)", (last, first, bodies[0]))

    before = list(packs.rows(link, first, last))
    link.execute("UPDATE pack SET body=? WHERE id=?", (bodies[1], last))
    after = list(packs.rows(link, first, last))
    link.close()

    assert (old, new) == (before, after)
