"""A row that C adds to the tail: the same bytes as Python writes, and what it leaves to Python."""

import errno
import fcntl
import os
import random
import resource
import secrets
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import failpoint, native
from holdfast.clock import SystemClock
from holdfast.errors import StoreUnwritable
from holdfast.model.ids import row_id
from holdfast.store.backends import tail
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.slots import SLOT
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.testing.rows import append, create, journal_row, there

pytestmark = pytest.mark.skipif(not native.is_compiled, reason="there was no C compiler")

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux writes so")
FILES = (tail.NAME, "heads", "lock")


@pytest.fixture(autouse=True)
def _long(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few rows are written as many would be."""
    monkeypatch.setattr(tail, "FEW_ROWS", 0)


@pytest.fixture
def records(tmp_path: Path) -> Iterator[SqliteRecords]:
    """A store with run 1 and two rows after its first, the second in the tail."""
    records = SqliteRecords(tmp_path, SystemClock())
    records.commit([create(b"a")])
    for n in (1, 2):
        records.commit([append(1, journal_row(1, n))])
    yield records
    records.close()


def rows(seed: int) -> list[JournalRow]:
    """Rows with hashes and bodies of many lengths, as seals make them too."""
    chance = random.Random(seed)  # noqa: S311 a seed
    return [
        JournalRow(
            id=row_id(1, n),
            mac=chance.randbytes(chance.choice([16, 32])),
            body=chance.randbytes(chance.choice([1, 7, 100, 4000, 4059, 4060, 9000])),
        )
        for n in range(1, 12)
    ]


def written(place: Path, seed: int, **changed: object) -> dict[str, bytes]:
    """The files of a store to which these rows were added one by one."""
    place.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_bytes", bytes)
        for name, value in changed.items():
            patch.setattr(tail if name.isupper() else native, name, value)
        records = SqliteRecords(place, SystemClock())
        records.commit([create(b"a")])
        for row in rows(seed):
            assert [row.id] == records.commit([append(1, row)])
    found = {name: (place / name).read_bytes() for name in FILES}
    records.close()
    return found


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**64))
def test_the_files_are_the_same(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("both")
    in_python = written(place / "python", seed, add_row=None)

    assert in_python == written(place / "c", seed)
    assert in_python == written(place / "plain", seed, direct=None)


@pytest.mark.parametrize("look_ns", [0, 10**9])
def test_the_files_are_the_same_however_the_disk_is_waited_for(disk: Path, look_ns: int) -> None:
    in_python = written(disk / "python", 1, add_row=None)

    assert in_python == written(disk / "c", 1, LOOK_NS=look_ns)


def test_a_usual_row_is_added_in_c(records: SqliteRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above would compare Python with itself."""
    monkeypatch.delattr(tail.Tail, "append")
    monkeypatch.delattr(SqliteRecords, "_commit_rows")

    assert [row_id(1, 3)] == records.commit([append(1, journal_row(1, 3))])
    assert row_id(1, 3) == there(records.last(1)).id


@pytest.mark.usefixtures("_listening")
def test_who_listens_at_crash_points_has_rows_added_in_python(
    records: SqliteRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "add_row", lambda *_: pytest.fail("it was added in C"))

    assert [row_id(1, 3)] == records.commit([append(1, journal_row(1, 3))])


@pytest.fixture
def _listening() -> Iterator[None]:
    failpoint.listen(lambda _: None)
    yield
    failpoint.disarm()


def ask(records: SqliteRecords, **changed: object) -> int:
    """Ask C to add row 3 as the store would, but for what is changed."""
    own, lock, heads = records._tail, records._lock, records.heads  # noqa: SLF001 -- no other way
    row = journal_row(1, 3)
    asked: dict[str, object] = {
        "files": (lock.fd, own.fd, heads.fd),
        "words": own.words,
        "room": own.room,
        "fence": own.fence,
        "seed": own._seed,  # noqa: SLF001 -- no other way
        "id": row.id,
        "mac": row.mac,
        "body": row.body,
        "direct": own._direct,  # noqa: SLF001 -- no other way
    }
    assert native.add_row is not None
    return native.add_row(*(asked | changed).values())  # type: ignore[arg-type]  # as named above


def test_what_is_no_matter_of_course_is_left_to_python(
    records: SqliteRecords, tmp_path: Path
) -> None:
    words = records._tail.words  # noqa: SLF001 -- there is no other way to it
    before = {name: (tmp_path / name).read_bytes() for name in FILES}

    assert 0 == ask(records, fence=words[5] + 1)
    assert 0 == ask(records, room=words[4] + 10)
    assert 0 == ask(records, body=bytes(10**6))
    assert 0 == ask(records, mac=bytes(256))
    for place in (2, 6):
        words[place] = 1
        assert 0 == ask(records)
        words[place] = 0
    with (tmp_path / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert 0 == ask(records)

    assert before == {name: (tmp_path / name).read_bytes() for name in FILES}
    assert 1 == ask(records)


def test_who_waits_for_the_lock_is_to_be_woken(records: SqliteRecords) -> None:
    records._lock._bell.listen()  # noqa: SLF001 -- there is no other way to it

    assert 2 == ask(records)


@pytest.mark.parametrize("fails", [1, 2])
def test_what_the_disk_refuses_is_said_and_the_lock_let_go(
    records: SqliteRecords, tmp_path: Path, fails: int
) -> None:
    with Path(os.devnull).open() as read_only:
        own, lock, heads = records._tail, records._lock, records.heads  # noqa: SLF001 -- no other way
        files = [lock.fd, own.fd, heads.fd]
        files[fails] = read_only.fileno()
        with pytest.raises(OSError, match="Bad file descriptor") as refused:
            ask(records, files=tuple(files), direct=None)

    assert errno.EBADF == refused.value.errno
    assert (fails == 1) == own.is_unsettled
    with (tmp_path / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_store_whose_disk_refuses_a_row_goes_on_once_it_does_not(records: SqliteRecords) -> None:
    own = records._tail  # noqa: SLF001 -- there is no other way to it
    kept = own.fd
    with Path(os.devnull).open() as read_only:
        own.fd, own._direct = read_only.fileno(), None  # noqa: SLF001 -- no other way
        with pytest.raises(StoreUnwritable, match="bad file descriptor"):
            records.commit([append(1, journal_row(1, 3))])
        own.fd = kept
    records.revive()

    assert row_id(1, 2) == there(records.last(1)).id
    assert [row_id(1, 3)] == records.commit([append(1, journal_row(1, 3))])


@linux
def test_a_row_passes_by_the_page_cache(records: SqliteRecords) -> None:
    """Else the tests below would look at another way of writing."""
    with Path(os.devnull).open() as read_only:
        own, lock, heads = records._tail, records._lock, records.heads  # noqa: SLF001 -- no other way
        assert 1 == ask(records, files=(lock.fd, read_only.fileno(), heads.fd))
    assert b"HFt1" == os.pread(own.fd, 4, SLOT)


def queues() -> int:
    """How many queues the kernel has for this process."""
    return Path("/proc/self/maps").read_text().count("/[aio]")


@linux
def test_who_adds_few_rows_makes_no_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "FEW_ROWS", 3)
    if (child := os.fork()) == 0:  # No earlier test has left one there that it may use.
        seen = [queues()]
        try:
            records = SqliteRecords(tmp_path, SystemClock())
            records.commit([create(b"a")])
            for n in range(1, 7):
                records.commit([append(1, journal_row(1, n))])
                seen.append(queues())
        finally:
            os._exit(seen.count(seen[0]))
    # None before the rows, at the two that are not a matter of course, and at the next three.
    assert 6 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@linux
def test_a_queue_is_there_from_the_first_row_on_and_kept_for_who_comes_next(
    tmp_path: Path,
) -> None:
    """To end one takes the kernel so long that each close would be felt."""
    stores: list[SqliteRecords] = []
    for name in "ab":
        (tmp_path / name).mkdir()
        stores.append(SqliteRecords(tmp_path / name, SystemClock()))
        stores[-1].commit([create(b"a")])
        stores[-1].commit([append(1, journal_row(1, 1))])
    first, second = stores
    at_first = queues()
    first.commit([append(1, journal_row(1, 2))])
    with_one = queues()
    first.close()
    second.commit([append(1, journal_row(1, 2))])

    assert at_first <= with_one  # One of an earlier test may be there.
    assert with_one == queues()
    second.close()
    assert with_one == queues()


@linux
@pytest.mark.parametrize(
    ("bytes_max", "said"), [(0, errno.EFBIG), (SLOT + SLOT // 2, errno.ENOSPC)]
)
def test_what_the_disk_answers_is_said_and_the_row_not_acknowledged(
    records: SqliteRecords, bytes_max: int, said: int
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, before[1]))
    try:
        with pytest.raises(StoreUnwritable) as refused:
            records.commit([append(1, journal_row(1, 3))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert isinstance(refused.value.__cause__, OSError)
    assert said == refused.value.__cause__.errno
    records.revive()

    assert row_id(1, 2) == there(records.last(1)).id
    assert [row_id(1, 3)] == records.commit([append(1, journal_row(1, 3))])


@linux
def test_a_forked_child_writes_another_way(records: SqliteRecords) -> None:
    """It has the file, but the kernel gives its answers to the parent alone."""
    child = os.fork()
    if child == 0:
        os._exit(10 + ask(records))
    assert 11 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert [row_id(1, 4)] == records.commit([append(1, journal_row(1, 4))])


def test_a_lock_that_is_given_back_soon_is_waited_for(
    records: SqliteRecords, tmp_path: Path
) -> None:
    done = 0
    for _ in range(100):  # A busy machine may wake us late.
        with (tmp_path / "lock").open() as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            giving = threading.Timer(0.0005, fcntl.flock, (other, fcntl.LOCK_UN))
            giving.start()
            done = ask(records)
            giving.join()
        if done:
            break

    assert 1 == done
