"""A store for each test, and a world beside it."""

from pathlib import Path

import pytest

from tests.engine.kit import Stage, World


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "store")


@pytest.fixture
def world() -> World:
    return World()
