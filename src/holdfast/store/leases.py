"""Who may write a run: lease, heartbeat, takeover.

The lease decides who tries; the epoch in each commit decides who wins. A lock on one byte per
run is freed by the kernel when its process dies, so a dead holder's run is taken at once. A held
lock whose beat stands still for `STALL_S` of the observer's own monotonic clock is a stalled
process: its run may be taken by raising the epoch, and it is fenced when it wakes up.
"""

import contextlib
import os
import struct
import threading
from pathlib import Path

from holdfast.clock import Clock
from holdfast.errors import StoreInUse
from holdfast.store.backends.locks import ByteLocks
from holdfast.store.backends.place import unwritable

BEAT_S = 1.0
STALL_S = 8.0
_HEIRS = 1 << 40
"""Whoever takes a stalled process's run locks this byte further on: the other is not free yet."""
_EVERYBODY = 0
"""No run has this number: the byte that everybody shares who has the store open."""
_BEAT = struct.Struct(">Qd")
_LOOK_S = 0.1
_LET_GO = 1
"""A count of no process: whoever took the run from a stalled one has let it go again, and what
holds its lock is still that one."""


class Leases:
    """The leases of one store handle: at most one holder per run, this handle included."""

    def __init__(
        self, directory: Path, clock: Clock, stall_s: float = STALL_S, *, alone: bool = False
    ) -> None:
        self._directory, self._clock, self._stall_s = directory, clock, stall_s
        self._locks = ByteLocks(directory / "leases")
        self._enter(alone=alone)
        try:
            self._beats = os.open(directory / "beats", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self._locks.close()
            raise unwritable(directory, error) from error
        self._held: dict[int, int] = {}
        self._lock = threading.Lock()

    def _enter(self, *, alone: bool) -> None:
        """Whoever has the store open shares a lock; who must be alone has it alone."""
        if alone and not self._locks.take(_EVERYBODY):
            self._locks.close()
            raise StoreInUse(str(self._directory), "is open in another process, or twice in this")
        if not alone and not self._locks.share(_EVERYBODY):
            self._locks.close()
            raise StoreInUse(str(self._directory), "is being given other keys by another process")

    def take(self, run: int) -> bool:
        """Hold the run; False when a living process (or this one) has it.

        Waits up to the stall time when the holder shows no sign of life.
        """
        with self._lock:
            if run in self._held:
                return False
            self._held[run] = 0
        is_ours = False
        try:
            if self._is_free(run):
                with self._lock:
                    self._say(run)
                is_ours = True
            elif not self._is_beating(run):
                with self._lock:
                    self._beat(run)
                is_ours = True
        except OSError as error:
            raise unwritable(self._directory, error) from error
        finally:
            if not is_ours:
                self.give(run)
        return is_ours

    def _is_free(self, run: int) -> bool:
        """Lock the run's byte; False while another holds it, or took the run from a stalled one."""
        return self._locks.take(run) and not self._locks.is_taken(run + _HEIRS)

    def _is_beating(self, run: int) -> bool:
        """Watch a held run: True as soon as it beats, False after the stall time without."""
        count, at = self._read(run)
        if count == _LET_GO:  # One look: who has just locked it beats at once.
            self._clock.sleep(_LOOK_S)
            return self._read(run)[0] != _LET_GO
        if 0 <= self._clock.monotonic() - at < 2 * BEAT_S:
            return True
        began = self._clock.monotonic()
        while self._clock.monotonic() - began < self._stall_s:
            self._clock.sleep(_LOOK_S)
            if self._read(run)[0] != count:
                return True
            if self._is_free(run):
                return False
        return False

    def _read(self, run: int) -> tuple[int, float]:
        data = os.pread(self._beats, _BEAT.size, run * _BEAT.size)
        if len(data) < _BEAT.size:
            return 0, -1e9
        count, at = _BEAT.unpack(data)
        return count, at

    def beat(self) -> None:
        """Say for every held run that this process is alive."""
        with self._lock:
            for run, count in self._held.items():
                # On a full disk a beat is missed; the commits there say so themselves.
                with contextlib.suppress(OSError):
                    if count:
                        self._beat(run)

    def _say(self, run: int) -> None:
        """Count a sign of life."""
        self._held[run] += 1
        self._write(run, os.getpid() << 32 | self._held[run])

    def _beat(self, run: int) -> None:
        self._say(run)
        if self._locks.take(run):  # Ours already, or left by a stalled process that woke up.
            self._locks.give(run + _HEIRS)
        else:
            self._locks.take(run + _HEIRS)

    def _write(self, run: int, count: int) -> None:
        data = _BEAT.pack(count, self._clock.monotonic())
        os.pwrite(self._beats, data, run * _BEAT.size)

    def beat_of(self, run: int) -> int:
        """The counter of a run's signs of life; it changes every second while its holder lives."""
        return self._read(run)[0]

    def is_held(self, run: int) -> bool:
        """Whether some process holds the run now."""
        if run in self._held or self._locks.is_taken(run + _HEIRS):
            return True
        return self._locks.is_taken(run) and self._read(run)[0] != _LET_GO

    def give(self, run: int) -> None:
        """Let the run go; a stalled process that it was taken from is not its holder again."""
        with self._lock:
            count = self._held.pop(run, None)
            if count is not None:
                if count and not self._locks.take(run):
                    with contextlib.suppress(OSError):  # Then the next one waits for a beat.
                        self._write(run, _LET_GO)
                self._locks.give(run)
                self._locks.give(run + _HEIRS)

    def close(self) -> None:
        """Let every run go; in a forked child too, where nobody would free the parent's lock."""
        self._lock, self._held = threading.Lock(), {}
        self._locks.close()
        fd, self._beats = self._beats, -1
        if fd >= 0:
            os.close(fd)
