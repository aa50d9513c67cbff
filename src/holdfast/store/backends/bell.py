"""A bell between processes: who waits sleeps until it is rung, or for a moment at most.

Linux lets processes sleep on a number in shared memory (futex). Python does not offer that call, so
it is made by number; where that is not possible, waiting is a short sleep. The bell is only a hint:
a ring may be lost, with the process that should have rung, so who was woken or not looks again.
"""

import functools
import mmap
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.clock import Clock, SystemClock
from holdfast.ondemand import OnDemand

if TYPE_CHECKING:
    import ctypes
else:
    ctypes = OnDemand("ctypes")  # Loaded by who waits or wakes somebody, which is rare.

PLACE, BYTES = 8, 16
"""Where in the file the two numbers of the bell stand, and where they end."""
SLEEP_S = 0.001

_RINGS, _LISTENED = 2, 3  # as places among the 4-byte numbers of the file
_WAIT, _WAKE = 0, 1
_FUTEX = {"x86_64": 202, "aarch64": 98}  # the number of the system call; by machine


class Bell:
    """Two numbers at `PLACE` of an open file: how often it was rung, and whether anybody listens.

    Listen, look whether there is still something to wait for, wait; ring after it has changed.
    """

    def __init__(self, fd: int, clock: Clock) -> None:
        self._clock = clock
        while (size := os.fstat(fd).st_size) < BYTES:
            # Memory without a disk block is a trap; and the disk may take a part at a time.
            at = max(size, PLACE)
            os.pwrite(fd, bytes(BYTES - at), at)
        self._shared = mmap.mmap(fd, BYTES)
        self._words = memoryview(self._shared).cast("I")
        # A clock that a test moves is waited for by its own sleep.
        is_real = sys.platform == "linux" and isinstance(clock, SystemClock)
        self._call = _FUTEX.get(os.uname().machine) if is_real else None

    def listen(self) -> int:
        """Say that somebody waits from now on; returns what to wait with."""
        self._words[_LISTENED] = 1
        return self._words[_RINGS]

    def wait(self, heard: int, seconds: float) -> None:
        """Sleep until the bell is rung, `seconds` at most, unless it was since `listen`."""
        if self._call is None:
            self._clock.sleep(min(seconds, SLEEP_S))
        else:
            nanoseconds = int(seconds * 1e9)
            limit = (ctypes.c_long * 2)(nanoseconds // 10**9, nanoseconds % 10**9)
            self._futex(_WAIT, heard, ctypes.byref(limit))

    def ring(self) -> None:
        """Wake one who waits; next to nothing when nobody does."""
        words = self._words
        if words[_LISTENED]:
            words[_LISTENED] = 0
            words[_RINGS] = (words[_RINGS] + 1) & 0xFFFFFFFF
            if self._call is not None:
                self._futex(_WAKE, 1, None)

    def _futex(self, act: int, number: int, limit: Any) -> None:  # noqa: ANN401 a pointer
        """Make the system call; whatever it says, who waits looks again."""
        word = ctypes.byref(ctypes.c_uint32.from_buffer(self._shared, PLACE))
        _system_call()(ctypes.c_long(self._call or 0), word, act, ctypes.c_uint32(number), limit)

    def close(self) -> None:
        """Let go of the shared memory."""
        self._words.release()
        # Ctrl-C in a wait leaves a pointer in its traceback: the memory then goes with that.
        with suppress(BufferError):
            self._shared.close()


@functools.cache
def _system_call() -> Callable[..., int]:
    call: Callable[..., int] = ctypes.CDLL(None).syscall
    return call
