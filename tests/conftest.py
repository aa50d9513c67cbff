"""What every test may rely on: no crash point stays armed, one Hypothesis profile, counts shown."""

import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

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


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder on a disk that works while we wait; `tmp_path` may lie in memory."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        yield Path(name)


@pytest.fixture
def counted(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say what a test counted: `counted("412 kills, 0 lost")` stands in the summary."""
    return lambda text: record_property("counted", text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The counts of every test that counted something, also of those run in other processes."""
    lines = [
        f"{report.nodeid.removeprefix('tests/')}: {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, value in report.user_properties
        if name == "counted"
    ]
    if lines:
        terminalreporter.section("counted")
        for line in sorted(lines):
            terminalreporter.line(line)
