"""The tail beside the database: what is seen, taken in, fenced and found again after a kill."""

import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from holdfast import failpoint, native
from holdfast.clock import SystemClock
from holdfast.errors import Damaged, StoreBusy, StoreUnwritable
from holdfast.model.ids import row_id
from holdfast.store.backends import slots, tail
from holdfast.store.backends.base import Append, BranchRow, Grow, JournalRow, RunRow
from holdfast.store.backends.locks import ByteLocks
from holdfast.store.backends.slots import SLOT
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.testing.rows import append, create, everything, journal_row, there
from tests.unit.store.builders import noise, seed_of, tampering

Reopen = Callable[[], SqliteRecords]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the store lies."""
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture
def reopen(place: Path) -> Iterator[Reopen]:
    """Opens the store once more, and closes all at the end."""
    opened: list[SqliteRecords] = []

    def reopen() -> SqliteRecords:
        opened.append(SqliteRecords(place, SystemClock()))
        return opened[-1]

    yield reopen
    for each in opened:
        each.close()


@pytest.fixture
def records(reopen: Reopen) -> SqliteRecords:
    """A store with run 1 and five rows after its first, four of them in the tail."""
    records = reopen()
    records.commit([create(b"a")])
    add(records, *range(1, 6))
    return records


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoint.disarm()


@pytest.fixture(autouse=True, params=["in C", "in Python"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in Python":
        monkeypatch.setattr(native, "add_row", None)


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of the system go where a test can replace them."""
    monkeypatch.setattr(native, "add_row", None)


class Killed(BaseException):
    """What a kill looks like to the code that it ends."""


def add(records: SqliteRecords, *numbers: int) -> None:
    for n in numbers:
        assert [row_id(1, n)] == records.commit([append(1, journal_row(1, n))])


def in_database(place: Path) -> list[int]:
    """Numbers of the rows of branch 1 that the database holds."""
    with tampering(place) as link:
        return [id_ - row_id(1, 0) for (id_,) in link.execute("SELECT id FROM j ORDER BY id")]


def in_tail(place: Path, generation: int = 0) -> list[int]:
    """Numbers of the rows of branch 1 that the tail holds."""
    rows = slots.read((place / tail.NAME).read_bytes(), seed_of(place), generation).rows
    return [row.id - row_id(1, 0) for row in rows]


def takeover(number: int, epoch: int) -> Append:
    """Row `number` of run 1, by whoever takes it over from those of `epoch`."""
    run, _, _ = create(b"a").build(1, 1)
    row = journal_row(1, number, b"taken over")
    return append(1, row, epoch=epoch, run=replace(run, epoch=epoch + 1))


def cut_off(records: SqliteRecords, point: str, work: Callable[[], object]) -> None:
    """End `work` at a failpoint as a kill would, and let the handle touch nothing any more."""

    def die() -> None:
        raise Killed

    failpoint.arm(point, die)
    with pytest.raises(Killed):
        work()
    failpoint.disarm()
    records.abandon()


def test_the_newest_rows_stand_in_the_tail_and_everybody_sees_them(
    records: SqliteRecords, place: Path, reopen: Reopen
) -> None:
    assert [0, 1] == in_database(place)
    assert [2, 3, 4, 5] == in_tail(place)

    second = reopen()
    assert everything(records) == everything(second)
    add(records, 6)
    assert row_id(1, 6) == there(second.last(1)).id == second.end(1)
    assert [row_id(1, 6)] == [row.id for row in second.rows(row_id(1, 6), row_id(1, 9))]
    assert row_id(1, 3) == second.next_row(row_id(1, 3), row_id(1, 9))
    assert row_id(1, 0) == second.tail(1)[0]


def test_a_row_with_an_intent_takes_all_of_them_into_the_database(
    records: SqliteRecords, place: Path
) -> None:
    records.commit([append(1, journal_row(1, 6), intents=[b"i"])])

    assert [*range(7)] == in_database(place)
    add(records, 7)
    assert [7] == in_tail(place, 1)


