"""The bell between processes, rung for real: a lost wake-up would show as a wait of a minute."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.store.backends.bell import BYTES, PLACE, Bell
from holdfast.testing.fakes import ManualClock

LONG_S = 60.0
WAITER = """
import os, sys
from holdfast.clock import SystemClock
from holdfast.store.backends.bell import Bell
bell = Bell(os.open(sys.argv[1], os.O_RDWR), SystemClock())
heard = bell.listen()
print("listening", flush=True)
bell.wait(heard, 60.0)
print("woken", flush=True)
"""


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    yield opened
    os.close(opened)


def test_a_ring_wakes_a_process_that_waits(fd: int, tmp_path: Path) -> None:
    bell = Bell(fd, SystemClock())
    command = [sys.executable, "-c", WAITER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiter:
        assert waiter.stdout is not None
        assert "listening\n" == waiter.stdout.readline()
        began = time.monotonic()

        bell.ring()

        assert "woken\n" == waiter.stdout.readline()
        assert time.monotonic() - began < LONG_S / 2
    bell.close()


def test_a_ring_between_listening_and_waiting_is_not_missed(fd: int) -> None:
    bell = Bell(fd, SystemClock())
    began = time.monotonic()

    heard = bell.listen()
    bell.ring()
    bell.wait(heard, LONG_S)

    assert time.monotonic() - began < LONG_S / 2
    bell.close()


def test_a_ring_that_nobody_listens_for_changes_nothing(fd: int) -> None:
    bell = Bell(fd, SystemClock())
    before = os.pread(fd, BYTES, 0)

    bell.ring()

    assert before == os.pread(fd, BYTES, 0)
    bell.close()


def test_what_stands_before_the_bell_in_the_file_is_kept(fd: int) -> None:
    os.pwrite(fd, b"pages!!!", 0)

    bell = Bell(fd, SystemClock())
    bell.listen()
    bell.ring()

    assert b"pages!!!" == os.pread(fd, PLACE, 0)
    bell.close()


def test_a_clock_that_a_test_moves_is_slept_on(fd: int) -> None:
    clock = ManualClock()
    bell = Bell(fd, clock)

    bell.wait(bell.listen(), LONG_S)

    assert [0.001] == clock.slept
    bell.close()


def test_ctrl_c_in_a_wait_leaves_a_bell_that_can_be_closed(fd: int) -> None:
    bell = Bell(fd, SystemClock())
    ours = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])

    ours.start()
    with pytest.raises(KeyboardInterrupt) as stopped:
        bell.wait(bell.listen(), LONG_S)
    bell.close()

    assert stopped.traceback  # still there, and with it the pointer into the shared memory


def test_a_bell_is_made_whole_where_the_disk_takes_a_part_at_a_time(
    fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:3], at))

    Bell(fd, ManualClock()).close()

    assert BYTES <= os.fstat(fd).st_size
