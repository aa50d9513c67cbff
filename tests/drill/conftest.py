"""A directory with agents to drill, the command line in it, and a place for its temporary files."""

from pathlib import Path

import pytest

from tests.cli.kit import Done, Shop
from tests.drill.kit import CLINIC, SCENARIO


class Clinic(Shop):
    """Where drills are run: what they leave behind would be in `spill`."""

    @property
    def spill(self) -> Path:
        return self.folder / "spill"

    def environment(self, more: dict[str, str]) -> dict[str, str]:
        return super().environment({"TMPDIR": str(self.spill), **more})

    def drill(self, agent: str, *args: str) -> Done:
        return self("drill", "run", f"clinic:{agent}", *args)


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    (tmp_path / "spill").mkdir()
    (tmp_path / "clinic.py").write_text(CLINIC)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    return Clinic(tmp_path)
