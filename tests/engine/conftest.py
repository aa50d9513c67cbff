"""A store for each test, and a world beside it."""

from pathlib import Path

import pytest

from tests.engine.kit import Stage, World, fence


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "store")


@pytest.fixture
def world() -> World:
    return World()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if fence["restores"]:
        counts = ", ".join(f"{number} {what}" for what, number in fence.items())
        terminalreporter.write_line(f"the fence: {counts}")
