"""A shorter database file: free pages are given back, and nothing else changes."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.model.ids import row_id
from holdfast.store.backends.connection import connect
from holdfast.store.backends.shrink import PAGES_MAX, shrink
from holdfast.store.backends.sqlite import FILE, SqliteRecords
from holdfast.testing.rows import append, create, everything, journal_row
from tests.unit.store.builders import noise

PAGE = 4096
ROWS = 30

Open = Callable[[], SqliteRecords]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens the store of the test, as often as asked, and closes what it opened."""
    with contextlib.ExitStack() as stack:

        def opened() -> SqliteRecords:
            return stack.enter_context(contextlib.closing(SqliteRecords(tmp_path, SystemClock())))

        yield opened


@pytest.fixture
def link(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a database of 30 rows of which every second one was deleted."""
    with contextlib.closing(connect(tmp_path / "some.db")) as link:
        link.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)")
        for n in range(ROWS):
            link.execute("INSERT INTO t VALUES (?,?)", (n, noise(3000)))
        link.execute("DELETE FROM t WHERE id % 2")
        yield link


def pages(link: sqlite3.Connection) -> tuple[int, int]:
    """All pages of the file, and those that are free."""
    return (
        link.execute("PRAGMA page_count").fetchone()[0],
        link.execute("PRAGMA freelist_count").fetchone()[0],
    )


def fill(records: SqliteRecords) -> None:
    """Put run 1 into the store: its rows lie loose first, and are packed with the last."""
    records.commit([create(b"a")])
    for n in range(1, ROWS):
        pack_from = row_id(1, 0) if n == ROWS - 1 else -1
        if n == ROWS - 1:
            records.settle()
        records.commit([append(1, journal_row(1, n, noise(2000)), pack_from=pack_from)])


def test_a_closed_store_has_no_free_pages_left_by_rows_that_were_packed(
    opened: Open, tmp_path: Path
) -> None:
    records = opened()
    fill(records)
    before = everything(records)
    assert pages(records._writer)[1] > ROWS // 2  # noqa: SLF001 there is no other way to see it

    records.close()

    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as link:
        all_, free = pages(link)
    assert 0 == free
    assert all_ * PAGE == (tmp_path / FILE).stat().st_size
    assert before == everything(opened())


def test_a_store_that_others_have_open_may_become_shorter_under_them(opened: Open) -> None:
    first, second = opened(), opened()
    fill(first)
    before = everything(second)

    first.close()

    assert before == everything(second)
    assert [row_id(1, ROWS)] == second.commit([append(1, journal_row(1, ROWS))])
    assert [] == second.integrity()


def test_a_store_that_was_only_read_is_not_written_when_it_is_closed(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setattr("holdfast.store.backends.wal.shrink", lambda _link: 0)
        records = opened()
        fill(records)
        records.close()
    size = (tmp_path / FILE).stat().st_size

    reader = opened()
    everything(reader)
    reader.close()

    assert size == (tmp_path / FILE).stat().st_size


def test_free_pages_are_given_back_and_the_rows_stand(link: sqlite3.Connection) -> None:
    rows = link.execute("SELECT * FROM t").fetchall()
    all_, free = pages(link)

    assert all_ == shrink(link)

    assert (all_ - free, 0) == pages(link)
    assert rows == link.execute("SELECT * FROM t").fetchall()


def test_a_few_free_pages_are_not_worth_a_copy(link: sqlite3.Connection) -> None:
    shrink(link)
    for n in range(ROWS, ROWS * 3):
        link.execute("INSERT INTO t VALUES (?,?)", (n, noise(3000)))
    link.execute("DELETE FROM t WHERE id = 0")
    before = pages(link)
    assert before[1] == 1

    assert 0 == shrink(link)

    assert before == pages(link)


def test_a_long_file_keeps_its_free_pages(link: sqlite3.Connection) -> None:
    link.execute("INSERT INTO t VALUES (1, zeroblob(?))", (PAGES_MAX * PAGE,))
    link.execute("DELETE FROM t WHERE id = 1")
    before = pages(link)

    assert 0 == shrink(link)

    assert before == pages(link)


def test_a_file_that_is_not_sound_is_left_for_repair(
    link: sqlite3.Connection, tmp_path: Path
) -> None:
    before = pages(link)
    link.close()
    file = tmp_path / "some.db"
    data = bytearray(file.read_bytes())
    leaf = next(at for at in range(PAGE, len(data), PAGE) if data[at] == 0x0D)  # A table's leaf.
    data[leaf + 7] ^= 1  # How many bytes of the page are lost between its cells.
    file.write_bytes(data)

    with contextlib.closing(connect(file)) as damaged:
        shrink(damaged)

        assert before == pages(damaged)


def test_a_file_that_cannot_be_copied_now_stays_as_it_is(
    link: sqlite3.Connection, tmp_path: Path
) -> None:
    before = pages(link)
    link.execute("PRAGMA busy_timeout=0")

    with contextlib.closing(connect(tmp_path / "some.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        shrink(link)

    assert before == pages(link)
