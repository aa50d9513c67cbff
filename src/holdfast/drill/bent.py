"""A clock whose wall time a fault can move; monotonic time takes no notice, as on a machine."""

from holdfast.clock import SystemClock


class BentClock(SystemClock):
    """The machine's clock, and how far it is off."""

    def __init__(self) -> None:
        self.off_s = 0.0

    def now(self) -> float:
        """Seconds since the epoch, as this process is made to believe."""
        return super().now() + self.off_s
