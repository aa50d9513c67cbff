"""A directory with agents to drill, the command line in it, and a place for its temporary files."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.kit import WAIT_S_MAX, Done, Shop
from tests.drill.kit import CLINIC, SCENARIO


class Clinic(Shop):
    """Where drills are run: what they leave behind would be in `spill`."""

    def __call__(self, *args: str, text: str = "", **env: str) -> Done:
        """In a process of its own: a drill is a warm process that forks, and is not forked."""
        ended = subprocess.run(
            [sys.executable, "-m", "holdfast", *args],
            cwd=self.folder,
            env=self.environment(env),
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_S_MAX,
        )
        return Done(ended.returncode, ended.stdout, ended.stderr)

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
