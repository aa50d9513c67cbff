"""What every test may rely on: no crash point is left armed, and Hypothesis has one profile."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from holdfast import failpoint

# A shared machine is slow at times, and a slow example is not a wrong one.
settings.register_profile("holdfast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoint.disarm()
