"""Commits shared by the runs of one process."""

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ClassVar

import pytest

from holdfast.errors import StoreClosed, StoreUnwritable
from holdfast.model.ids import row_id
from holdfast.store.backends.base import Write
from holdfast.store.backends.memory import MemoryRecords
from holdfast.store.committer import BATCH_MAX, Committer, Ticket
from holdfast.testing.fakes import Faulty
from holdfast.testing.rows import append, create, journal_row
from tests.unit.store.builders import Bench, bench, entry

WAIT_S = 20.0


class Gated(Faulty):
    """Records whose commits wait at a gate: who comes meanwhile, waits together."""

    def __init__(self) -> None:
        self.below = MemoryRecords()
        super().__init__(self.below)
        self.reached, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def shut(self) -> None:
        self.reached.clear()
        self.gate.clear()

    def commit(self, writes: Sequence[Write]) -> list[int]:
        self.reached.set()
        assert self.gate.wait(WAIT_S)
        return super().commit(writes)


@pytest.fixture
def records() -> Gated:
    """Records with run 1."""
    records = Gated()
    records.commit([create(b"a")])
    records.commits.clear()
    return records


@pytest.fixture
def committer(records: Gated) -> Committer:
    return Committer(records)


def queue_rows(committer: Committer, count: int) -> list[Ticket]:
    return [committer.submit(append(1, journal_row(1, n))) for n in range(1, count + 1)]


def rows(records: Gated) -> list[int]:
    return [row.id - row_id(1, 0) for row in records.rows(row_id(1, 1), row_id(2, 0))]


def test_all_that_is_queued_goes_into_the_commit_of_the_first_who_waits(
    committer: Committer, records: Gated
) -> None:
    tickets = queue_rows(committer, 10)

    assert row_id(1, 1) == committer.finish(tickets[0])

    assert [row_id(1, n) for n in range(1, 11)] == [committer.finish(each) for each in tickets]
    assert [10] == records.commits


def test_a_commit_takes_no_more_than_its_limit(committer: Committer, records: Gated) -> None:
    tickets = queue_rows(committer, BATCH_MAX + 44)

    assert row_id(1, BATCH_MAX + 44) == committer.finish(tickets[-1])

    assert [BATCH_MAX, 44] == records.commits
    assert list(range(1, BATCH_MAX + 45)) == rows(records)


def test_threads_that_come_during_a_commit_share_the_next(
    committer: Committer, records: Gated
) -> None:
    records.shut()
    queued = threading.Barrier(6)

    def follow(n: int) -> int:
        ticket = committer.submit(append(1, journal_row(1, n)))
        queued.wait(WAIT_S)
        return committer.finish(ticket)

    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(committer.finish, committer.submit(create(b"b")))
        assert records.reached.wait(WAIT_S)
        committer.submit(append(1, journal_row(1, 1)))
        followers = [pool.submit(follow, 1) for _ in range(5)]
        queued.wait(WAIT_S)
        records.gate.set()
        results = [follower.result(WAIT_S) for follower in followers]

    assert 2 == first.result()
    assert [row_id(1, 1)] * 5 == results
    assert [1, 6] == records.commits


def test_rows_of_one_run_stay_in_order_when_its_threads_write_at_once() -> None:
    small = _bench(records := Gated())
    writer = small.start("a")
    records.commits.clear()

    def work(n: int) -> int:
        row, ticket = writer.submit([entry(n)])
        writer.finish(ticket)
        return row.id

    with ThreadPoolExecutor(8) as pool:
        ids = sorted(pool.map(work, range(200)))

    assert [row_id(1, n) for n in range(1, 201)] == ids
    assert 201 == len(small.line("a"))
    assert 200 == sum(records.commits)


