"""Plants a fault in a copy of the source and looks whether its test notices."""

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "holdfast"
WAIT_S_MAX = 300
"""So long the test of one mutant may take."""
FAILED = 1
"""What pytest exits with where tests ran and some failed; anything else is no verdict."""
NONSENSE = re.compile(
    r"^E +(?:(?:NameError|UnboundLocalError|ImportError|ModuleNotFoundError|SyntaxError): .*"
    r"|sqlite3\.\w+: .*(?:misused|syntax error|no such column|bindings).*)$",
    re.MULTILINE,
)
"""A planted text that cannot even run proves nothing about the test that trips over it."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    is_killed: bool
    why: str
    took_s: float


def misfits(mutant: Mutant, source: Path = SOURCE) -> list[str]:
    """Why the mutant cannot be planted: text that is not there once, code that is none."""
    found = []
    for file in {edit.file for edit in mutant.edits}:
        text = (source / file).read_text(encoding="utf-8")
        for edit in (edit for edit in mutant.edits if edit.file == file):
            times = text.count(edit.old)
            if times != 1:
                found.append(f"{file} holds this text {times} times, not once: {edit.old!r}")
            text = text.replace(edit.old, edit.new, 1)
        try:
            compile(text, file, "exec")
        except SyntaxError as error:
            found.append(f"{file} is no Python any more: {error}")
    return found


class Plot:
    """A copy of the source that tests run against."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.source = folder / "holdfast"
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        self._touched = time.time()

    def test(self, *ids: str, wait_s: float = WAIT_S_MAX) -> tuple[int, str]:
        """Run tests against this copy; pytest's exit status and what it printed."""
        path = os.pathsep.join([str(self._folder), str(ROOT)])
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST")
        }
        kept.pop("PYTHONDONTWRITEBYTECODE", None)  # The copy is compiled once, not for each mutant.
        options = ["-q", "-x", "--no-header", "-p", "no:cacheprovider", "--tb=line"]
        temp = f"--basetemp={self._folder / 'temp'}"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, temp, *ids],
                cwd=ROOT,
                env=kept
                | {"PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(self._folder.parent / "cache")}
                | {"HOLDFAST_NATIVE": "off"},  # Faults are planted in Python.
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=wait_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1, f"it was still running after {wait_s} s"
        return done.returncode, done.stdout

    def try_out(self, mutant: Mutant) -> Verdict:
        """Plant the mutant, run its test, and take it out again."""
        began = time.monotonic()
        wrong = misfits(mutant, self.source)
        if wrong:
            return Verdict(mutant=mutant, is_killed=False, why=wrong[0], took_s=0.0)
        before = {edit.file: (self.source / edit.file).read_text() for edit in mutant.edits}
        try:
            for edit in mutant.edits:
                text = (self.source / edit.file).read_text(encoding="utf-8")
                self._write(edit.file, text.replace(edit.old, edit.new, 1))
            status, output = self.test(mutant.killed_by)
        finally:
            for file, text in before.items():
                self._write(file, text)
        took_s = time.monotonic() - began
        if status == FAILED and (broken := NONSENSE.search(output)):
            why = f"what is planted does not run: {broken[0].removeprefix('E').strip()}"
            return Verdict(mutant=mutant, is_killed=False, why=why[:200], took_s=took_s)
        return Verdict(
            mutant=mutant, is_killed=status == FAILED, why=_told(status, output), took_s=took_s
        )

    def _write(self, file: str, text: str) -> None:
        """Write a file so that no compiled form of an earlier text is taken for it."""
        self._touched += 10
        path = self.source / file
        path.write_text(text, encoding="utf-8")
        os.utime(path, (self._touched, self._touched))


def _told(status: int, output: str) -> str:
    """How the test noticed, or why it did not."""
    if status == 0:
        return "the test passed: nobody noticed"
    if status != FAILED:
        return f"pytest ended with {status}: {output.strip()[-400:]}"
    # The line that pytest marks as the error itself; without one, its last word.
    found = re.search(r"^E +(\S.*)$|^\S+:\d+: (.+)$", output, re.MULTILINE)
    return (found[1] or found[2] if found else output.strip().splitlines()[-1])[:100]
