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

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some fixed point."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait `seconds`."""
        time.sleep(seconds)