def test_a_pack_holds_rows_of_the_tail(records: SqliteRecords, place: Path) -> None:
    before = [row.mac for row in records.rows(row_id(1, 0), row_id(1, 5))]
    records.commit([append(1, journal_row(1, 6), pack_from=row_id(1, 1))])

    assert [0] == in_database(place)
    assert before == [row.mac for row in records.rows(row_id(1, 0), row_id(1, 5))]


def test_a_tail_that_is_full_is_taken_in_and_begins_anew(
    records: SqliteRecords, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "BYTES_MAX", tail.BYTES_MIN)
    full = tail.BYTES_MIN // SLOT

    add(records, *range(6, full + 4))

    assert [*range(full + 3)] == in_database(place)
    assert [full + 3] == in_tail(place, 1)
    assert tail.BYTES_MIN == (place / tail.NAME).stat().st_size


def test_the_tail_grows_for_a_long_row_up_to_its_limit(
    records: SqliteRecords, place: Path, reopen: Reopen
) -> None:
    long, too_long = noise(tail.BYTES_MIN), noise(tail.BYTES_MAX)
    records.commit([append(1, journal_row(1, 6, long))])
    assert 2 * tail.BYTES_MIN == (place / tail.NAME).stat().st_size

    records.commit([append(1, journal_row(1, 7, too_long))])

    assert [*range(8)] == in_database(place)
    assert [long, too_long] == [row.body for row in reopen().rows(row_id(1, 6), row_id(1, 7))]


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("fails", ["pwrite", "fsync"])
def test_where_the_tail_cannot_grow_rows_go_to_the_database(
    place: Path, reopen: Reopen, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = reopen()
    records.commit([create(b"a")])
    add(records, 1)

    done = getattr(os, fails)

    def full(fd: int, *more: object) -> object:
        if not more or len(cast("bytes", more[0])) > SLOT:
            raise OSError(28, "No space left on device")
        return done(fd, *more)

    with monkeypatch.context() as patched:
        patched.setattr(os, fails, full)
        add(records, 2, 3)

    assert [0, 1, 2, 3] == in_database(place)
    assert 0 == (place / tail.NAME).stat().st_size
    add(records, 4)
    assert [4] == in_tail(place)


@pytest.mark.usefixtures("in_python")
def test_a_flush_that_fails_voids_the_row_and_the_store_goes_on(
    records: SqliteRecords, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", broken)
        with pytest.raises(StoreUnwritable, match="input/output error"):
            records.commit([append(1, journal_row(1, 6))])
    records.revive()

    assert row_id(1, 5) == there(records.last(1)).id
    assert [row_id(1, 6)] == records.commit([append(1, journal_row(1, 6, b"another"))])
    assert b"another" == there(records.last(1)).body
    assert [*range(7)] == in_database(place)


@pytest.mark.usefixtures("in_python")
def test_a_record_that_is_written_in_part_is_an_error(
    records: SqliteRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = os.pwrite
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", lambda fd, data, at: done(fd, data[:-1], at))
        with pytest.raises(StoreUnwritable, match="only a part was written"):
            records.commit([append(1, journal_row(1, 6))])
    records.revive()

    assert row_id(1, 5) == there(records.last(1)).id


def test_a_takeover_fences_who_knows_where_the_branch_ends(
    records: SqliteRecords, reopen: Reopen
) -> None:
    second = reopen()
    assert [row_id(1, 6)] == second.commit([takeover(6, epoch=1)])

    assert [-1] == records.commit([append(1, journal_row(1, 6, b"fenced"))])
    assert [-1] == records.commit([append(1, journal_row(1, 7, b"fenced"))])
    assert [row_id(1, 7)] == second.commit([append(1, journal_row(1, 7), epoch=2)])
    assert [row_id(1, 8)] == second.commit([append(1, journal_row(1, 8), epoch=2)])
    assert [-1] == records.commit([append(1, journal_row(1, 9, b"fenced"))])


def test_a_fenced_writer_stays_so_when_its_store_has_written_for_another_run(
    records: SqliteRecords, reopen: Reopen
) -> None:
    """What is learned of one branch must not make old knowledge of another look new."""
    records.commit([create(b"b")])
    second = reopen()
    second.commit([takeover(6, epoch=1)])
    cut_off(second, "tail.writing", lambda: second.commit([append(1, journal_row(1, 7), epoch=2)]))
    assert records._tail.is_unsettled  # noqa: SLF001 -- else this proves nothing

    both = [append(2, journal_row(2, n)) for n in (1, 2)]
    assert [row_id(2, 1), row_id(2, 2)] == records.commit(both)
    assert [-1] == records.commit([append(1, journal_row(1, 6, b"fenced"))])


def test_a_branch_grown_by_another_fences_too(records: SqliteRecords, reopen: Reopen) -> None:
    run, _, _ = create(b"a").build(1, 1)

    def build(no: int) -> tuple[BranchRow, RunRow, JournalRow]:
        branch = BranchRow(no=no, run=1, parent=1, at=row_id(1, 5), mac=b"", body=b"")
        return branch, replace(run, epoch=2, head=no), journal_row(no, 6)

    assert [row_id(2, 6)] == reopen().commit([Grow(no=1, epoch=1, build=build)])
    assert [-1] == records.commit([append(1, journal_row(1, 6))])


def test_who_rewrites_rows_is_heard_by_who_knows_where_branches_end(
    records: SqliteRecords, reopen: Reopen
) -> None:
    with reopen().alone() as link:
        link.execute("DELETE FROM j WHERE id=?", (row_id(1, 5),))

    assert [-1] == records.commit([append(1, journal_row(1, 6))])
    add(records, 5, 6)


def test_of_a_branch_that_others_may_write_the_database_is_asked(
    records: SqliteRecords, place: Path, reopen: Reopen
) -> None:
    second = reopen()
    for n in range(6, 12):
        for handle in (records, second) if n % 2 else (second, records):
            row = journal_row(1, n, f"{n} {id(handle)}".encode())
            first = handle.commit([append(1, row, is_sole=False)])
            assert ([row_id(1, n)] if handle is (records, second)[n % 2 == 0] else [-1]) == first

    assert [*range(12)] == in_database(place)


@pytest.mark.parametrize("point", ["tail.writing", "tail.written"])
def test_a_row_of_a_killed_writer_counts_no_more_once_somebody_went_on(
    records: SqliteRecords, place: Path, reopen: Reopen, point: str
) -> None:
    second = reopen()
    cut_off(records, point, lambda: records.commit([append(1, journal_row(1, 6, b"cut off"))]))

    assert row_id(1, 5) == there(second.last(1)).id
    assert [row_id(1, 6)] == second.commit([append(1, journal_row(1, 6, b"new"))])
    assert b"new" == there(second.last(1)).body
    second.close()
    assert b"new" == there(reopen().last(1)).body
    assert [*range(7)] == in_database(place)


def test_the_only_row_of_a_killed_writer_counts_no_more_once_somebody_went_on(
    records: SqliteRecords, reopen: Reopen
) -> None:
    """Nothing else stands in the tail then that the database would have to take in."""
    second = reopen()
    records.commit([append(1, journal_row(1, 6), intents=[b"i"])])
    cut_off(records, "tail.written", lambda: records.commit([append(1, journal_row(1, 7))]))

    assert [row_id(1, 7)] == second.commit([takeover(7, epoch=1)])
    before = second.rows(*_all())
    second.abandon()

    assert before == reopen().rows(*_all())


def test_after_a_kill_of_all_a_whole_row_counts_and_is_moved_into_the_database(
    records: SqliteRecords, place: Path, reopen: Reopen
) -> None:
    cut_off(records, "tail.written", lambda: add(records, 6))

    left = reopen()

    assert row_id(1, 6) == there(left.last(1)).id
    add(left, 7)
    assert [*range(8)] == in_database(place)


@pytest.mark.parametrize("point", ["tail.taking", "tail.taken", "store.committed"])
def test_a_kill_while_the_tail_is_taken_in_loses_nothing(
    records: SqliteRecords, place: Path, reopen: Reopen, point: str
) -> None:
    second = reopen()
    write = append(1, journal_row(1, 6), intents=[b"i"])
    cut_off(records, point, lambda: records.commit([write]))
    written = 5 if point == "tail.taking" else 6

    assert [*range(written + 1)] == [row.id - row_id(1, 0) for row in second.rows(*_all())]
    assert [row_id(1, 6)] == second.commit([write])
    add(second, 7, 8)
    second.close()
    assert [*range(9)] == [row.id - row_id(1, 0) for row in reopen().rows(*_all())]
    assert [*range(9)] == in_database(place)


def _all() -> tuple[int, int]:
    return row_id(1, 0), row_id(1, 99)


def test_whoever_wrote_leaves_all_in_the_database_and_the_last_one_no_tail(
    records: SqliteRecords, place: Path, reopen: Reopen
) -> None:
    second = reopen()

    records.close()
    assert [*range(6)] == in_database(place)
    assert (place / tail.NAME).exists()

    second.close()
    assert not (place / tail.NAME).exists()


def test_who_only_reads_leaves_the_tail_as_it_is(
    records: SqliteRecords, place: Path, reopen: Reopen
) -> None:
    records.abandon()
    before = (place / tail.NAME).read_bytes()
    reader = reopen()

    assert row_id(1, 5) == there(reader.last(1)).id
    reader.close()

    assert before == (place / tail.NAME).read_bytes()
    assert [0, 1] == in_database(place)


def test_whoever_comes_while_the_last_one_leaves_finds_the_store_as_it_is(
    records: SqliteRecords, reopen: Reopen
) -> None:
    """The generation goes on where it was, though the file is gone."""
    records.commit([append(1, journal_row(1, 6), intents=[b"i"])])
    first = records._tail  # noqa: SLF001 -- there is no other way between its last two acts
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(first, "close", lambda: None)
        records.close()
        second = reopen()
        second.commit([append(1, journal_row(1, 7), intents=[b"j"])])
        add(second, 8, 9)
        third = reopen()
        assert [*range(10)] == [row.id - row_id(1, 0) for row in third.rows(*_all())]
        third.commit([takeover(10, epoch=1)])
        assert [*range(11)] == [row.id - row_id(1, 0) for row in second.rows(*_all())]
    first.close()


def test_a_store_is_not_entered_while_somebody_alone_in_it_does_not_answer(
    records: SqliteRecords, place: Path, reopen: Reopen
) -> None:
    records.close()
    leases = ByteLocks(place / "leases")
    assert leases.take(tail.PRESENT)

    with pytest.raises(StoreBusy):
        reopen()
    leases.close()
    assert row_id(1, 5) == there(reopen().last(1)).id


def test_wiping_leaves_no_byte_of_what_stood_there(records: SqliteRecords, place: Path) -> None:
    size = (place / tail.NAME).stat().st_size
    records.empty_log()

    assert bytes(size) == (place / tail.NAME).read_bytes()
    add(records, 6, 7)
    assert row_id(1, 7) == there(records.last(1)).id
    assert [*range(7)] == in_database(place)


def test_an_older_store_has_no_tail(place: Path, reopen: Reopen) -> None:
    reopen().close()
    with tampering(place) as link:
        link.execute("UPDATE meta SET value=? WHERE key='incompat'", (b"leaves patches values",))
    older = reopen()
    older.commit([create(b"a")])

    add(older, 1, 2, 3)

    assert not (place / tail.NAME).exists()
    assert [0, 1, 2, 3] == in_database(place)


def test_what_lies_beside_an_older_store_is_none_of_its_own(place: Path, reopen: Reopen) -> None:
    reopen().close()
    with tampering(place) as link:
        link.execute("UPDATE meta SET value=? WHERE key='incompat'", (b"leaves patches values",))
    data = slots.record([journal_row(1, 7)], seed_of(place), 0, 0)
    (place / tail.NAME).write_bytes(data)
    older = reopen()
    older.commit([create(b"a")])

    assert [row_id(1, 0)] == [row.id for row in older.rows(*_all())]
    assert {} == older.beside_database()
    older.close()
    assert data == (place / tail.NAME).read_bytes()


def flip(file: Path, place: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        was = opened.read(1)[0]
        opened.seek(place)
        opened.write(bytes([was ^ 1]))


@pytest.mark.parametrize("is_open", [True, False])
def test_a_damaged_record_is_said_and_refuses_commits_and_the_others_are_read(
    records: SqliteRecords, place: Path, reopen: Reopen, is_open: bool
) -> None:
    if not is_open:
        records.abandon()
    flip(place / tail.NAME, SLOT + 60)
    left = reopen()

    with pytest.raises(Damaged, match=r"tail of the journal.*holdfast repair"):
        left.beside_database()
    assert [row_id(1, 2)] == [row.id for row in left.rows(row_id(1, 2), row_id(1, 3))]
    assert row_id(1, 5) == there(left.last(1)).id
    for handle in (left, records) if is_open else (left,):
        with pytest.raises(Damaged, match="tail of the journal"):
            handle.commit([append(1, journal_row(1, 6))])
    left.close()
    assert [0, 1] == in_database(place)


def test_a_last_record_that_is_lost_is_missing_by_the_head_note(
    records: SqliteRecords, place: Path, reopen: Reopen
) -> None:
    records.abandon()
    flip(place / tail.NAME, 3 * SLOT + 60)
    left = reopen()

    assert {} != left.beside_database()
    assert [row_id(1, 5)] == left.missing()


def test_a_tail_of_a_later_generation_than_the_database_is_damage(
    records: SqliteRecords, place: Path
) -> None:
    shutil.copytree(place, place.parent / "old")
    records.commit([append(1, journal_row(1, 6), intents=[b"i"])])
    add(records, 7)
    records.abandon()
    newest = (place / tail.NAME).read_bytes()[:SLOT]
    (place.parent / "old" / tail.NAME).write_bytes(newest)
    (place.parent / "old" / "store.db-shm").unlink()
    left = SqliteRecords(place.parent / "old", SystemClock())

    with pytest.raises(Damaged, match="tail of the journal"):
        left.beside_database()
    with pytest.raises(Damaged, match="tail of the journal"):
        left.commit([append(1, journal_row(1, 6))])
    left.close()


def test_where_the_database_cannot_tell_the_generation_rows_are_read_and_commits_refused(
    records: SqliteRecords, place: Path, reopen: Reopen
) -> None:
    records.commit([append(1, journal_row(1, 6), intents=[b"i"])])
    add(records, 7)
    records.abandon()
    with tampering(place) as link:
        value = bytearray(link.execute("SELECT value FROM meta WHERE key='tail'").fetchone()[0])
        value[0] ^= 1
        link.execute("UPDATE meta SET value=? WHERE key='tail'", (bytes(value),))
    left = reopen()

    assert row_id(1, 7) == there(left.last(1)).id
    with pytest.raises(Damaged, match="tail of the journal"):
        left.commit([append(1, journal_row(1, 8))])


def test_a_forked_child_takes_nothing_with_it(
    records: SqliteRecords, place: Path, reopen: Reopen
) -> None:
    if (child := os.fork()) == 0:
        records.abandon()
        os._exit(0)
    assert 0 == os.waitpid(child, 0)[1]

    second = reopen()
    add(records, 6)
    assert row_id(1, 6) == there(second.last(1)).id
    assert [2, 3, 4, 5, 6] == in_tail(place)


def test_a_child_forked_while_another_thread_wrote_a_row_lets_go_of_everything(
    records: SqliteRecords,
) -> None:
    words = records._tail.words  # noqa: SLF001 -- there is no other way to it
    view = ctypes.c_uint64.from_buffer(words)  # As C has one for a thread that no child has.
    if (child := os.fork()) == 0:
        try:
            records.abandon()
        finally:
            os._exit(records._lock.fd + 1)  # noqa: SLF001 -- there is no other way to it
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    del view
    add(records, 6)


@pytest.mark.skipif(sys.platform != "linux", reason="only there do rows pass by the page cache")
def test_a_write_that_was_cut_off_is_waited_for_before_a_generation_begins(
    records: SqliteRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, waited = records._tail, list[int]()  # noqa: SLF001 -- there is no other way to it
    began = own.generation
    monkeypatch.setattr(os, "posix_fallocate", lambda *_: waited.append(own.generation))
    records.commit([append(1, journal_row(1, 6), intents=[b"i"])])
    assert [] == waited

    own.begin_anew()  # As who is killed leaves it.
    add(records, 7)

    assert [began + 1] == waited
    assert began + 2 == own.generation
