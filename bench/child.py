"""Start a measured process, wait for it, and take in what it saw."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import trace
from bench.job import Job, Seen

ROOT = Path(__file__).parent.parent
WAIT_S_MAX = 600
CHANGES_BEHAVIOUR = ("HOLDFAST_", "DBOS_", "LANGCHAIN_", "LANGGRAPH_", "LANGSMITH_", "PYTHON")


class ChildFailed(Exception):
    """A measured process did not finish; nothing can be said about its subject."""

    def __init__(self, module: str, status: int, said: str) -> None:
        super().__init__(module, status, said)
        self.module, self.status, self.said = module, status, said

    def __str__(self) -> str:
        return f"{self.module} ended with status {self.status}: {self.said}"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one process saw, and what it left on the disk."""

    seen: Seen
    bytes_left: int
    syncs: trace.Syncs | None

    def number(self, name: str) -> float:
        """One number the process reported."""
        value = self.seen[name]
        assert isinstance(value, int | float)
        return value

    def series(self, name: str) -> Sequence[int]:
        """A list of numbers the process reported."""
        value = self.seen[name]
        assert isinstance(value, list)
        return value


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory on the disk being measured, gone afterwards; `$TMPDIR` chooses the disk."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as directory:
        yield Path(directory)


def measure(module: str, job: Job, *, traced: bool = False) -> Measured:
    """Run `module` on `job` in a new process."""
    Path(job.directory).mkdir(parents=True, exist_ok=True)
    log = Path(job.result + ".strace")
    prefix = trace.command(log) if traced else []
    try:
        ended = subprocess.run(
            [*prefix, *python(module, job)],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=WAIT_S_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        said = f"not done with {job.what!r} after {WAIT_S_MAX} s"
        raise ChildFailed(module, -signal.SIGKILL, said) from late
    if ended.returncode != 0:
        lines = (ended.stderr or ended.stdout).strip().splitlines()
        raise ChildFailed(module, ended.returncode, "\n".join(lines[-12:]))
    return Measured(
        seen=json.loads(Path(job.result).read_text()),
        bytes_left=bytes_under(Path(job.directory)),
        syncs=trace.count(log) if traced else None,
    )


def measure_fresh(module: str, job: Job, *, traced: bool = False) -> Measured:
    """The same in a directory of its own, which is removed afterwards."""
    with scratch() as place:
        own = replace(job, directory=str(place / "data"), result=str(place / "seen.json"))
        return measure(module, own, traced=traced)


def python(module: str, job: Job) -> list[str]:
    """The command that runs `module` on `job`."""
    return [sys.executable, "-m", module, job.to_argument()]


def environment() -> dict[str, str]:
    """The environment of this process, without what would change a library's behaviour."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(CHANGES_BEHAVIOUR)
    }


def bytes_under(directory: Path) -> int:
    """The size of all files below `directory`."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
