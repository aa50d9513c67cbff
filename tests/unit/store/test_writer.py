"""The one writer of a run: rows in a chain, every write fenced."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import Fenced, StoreUnwritable
from holdfast.model.ids import row_id
from holdfast.model.journal import Based, Redone, Resumed
from holdfast.model.run import Status
from holdfast.store.backends.base import Write
from holdfast.store.backends.memory import MemoryRecords
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.store.committer import Ticket
from holdfast.store.writer import PACK_BYTES, PACK_BYTES_MIN, PACK_ROWS, create, take_up
from holdfast.testing.fakes import Faulty, ManualClock
from tests.unit.store.builders import (
    HOLDER,
    Bench,
    add,
    based,
    bench,
    body_of,
    changed,
    entry,
    memory_bench,
    noise,
    resumed,
    tampering,
)


@pytest.fixture(params=["memory", "sqlite"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if "memory" == request.param:
        yield memory_bench()
    else:
        records = SqliteRecords(tmp_path, SystemClock())
        yield bench(records, records.store_id)
        records.close()


def test_a_run_is_made_once(small: Bench) -> None:
    writer = small.start("a")

    assert create(small.committer, small.reader.seals, body_of("a"), resumed(1)) is None
    assert [resumed(1)] == small.entries("a")
    assert (1, 1) == (writer.run.row.epoch, small.find("a").row.epoch)


def test_rows_are_chained_in_the_order_in_which_they_were_submitted(small: Bench) -> None:
    writer = small.start("a")

    queued = [writer.submit([entry(n)], turn=n) for n in range(5)]
    for _, ticket in reversed(queued):
        writer.finish(ticket)

    assert [row_id(1, n) for n in range(1, 6)] == [row.id for row, _ in queued]
    assert [resumed(1), *map(entry, range(5))] == small.entries("a")
    assert [-1, 0, 1, 2, 3, 4] == [row.turn for row in small.line("a")]


def test_each_row_says_where_the_newest_base_is(small: Bench) -> None:
    writer = small.start("a", rows=1)

    add(writer, entry(1), based(1))
    add(writer, entry(2))
    writer = small.take_up("a")
    add(writer, entry(3))

    assert [-1, -1] + [row_id(1, 2)] * 4 == [row.base for row in small.line("a")]


def test_the_catalog_changes_in_the_commit_of_a_row(small: Bench) -> None:
    writer = small.start("a")
    body = changed(writer.run.body, "why")

    _, ticket = writer.submit([entry(1)], body=body)
    writer.finish(ticket)

    assert "why" == small.find("a").body.error
    assert Status.RUNNING is small.find("a").body.status
    assert body == writer.run.body


def test_whoever_wrote_before_a_takeover_is_fenced_for_good(small: Bench) -> None:
    old = small.start("a", rows=1)
    at = small.reader.row(row_id(1, 1))

    new = small.take_up("a")
    add(new, entry(2))

    with pytest.raises(Fenced, match=r"run a was taken over .* epoch 1"):
        add(old, entry(9))
    with pytest.raises(Fenced):
        old.submit([entry(9)])
    with pytest.raises(Fenced):
        old.grow(at, [Redone(1.0, 0, None)], [])
    assert 2 == small.find("a").row.epoch
    assert [resumed(1), entry(0), resumed(2), entry(2)] == small.entries("a")


def test_a_fenced_writer_cannot_branch_off(small: Bench) -> None:
    old = small.start("a", rows=1)
    at = small.reader.row(row_id(1, 1))
    small.take_up("a")

    with pytest.raises(Fenced):
        old.grow(at, [Redone(1.0, 0, None)], [b"intent"])

    assert 1 == small.find("a").row.head
    assert [] == small.records.intended(1, b"intent")


def test_a_takeover_that_read_before_another_wrote_is_refused(small: Bench) -> None:
    writer = small.start("a")
    found = small.find("a")
    history, tail = small.reader.history(found), small.records.tail(1)
    add(writer, entry(1))

    with pytest.raises(Fenced):
        take_up(
            small.committer,
            small.reader.seals,
            history,
            tail,
            body=found.body,
            entry=resumed(2),
        )

    assert 1 == small.find("a").row.epoch
    add(writer, entry(2))
    assert [resumed(1), entry(1), entry(2)] == small.entries("a")


@pytest.mark.parametrize("packs_before", [0, 1])
def test_a_takeover_does_not_fall_behind_rows_that_were_packed_meanwhile(
    small: Bench, packs_before: int
) -> None:
    writer = small.start("a")
    for _ in range(packs_before):
        add(writer, entry(0, noise(PACK_BYTES)))
    found = small.find("a")
    history, tail = small.reader.history(found), small.records.tail(1)
    add(writer, entry(1, noise(PACK_BYTES)))

    with pytest.raises(Fenced):
        take_up(
            small.committer,
            small.reader.seals,
            history,
            tail,
            body=found.body,
            entry=resumed(2),
        )

    add(writer, entry(2))
    assert [entry(1, noise(PACK_BYTES)), entry(2)] == small.entries("a")[-2:]


def test_a_branch_becomes_the_head_and_goes_on_from_its_row(small: Bench) -> None:
    writer = small.start("a", rows=3)
    at = small.reader.row(row_id(1, 2))

    writer.grow(at, [Redone(1.0, at.id, "why"), entry(7)], [b"intent"])
    add(writer, entry(8))

    assert 2 == small.find("a").row.head == writer.run.row.head
    redone = [Redone(1.0, at.id, "why"), entry(7), entry(8)]
    assert [resumed(1), entry(0), entry(1), *redone] == small.entries("a")
    assert [row_id(2, 3)] == small.records.intended(1, b"intent")
    assert row_id(1, 3) == small.reader.end(1)


@pytest.mark.parametrize("has_base", [False, True])
def test_a_branch_knows_the_base_of_its_row_or_brings_its_own(small: Bench, has_base: bool) -> None:
    writer = small.start("a")
    at = small.reader.row(add(writer, based(1)))
    add(writer, based(2))

    writer.grow(at, [Based(3, 0, b"own", [])] if has_base else [entry(3)], [])
    add(writer, entry(4))

    first = row_id(2, 2) if has_base else row_id(1, 1)
    assert first == writer.base
    assert first == small.reader.history(small.find("a")).rows[0].id


class Twice(Faulty):
    """Commits that are done, forgotten, and done again, as after Ctrl-C in a leader."""

    is_on = False

    def commit(self, writes: Sequence[Write]) -> list[int]:
        if self.is_on:
            super().commit(writes)
        return super().commit(writes)


def test_after_an_interrupted_commit_the_writer_stands_on_the_branch_that_is_the_head() -> None:
    records = Twice(MemoryRecords())
    small = bench(records, bytes(16))
    writer = small.start("a", rows=2)
    at = small.reader.row(row_id(1, 1))

    records.is_on = True
    writer.grow(at, [Redone(1.0, 0, None)], [])
    add(writer, entry(7))

    assert 3 == small.find("a").row.head == writer.run.row.head
    assert [Redone(1.0, 0, None), entry(7)] == small.entries("a")[-2:]


def test_once_a_write_has_failed_every_later_one_is_refused() -> None:
    records = Faulty(MemoryRecords())
    small = bench(records, bytes(16))
    writer = small.start("a", rows=1)
    at = small.reader.row(row_id(1, 1))
    full = StoreUnwritable("store", "the disk is full")
    records.fail(full)

    for write in (
        lambda: add(writer, entry(1)),
        lambda: add(writer, entry(2)),
        lambda: writer.grow(at, [Redone(1.0, 0, None)], []),
    ):
        with pytest.raises(StoreUnwritable) as caught:
            write()
        assert full is caught.value

    assert [resumed(1), entry(0)] == small.entries("a")


async def test_a_task_is_told_of_a_failure_and_of_a_fence_like_a_thread() -> None:
    records = Faulty(MemoryRecords())
    small = bench(records, bytes(16))
    failing, fenced = small.start("a"), small.start("b")
    small.take_up("b")
    records.fail(StoreUnwritable("store", "the disk is full"))

    _, ticket = failing.submit([entry(1)])
    with pytest.raises(StoreUnwritable):
        await failing.afinish(ticket)
    _, ticket = fenced.submit([entry(1)])
    with pytest.raises(Fenced):
        await fenced.afinish(ticket)
    writer = small.take_up("a")
    _, ticket = writer.submit([entry(2)])
    await writer.afinish(ticket)

    assert [resumed(1), resumed(2), entry(2)] == small.entries("a")
    small.committer.close()


def test_a_row_behind_one_that_failed_leaves_no_gap() -> None:
    class Late(Faulty):
        """While a commit fails, another thread of the run has queued the next row."""

        def commit(self, writes: Sequence[Write]) -> list[int]:
            if self._faults:
                behind.append(writer.submit([entry(2)])[1])
            return super().commit(writes)

    records = Late(MemoryRecords())
    behind: list[Ticket] = []
    small = bench(records, bytes(16))
    writer = small.start("a")
    full = StoreUnwritable("store", "the disk is full")
    records.fail(full)

    for write in (lambda: add(writer, entry(1)), lambda: writer.finish(*behind)):
        with pytest.raises(StoreUnwritable) as caught:
            write()
        assert full is caught.value

    small.take_up("a")
    assert [resumed(1), resumed(2)] == small.entries("a")


@pytest.mark.parametrize("is_taken_up", [False, True], ids=["one life", "many lives"])
def test_aged_rows_are_packed_and_read_as_before(tmp_path: Path, is_taken_up: bool) -> None:
    records = SqliteRecords(tmp_path, SystemClock())
    small = bench(records, records.store_id)
    writer, reference = small.start("a"), memory_bench()
    twin = reference.start("a")

    for n in range(41):
        text = noise(PACK_BYTES // 8)
        assert add(twin, entry(n, text)) == add(writer, entry(n, text))
        if is_taken_up and n % 3 == 0:
            twin, writer = reference.take_up("a"), small.take_up("a")
        assert small.reader.end(1) == row_id(1, 0) + len(small.line("a")) - 1

    assert reference.entries("a") == small.entries("a")
    small.settle()
    with tampering(tmp_path) as link:
        packs = link.execute("SELECT first, id FROM pack ORDER BY id").fetchall()
        loose = [id_ for (id_,) in link.execute("SELECT id FROM j ORDER BY id")]
    assert 4 <= len(packs) <= 6
    assert row_id(1, 0) == packs[0][0]
    assert [last + 1 for _, last in packs] == [*(first for first, _ in packs[1:]), loose[0]]
    records.close()


@pytest.mark.parametrize(
    ("size", "in_a_pack"), [(PACK_BYTES * 5 // 8, PACK_ROWS), (PACK_BYTES * 3, 2)]
)
def test_long_rows_wait_for_others_before_they_are_packed(
    tmp_path: Path, size: int, in_a_pack: int
) -> None:
    records = SqliteRecords(tmp_path, SystemClock())
    small = bench(records, records.store_id)
    writer = small.start("a")

    for n in range(1, 13):
        add(writer, entry(n, noise(size)))

    small.settle()
    with tampering(tmp_path) as link:
        packs = link.execute("SELECT first, id FROM pack ORDER BY id").fetchall()
    assert {in_a_pack} == {last - first + 1 for first, last in packs[1:]}
    records.close()


def test_the_end_of_a_run_packs_what_is_worth_it(tmp_path: Path) -> None:
    records = SqliteRecords(tmp_path, SystemClock())
    small = bench(records, records.store_id)

    for name, size in (("short", 10), ("long", PACK_BYTES_MIN)):
        writer = small.start(name)
        _, ticket = writer.submit([entry(1, b"x" * size)], body=writer.run.body)
        writer.finish(ticket)

    assert row_id(1, 0) == records.tail(1)[0]
    assert (-1, 0) == records.tail(2)
    assert [resumed(1), entry(1, b"x" * PACK_BYTES_MIN)] == small.entries("long")
    records.close()


def test_a_clock_that_is_set_back_changes_no_order_and_breaks_nothing(small: Bench) -> None:
    clock = ManualClock()
    writer = small.start("a")

    times = []
    for epoch in range(2, 6):
        times.append(clock.now())
        add(writer, Redone(clock.now(), 0, None))
        writer = small.take_up("a")
        add(writer, Resumed(clock.now(), epoch, HOLDER, None))
        clock.set(clock.now() - 3600.0)

    redone = [entry for entry in small.entries("a") if isinstance(entry, Redone)]
    assert times == [entry.at for entry in redone]
    assert times == sorted(times, reverse=True)
    assert 5 == small.find("a").row.epoch