def test_an_error_reaches_everyone_whose_write_was_in_the_commit(
    committer: Committer, records: Gated
) -> None:
    full = StoreUnwritable("store", "the disk is full")
    records.fail(full)
    tickets = queue_rows(committer, 3)

    for ticket in tickets:
        with pytest.raises(StoreUnwritable) as caught:
            committer.finish(ticket)
        assert full is caught.value

    assert [] == rows(records)
    assert row_id(1, 1) == committer.finish(*queue_rows(committer, 1))


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_leader_leaves_its_writes_to_the_next(
    committer: Committer, records: Gated, interrupt: type[BaseException], is_done: bool
) -> None:
    records.fail(interrupt(), is_done=is_done)
    tickets = queue_rows(committer, 3)

    with pytest.raises(interrupt):
        committer.finish(tickets[0])

    assert row_id(1, 3) == committer.finish(tickets[2])
    assert row_id(1, 1) == committer.finish(tickets[0])
    assert [1, 2, 3] == rows(records)
    assert [3, 3] == records.commits


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_threads_that_followed_an_interrupted_leader_are_served(
    committer: Committer, records: Gated, is_done: bool
) -> None:
    records.shut()
    records.fail(KeyboardInterrupt(), is_done=is_done)
    tickets = queue_rows(committer, 4)

    with ThreadPoolExecutor(4) as pool:
        leader = pool.submit(committer.finish, tickets[0])
        assert records.reached.wait(WAIT_S)
        followers = [pool.submit(committer.finish, each) for each in tickets[1:]]
        records.gate.set()
        with pytest.raises(KeyboardInterrupt):
            leader.result(WAIT_S)
        results = [follower.result(WAIT_S) for follower in followers]

    assert [row_id(1, n) for n in (2, 3, 4)] == results
    assert [1, 2, 3, 4] == rows(records)


async def test_tasks_share_commits_while_their_loop_goes_on(
    committer: Committer, records: Gated
) -> None:
    records.shut()
    tickets = queue_rows(committer, 1)
    first = asyncio.create_task(committer.afinish(tickets[0]))
    await asyncio.to_thread(records.reached.wait, WAIT_S)

    tickets += [committer.submit(append(1, journal_row(1, n))) for n in range(2, 12)]
    others = [asyncio.create_task(committer.afinish(each)) for each in tickets[1:]]
    for _ in range(5):  # The loop turns though the commit stands at the gate.
        await asyncio.sleep(0)
    assert not first.done()
    records.gate.set()

    assert [row_id(1, n) for n in range(1, 12)] == await asyncio.gather(first, *others)
    assert [1, 10] == records.commits
    assert row_id(1, 1) == await committer.afinish(tickets[0])
    committer.close()


class Overtaken(Ticket):
    """A ticket that somebody else's commit settles just before its task begins to wait."""

    __slots__ = ()
    committer: ClassVar[Committer]

    def __setattr__(self, name: str, value: object) -> None:
        if name == "waiter":
            self.committer.finish(self)
        super().__setattr__(name, value)


async def test_a_task_whose_write_is_settled_before_it_waits_does_not_wait(
    committer: Committer,
) -> None:
    [ticket] = queue_rows(committer, 1)
    Overtaken.committer, ticket.__class__ = committer, Overtaken

    assert row_id(1, 1) == await asyncio.wait_for(committer.afinish(ticket), WAIT_S)
    committer.close()


async def test_the_write_of_a_cancelled_task_is_committed_all_the_same(
    committer: Committer, records: Gated
) -> None:
    records.shut()
    tickets = queue_rows(committer, 2)
    task = asyncio.create_task(committer.afinish(tickets[0]))
    await asyncio.to_thread(records.reached.wait, WAIT_S)

    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    records.gate.set()

    assert row_id(1, 2) == await committer.afinish(tickets[1])
    assert [1, 2] == rows(records)
    committer.close()


async def test_an_error_reaches_a_task(committer: Committer, records: Gated) -> None:
    records.fail(StoreUnwritable("store", "the disk is full"))

    with pytest.raises(StoreUnwritable):
        await committer.afinish(*queue_rows(committer, 1))

    committer.close()


