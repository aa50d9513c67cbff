"""The small store of `scene`, made once."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.corruption.matrix import memory
from tests.corruption.scene import Scene, build


@pytest.fixture(scope="session")
def scene() -> Iterator[Scene]:
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        yield build(Path(folder))


@pytest.fixture
def path(scene: Scene, tmp_path: Path) -> Path:
    """A copy of the closed store, to be damaged."""
    return Path(shutil.copytree(scene.closed, tmp_path / "store"))
