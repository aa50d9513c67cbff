"""A store for each test, and a world beside it."""

from collections import Counter
from pathlib import Path

import pytest

from tests.engine.kit import FENCE, Stage, World, fence


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "store")


@pytest.fixture
def world() -> World:
    return World()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the tests of the fence counted, also those that ran in other processes."""
    counted: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "teardown":
                for name, value in report.user_properties:
                    if name == FENCE and isinstance(value, dict):
                        counted.update(value)
    if counted:
        counts = ", ".join(f"{counted[what]} {what}" for what in fence)
        terminalreporter.write_line(f"the fence: {counts}")