async def test_a_task_is_served_when_the_thread_that_led_for_it_is_interrupted(
    committer: Committer, records: Gated
) -> None:
    records.shut()
    records.fail(KeyboardInterrupt())
    tickets = queue_rows(committer, 2)
    with ThreadPoolExecutor(1) as pool:
        leader = pool.submit(committer.finish, tickets[0])
        await asyncio.to_thread(records.reached.wait, WAIT_S)
        task = asyncio.create_task(committer.afinish(tickets[1]))
        await asyncio.sleep(0)
        records.gate.set()

        assert row_id(1, 2) == await asyncio.wait_for(task, WAIT_S)
        with pytest.raises(KeyboardInterrupt):
            leader.result(WAIT_S)

    assert [1, 2] == rows(records)
    committer.close()


def test_a_loop_that_was_closed_meanwhile_harms_nobody(
    committer: Committer, records: Gated
) -> None:
    records.shut()
    tickets = queue_rows(committer, 2)

    async def leave() -> None:
        task = asyncio.create_task(committer.afinish(tickets[0]))
        await asyncio.to_thread(records.reached.wait, WAIT_S)
        task.cancel()

    asyncio.run(leave())
    records.gate.set()

    assert row_id(1, 2) == committer.finish(tickets[1])
    assert row_id(1, 1) == tickets[0].outcome()
    committer.close()


def test_a_thread_and_a_task_wait_for_the_same_commit(committer: Committer, records: Gated) -> None:
    records.shut()
    tickets = queue_rows(committer, 2)
    done: Future[int] = Future()
    thread = threading.Thread(target=lambda: done.set_result(committer.finish(tickets[1])))

    async def wait() -> int:
        task = asyncio.create_task(committer.afinish(tickets[0]))
        await asyncio.to_thread(records.reached.wait, WAIT_S)
        thread.start()
        records.gate.set()
        return await task

    assert row_id(1, 1) == asyncio.run(wait())
    assert row_id(1, 2) == done.result(WAIT_S)
    thread.join()
    committer.close()


def test_closing_commits_what_is_queued(committer: Committer, records: Gated) -> None:
    tickets = queue_rows(committer, BATCH_MAX + 1)

    committer.close()

    assert [BATCH_MAX, 1] == records.commits
    assert row_id(1, BATCH_MAX + 1) == committer.finish(tickets[-1])


def test_a_refused_committer_raises_why_and_writes_nothing(
    committer: Committer, records: Gated
) -> None:
    fault = StoreClosed("store", "was opened before this process forked")
    committer.refuse(fault)

    with pytest.raises(StoreClosed) as caught:
        committer.finish(*queue_rows(committer, 1))

    assert fault is caught.value
    assert [] == records.commits


async def test_a_task_does_not_wait_for_a_committer_that_is_closed_or_refused(
    committer: Committer, records: Gated
) -> None:
    committer.close()
    records.close()
    with pytest.raises(StoreClosed):
        await asyncio.wait_for(committer.afinish(*queue_rows(committer, 1)), WAIT_S)

    committer.refuse(StoreUnwritable("store", "gone"))
    with pytest.raises(StoreUnwritable):
        await asyncio.wait_for(committer.afinish(*queue_rows(committer, 1)), WAIT_S)


async def test_closing_serves_the_tasks_that_wait(committer: Committer, records: Gated) -> None:
    records.shut()
    tickets = queue_rows(committer, BATCH_MAX + 1)
    first = asyncio.create_task(committer.afinish(tickets[0]))
    await asyncio.to_thread(records.reached.wait, WAIT_S)
    last = asyncio.create_task(committer.afinish(tickets[-1]))
    await asyncio.sleep(0)
    closing = asyncio.create_task(asyncio.to_thread(committer.close))
    records.gate.set()

    assert row_id(1, 1) == await asyncio.wait_for(first, WAIT_S)
    assert row_id(1, BATCH_MAX + 1) == await asyncio.wait_for(last, WAIT_S)
    await closing


def _bench(records: Gated) -> Bench:
    return bench(records, records.below.store_id)
