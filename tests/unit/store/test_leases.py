"""Who may write a run: two handles on one directory, and time that a test moves."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.errors import StoreUnwritable
from holdfast.store.leases import BEAT_S, STALL_S, Leases
from holdfast.testing.fakes import ManualClock

Open = Callable[[], Leases]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def handle(tmp_path: Path, clock: ManualClock) -> Iterator[Open]:
    """Opens handles, as each process would."""
    with contextlib.ExitStack() as stack:

        def opened() -> Leases:
            return stack.enter_context(contextlib.closing(Leases(tmp_path, clock)))

        yield opened


def test_a_run_is_held_by_one_handle_at_a_time(handle: Open, clock: ManualClock) -> None:
    one, two = handle(), handle()

    assert one.take(1)
    assert not one.take(1)
    assert not two.take(1)
    assert two.take(2)

    assert [] == clock.slept
    assert all(each.is_held(run) for each in (one, two) for run in (1, 2))
    assert not one.is_held(3)


def test_a_run_that_is_given_back_can_be_taken_at_once(handle: Open, clock: ManualClock) -> None:
    one, two = handle(), handle()
    one.take(1)

    one.give(1)
    one.give(1)
    two.give(1)

    assert not one.is_held(1)
    assert two.take(1)
    assert [] == clock.slept


def test_the_run_of_a_dead_holder_is_taken_at_once(tmp_path: Path, handle: Open) -> None:
    program = (
        "import pathlib, sys\n"
        "from holdfast.clock import SystemClock\n"
        "from holdfast.store.leases import Leases\n"
        "leases = Leases(pathlib.Path(sys.argv[1]), SystemClock())\n"
        "print(leases.take(1), flush=True)\n"
        "sys.stdin.read()\n"
    )
    leases = handle()
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert b"True\n" == child.stdout.readline()
        assert leases.is_held(1)

        child.send_signal(signal.SIGKILL)
        child.wait()

    assert not leases.is_held(1)
    assert leases.take(1)


def test_a_holder_that_beats_keeps_its_run(handle: Open, clock: ManualClock) -> None:
    holder, other = handle(), handle()
    holder.take(1)
    for _ in range(20):
        clock.advance(BEAT_S)
        holder.beat()
        assert not other.take(1)

    clock.advance(100 * STALL_S)  # Late by far, but alive: it beats while the other looks.
    clock.during_sleep = holder.beat
    assert not other.take(1)

    assert 1 == len(clock.slept)


def test_the_run_of_a_stalled_holder_is_taken_after_the_stall_time(
    handle: Open, clock: ManualClock
) -> None:
    holder, other, third = handle(), handle(), handle()
    holder.take(1)
    clock.advance(2 * BEAT_S)

    assert other.take(1)

    assert STALL_S == pytest.approx(sum(clock.slept), abs=0.2)
    holder.beat()  # It wakes up and still thinks that it holds the run: its epoch is fenced.
    assert not third.take(1)
    holder.give(1)
    other.beat()
    assert not third.take(1)
    other.give(1)
    assert third.take(1)


def test_who_waits_for_a_stalled_holder_does_not_beat_for_it(
    handle: Open, clock: ManualClock
) -> None:
    holder, other, third = handle(), handle(), handle()
    holder.take(1)
    clock.advance(2 * BEAT_S)
    clock.during_sleep = other.beat

    assert other.take(1)
    clock.during_sleep = None

    assert STALL_S == pytest.approx(sum(clock.slept), abs=0.2)
    assert not third.take(1)


def test_a_holder_that_dies_while_it_is_watched_is_not_waited_for(
    handle: Open, clock: ManualClock
) -> None:
    holder, other = handle(), handle()
    holder.take(1)
    clock.advance(2 * BEAT_S)
    clock.during_sleep = holder.close

    assert other.take(1)

    assert 1 == len(clock.slept)


def test_a_beat_from_before_a_reboot_is_no_sign_of_life(
    tmp_path: Path, handle: Open, clock: ManualClock
) -> None:
    ahead = Leases(tmp_path, ManualClock(monotonic=clock.monotonic() + 1e6))
    ahead.take(1)

    assert handle().take(1)

    assert STALL_S == pytest.approx(sum(clock.slept), abs=0.2)
    ahead.close()


def test_a_lock_without_any_beat_is_watched_too(
    tmp_path: Path, handle: Open, clock: ManualClock
) -> None:
    handle().take(1)
    (tmp_path / "beats").write_bytes(b"")

    assert handle().take(1)

    assert STALL_S == pytest.approx(sum(clock.slept), abs=0.2)


def test_a_wall_clock_that_is_set_back_takes_no_run_from_anybody(
    handle: Open, clock: ManualClock
) -> None:
    holder, other = handle(), handle()
    holder.take(1)

    clock.set(clock.now() - 86_400)

    assert not other.take(1)
    assert [] == clock.slept


def test_of_many_threads_that_want_one_run_one_gets_it(handle: Open) -> None:
    leases, gate = handle(), threading.Barrier(6)

    def take(_: int) -> bool:
        gate.wait()
        return leases.take(1)

    with ThreadPoolExecutor(6) as pool:
        assert [True] == [taken for taken in pool.map(take, range(6)) if taken]


def test_beats_go_on_while_runs_are_taken_and_given(handle: Open) -> None:
    leases, is_over = handle(), threading.Event()

    def beat() -> int:
        count = 0
        while not is_over.is_set():
            leases.beat()
            count += 1
        return count

    with ThreadPoolExecutor(1) as pool:
        beating = pool.submit(beat)
        for run in range(400):
            assert leases.take(run)
            leases.give(run)
        is_over.set()
        assert beating.result() > 0

    assert not any(leases.is_held(run) for run in range(400))


def test_a_full_disk_refuses_a_run_and_misses_a_beat(
    handle: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = handle(), handle()
    one.take(1)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", full)
        with pytest.raises(StoreUnwritable, match="no space left"):
            one.take(2)
        one.beat()

    assert not one.is_held(2)
    assert two.take(2)
    assert one.is_held(1)


def test_who_is_interrupted_while_waiting_holds_nothing(handle: Open, clock: ManualClock) -> None:
    holder, other = handle(), handle()
    holder.take(1)
    clock.advance(2 * BEAT_S)

    def interrupt() -> None:
        raise KeyboardInterrupt

    clock.during_sleep = interrupt
    with pytest.raises(KeyboardInterrupt):
        other.take(1)

    clock.during_sleep = None
    holder.give(1)
    assert other.take(1)


def test_after_a_fork_the_child_lets_go_without_waiting_for_anybody(handle: Open) -> None:
    leases, other = handle(), handle()
    leases.take(1)
    with leases._lock:  # noqa: SLF001 -- as a thread of the parent held it in that moment
        leases.close()

    leases.give(1)
    leases.beat()
    assert other.take(1)


def test_files_that_cannot_be_made_say_why(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "beats").mkdir()

    with pytest.raises(StoreUnwritable):
        Leases(tmp_path, clock)


def test_a_run_that_was_taken_from_a_stalled_process_and_let_go_is_taken_at_once(
    handle: Open, clock: ManualClock
) -> None:
    stalled, heir, next_one = handle(), handle(), handle()
    stalled.take(1)
    clock.advance(STALL_S)
    assert heir.take(1)
    clock.slept.clear()

    heir.give(1)

    assert not next_one.is_held(1)
    assert next_one.take(1)
    assert sum(clock.slept) < BEAT_S
    assert heir.is_held(1)
    assert not heir.take(1)


def test_a_stalled_process_that_wakes_up_is_seen_after_its_heir_has_let_go(
    handle: Open, clock: ManualClock
) -> None:
    stalled, heir, next_one = handle(), handle(), handle()
    stalled.take(1)
    clock.advance(STALL_S)
    assert heir.take(1)
    heir.give(1)

    stalled.beat()

    assert next_one.is_held(1)
    assert not next_one.take(1)
    stalled.give(1)
    assert next_one.take(1)


def test_who_has_just_locked_a_run_that_was_let_go_is_not_passed_over(
    handle: Open, clock: ManualClock
) -> None:
    stalled, heir, late = handle(), handle(), handle()
    stalled.take(1)
    clock.advance(STALL_S)
    heir.take(1)
    heir.give(1)
    # It had locked the run and comes to its first beat meanwhile.
    clock.during_sleep = stalled.beat

    assert not late.take(1)
