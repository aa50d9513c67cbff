"""What every test may rely on: no crash point is left armed, and Hypothesis has one profile."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from holdfast import failpoint

# A shared machine is slow at times, and a slow example is not a wrong one.
settings.register_profile("holdfast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")

# A shell has what it starts in the background ignore Ctrl-C; our children must not inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoint.disarm()
