"""The one place that reads time or sleeps."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for people, monotonic time for waiting."""

    def now(self) -> float:
        """Seconds since the epoch, for records that people read."""

    def monotonic(self) -> float:
        """Seconds that never go back, for durations and waits."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's clock."""

    # The functions themselves: every turn reads the clock several times.
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)
