"""Locks between processes, tried between open files: the kernel sees no difference."""

import fcntl
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import StoreBusy, StoreUnwritable
from holdfast.store.backends import locks
from holdfast.store.backends.locks import ByteLocks, CommitLock
from holdfast.testing.fakes import ManualClock


def test_the_commit_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    clock = ManualClock()
    one, two = CommitLock(tmp_path / "lock", clock), CommitLock(tmp_path / "lock", clock)

    with one.held(), pytest.raises(StoreBusy) as caught, two.held():
        pytest.fail("two hold one lock")

    assert 30 < caught.value.waited_s < 31
    assert str(tmp_path) == caught.value.path
    with two.held():
        pass
    one.close()
    two.close()


def test_whatever_a_power_cut_left_of_the_shared_number_is_counted_on(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"\xff" * 64)
    lock = CommitLock(tmp_path / "lock", ManualClock())

    with lock.held():
        assert 8 == lock.count(9)
        assert 0 == lock.count(-8)
    lock.close()


def test_who_waits_gets_the_commit_lock_as_soon_as_it_is_free(tmp_path: Path) -> None:
    clock = ManualClock()
    one, two = CommitLock(tmp_path / "lock", clock), CommitLock(tmp_path / "lock", clock)
    holding = one.held()
    holding.__enter__()

    def free_at_the_third_look() -> None:
        if 3 == len(clock.slept):
            holding.__exit__(None, None, None)

    clock.during_sleep = free_at_the_third_look
    with two.held():
        assert 3 == len(clock.slept)

    assert sum(clock.slept) < 0.1
    one.close()
    two.close()


def test_an_error_inside_frees_the_commit_lock(tmp_path: Path) -> None:
    clock = ManualClock()
    one, two = CommitLock(tmp_path / "lock", clock), CommitLock(tmp_path / "lock", clock)

    with pytest.raises(KeyError), one.held():
        raise KeyError

    with two.held():
        assert [] == clock.slept
    one.close()
    one.close()
    two.close()


def test_a_number_is_taken_by_one_open_file_at_a_time(tmp_path: Path) -> None:
    one, two = ByteLocks(tmp_path / "leases"), ByteLocks(tmp_path / "leases")

    assert one.take(7)
    assert one.take(7)
    assert not two.take(7)
    assert two.take(8)
    assert (True, False) == (two.is_taken(7), one.is_taken(7))
    assert (False, False) == (one.is_taken(9), two.is_taken(9))

    two.give(7)
    assert not two.take(7)
    one.give(7)
    assert two.take(7)
    one.close()
    two.close()


def test_closing_another_handle_of_the_same_file_frees_nothing(tmp_path: Path) -> None:
    one, two, three = (ByteLocks(tmp_path / "leases") for _ in range(3))
    one.take(1)
    one.take(1 << 40)

    two.close()

    assert not three.take(1)
    assert not three.take(1 << 40)
    one.close()
    one.close()
    one.give(1)
    assert three.take(1)
    three.close()


def test_a_kill_frees_what_the_process_held(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys\n"
        "from holdfast.clock import SystemClock\n"
        "from holdfast.store.backends.locks import ByteLocks, CommitLock\n"
        "place = pathlib.Path(sys.argv[1])\n"
        "ByteLocks(place / 'leases').take(7)\n"
        "locks = ByteLocks(place / 'leases'); locks.take(7)\n"
        "with CommitLock(place / 'lock', SystemClock()).held():\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    clock = ManualClock()
    mine, lock = ByteLocks(tmp_path / "leases"), CommitLock(tmp_path / "lock", clock)
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert b"held\n" == child.stdout.readline()
        assert not mine.take(7)
        assert mine.is_taken(7)
        with pytest.raises(StoreBusy), lock.held():
            pytest.fail("two hold one lock")

        child.send_signal(signal.SIGKILL)
        child.wait()

    assert mine.take(7)
    with lock.held():
        pass
    mine.close()
    lock.close()


def test_a_lock_file_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "leases").mkdir()

    with pytest.raises(StoreUnwritable):
        ByteLocks(tmp_path / "leases")


def test_on_a_mac_the_lock_is_laid_out_as_its_kernel_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bytes]] = []

    def kernel(_: int, command: int, lock: bytes) -> bytes:
        asked.append((command, lock))
        return lock

    with monkeypatch.context() as patch:
        patch.setattr(locks, "IS_MAC", True)
        patch.setattr("holdfast.store.backends.locks.fcntl.fcntl", kernel)
        leases = ByteLocks(tmp_path / "leases")
        assert leases.take(5)
        assert leases.is_taken(5)
        leases.give(5)

    # start, length, process, kind, whence: the order of <sys/fcntl.h> there.
    laid_out = [struct.unpack("=qqihh", lock) for _, lock in asked]
    kinds = [fcntl.F_WRLCK, fcntl.F_WRLCK, fcntl.F_UNLCK]
    assert [(5, 1, 0, kind, os.SEEK_SET) for kind in kinds] == laid_out
    leases.close()
