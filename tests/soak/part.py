"""A part of the soak: numbered trials, counted, kept in a file, gone on with after a stop.

Trial `n` of a seed is always the same trial, so what a finding says is enough to repeat it:
`python -m tests.soak.simulated --seed kelp --only 17`.
"""

import argparse
import contextlib
import platform
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".soak"
SEED = "kelp"
FINDINGS_MAX = 50
"""So many findings are kept in words; all of them are counted."""
SAVE_S = 5.0


@dataclass(kw_only=True)
class Outcome:
    """What one trial counted, and what it found that must not be."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


Trial = Callable[[int], Outcome | None]
"""The trial of a number; None when there are no more."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One row of the proof."""

    id: str
    name: str
    what: str
    counted: str
    """Which of its counts is held against `goal`."""
    goal: int
    trials: Callable[[str], AbstractContextManager[Trial]]
    """A seed → its trials, ready to be tried."""
    missing: Callable[[], str] = lambda: ""
    """Why this machine cannot try it; empty if it can."""


class Record(msgspec.Struct, kw_only=True):
    """What is known of a part so far."""

    id: str
    name: str
    what: str
    counted: str
    goal: int
    seed: str
    next: int = 0
    is_all: bool = False
    """Whether there are no trials left."""
    counts: dict[str, int] = {}
    found: int = 0
    findings: list[str] = []
    seconds: float = 0.0
    skipped: str = ""
    commit: str = ""
    machine: str = ""
    on: str = ""

    @property
    def reached(self) -> int:
        """How far the count is that is held against the goal."""
        return self.counts.get(self.counted, 0)


def drive(
    part: Part,
    *,
    count: int | None = None,
    seed: str = SEED,
    folder: Path | None = FOLDER,
    seconds: float = float("inf"),
    say: Callable[[str], object] = lambda _line: None,
) -> Record:
    """Go on with a part until it has counted `count`, or has no more trials, or time is up.

    With a `folder` what was counted is kept there, and another seed or goal begins anew.
    """
    record = _begun(part, seed, folder)
    record.goal = part.goal if count is None else count
    if reason := part.missing():
        record.skipped = reason
        _save(record, folder)
        return record
    record.skipped = ""
    with part.trials(seed) as trial:
        _go_on(record, trial, folder, seconds, say)
    _save(record, folder)
    return record


def _go_on(
    record: Record,
    trial: Trial,
    folder: Path | None,
    seconds: float,
    say: Callable[[str], object],
) -> None:
    began = saved = time.monotonic()
    before = record.seconds
    while record.reached < record.goal and not record.is_all:
        outcome = trial(record.next)
        if outcome is None:
            record.is_all = True
            break
        record.counts = dict(Counter(record.counts) + outcome.counts)
        record.found += len(outcome.findings)
        where = f"{record.name} --seed {record.seed} --only {record.next}"
        room = FINDINGS_MAX - len(record.findings)
        record.findings += [f"{where}: {each}" for each in outcome.findings[:room]]
        record.next += 1
        now = time.monotonic()
        record.seconds = before + now - began
        if now - saved > SAVE_S:
            saved = now
            _save(record, folder)
            say(told(record))
        if now - began > seconds:
            break


def told(record: Record) -> str:
    """A record as one line."""
    if record.skipped:
        return f"{record.id} {record.name}: skipped, {record.skipped}"
    counts = ", ".join(f"{name} {n:,}" for name, n in sorted(record.counts.items()))
    return (
        f"{record.id} {record.name}: {record.reached:,} of {record.goal:,} {record.counted} "
        f"in {record.seconds:,.0f} s, findings {record.found} ({counts})"
    )


def main(part: Part) -> int:
    """Go on with one part from the command line; the exit status says whether it found anything."""
    arguments = argparse.ArgumentParser(description=part.what)
    arguments.add_argument("--seed", default=SEED)
    arguments.add_argument("--count", type=int, default=part.goal, help="how far to count")
    arguments.add_argument("--seconds", type=float, default=float("inf"), help="at most so long")
    arguments.add_argument("--only", type=int, help="one trial, to see a finding again")
    arguments.add_argument("--folder", type=Path, default=FOLDER, help="where counts are kept")
    asked = arguments.parse_args()
    if asked.only is not None:
        with part.trials(asked.seed) as trial:
            outcome = trial(asked.only) or Outcome()
        sys.stdout.write("\n".join([str(dict(outcome.counts)), *outcome.findings, ""]))
        return 1 if outcome.findings else 0
    record = drive(
        part,
        count=asked.count,
        seed=asked.seed,
        folder=asked.folder,
        seconds=asked.seconds,
        say=_print,
    )
    _print(told(record))
    for finding in record.findings:
        _print(f"  {finding}")
    return 1 if record.found else 0


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def records(folder: Path = FOLDER) -> Iterator[Record]:
    """What is known of every part that was begun."""
    for file in sorted(folder.glob("*.json")):
        yield msgspec.json.decode(file.read_bytes(), type=Record)


def _begun(part: Part, seed: str, folder: Path | None) -> Record:
    if folder is not None:
        with contextlib.suppress(FileNotFoundError, msgspec.MsgspecError):
            known = msgspec.json.decode((folder / f"{part.name}.json").read_bytes(), type=Record)
            if known.seed == seed:
                return known
    return Record(
        id=part.id,
        name=part.name,
        what=part.what,
        counted=part.counted,
        goal=part.goal,
        seed=seed,
    )


def _save(record: Record, folder: Path | None) -> None:
    if folder is None:
        return
    record.commit, record.machine = commit(), machine()
    record.on = time.strftime("%Y-%m-%d", time.gmtime())
    folder.mkdir(exist_ok=True)
    new = folder / f"{record.name}.part"
    new.write_bytes(msgspec.json.format(msgspec.json.encode(record)))
    new.replace(folder / f"{record.name}.json")


def commit() -> str:
    """The commit that is tried, in short."""
    asked = ["git", "rev-parse", "--short=10", "HEAD"]
    found = subprocess.run(asked, cwd=ROOT, check=False, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def machine() -> str:
    """What the numbers were counted on."""
    return (
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{platform.system()} {platform.release().partition('-')[0]}"
    )


def memory() -> Path | None:
    """Where files cost no disk, if this machine has such a place."""
    place = Path("/dev/shm")  # noqa: S108 files are made there under names of their own
    return place if place.is_dir() else None
