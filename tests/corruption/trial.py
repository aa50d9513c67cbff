"""One damaged store, read in every way: exactly what was written, or a named error; else wrong."""

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine.checkpoint import Checkpoint
from holdfast.engine.readings import Readings
from holdfast.errors import Damaged, HoldfastError, UnknownCheckpoint, UnknownRun
from holdfast.store.open import Opened, open_store
from holdfast.store.verify import verify

NO_FACTS: dict[str, Any] = {
    **dict.fromkeys(("code", "tools", "prompts", "python", "platform", "holdfast")),
    "libraries": {},
    "environment": {},
}
"""What is said of a point where the beginning of its life is lost, which hides no state."""


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a store tells: its runs and, for each point, what is known of it and its state."""

    runs: dict[str, holdfast.RunInfo]
    points: dict[str, tuple[Checkpoint, dict[Any, Any]]]


@dataclass(kw_only=True)
class Tally:
    """How many stores were damaged, and what came of it."""

    trials: int = 0
    detected: int = 0
    unaffected: int = 0
    restored: int = 0
    """Points that were restored exactly although the store was damaged elsewhere."""
    by: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, how: str, found: "Verdict") -> None:
        """Count a trial; `how` says what was done to the store."""
        self.trials += 1
        self.detected += bool(found.loud)
        self.unaffected += not found.loud
        self.restored += found.restored if found.loud else 0
        self.by.update(set(found.loud))
        if found.wrong:
            more = f" (and {len(found.wrong) - 1} more)" if found.wrong[1:] else ""
            self.wrong.append(f"{how}: {found.wrong[0]}{more}")

    def merge(self, other: "Tally") -> None:
        """Take in what was counted elsewhere."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def __str__(self) -> str:
        return (
            f"{self.trials:,} damaged stores: {self.detected:,} detected, "
            f"{self.unaffected:,} unaffected, wrong or silent {len(self.wrong)}; "
            f"{self.restored:,} healthy points restored beside damage"
        )


@dataclass(kw_only=True)
class Verdict:
    """What one damaged store did: where it was loud, and what it must not have done."""

    loud: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    restored: int = 0


def contents(path: Path) -> Contents:
    """Everything a healthy store tells."""
    with _opened(path) as opened:
        readings = Readings(opened)
        runs = {run.id: run for run in readings.runs()}
        points = {
            point.id: readings.restore(point.id)
            for run in runs
            for point in readings.checkpoints(run, every_turn=True)
        }
    return Contents(runs=runs, points=points)


def judge(path: Path, expected: Contents) -> Verdict:
    """Open, read and verify a store that was damaged."""
    verdict = Verdict()
    try:
        try:
            opened = open_store(path, SystemClock(), must_exist=True)
        except Damaged:
            verdict.loud.append("open")
            opened = open_store(path, SystemClock(), must_exist=True, must_be_whole=False)
    except HoldfastError:
        verdict.loud.append("open")
        return verdict
    except Exception as error:  # noqa: BLE001 a foreign error is a finding
        verdict.wrong.append(f"open raised {type(error).__name__}: {error}")
        return verdict
    try:
        _read(Readings(opened), expected, verdict)
        _verify(opened, verdict)
    finally:
        _close(opened, verdict)
    return verdict


def _read(readings: Readings, expected: Contents, verdict: Verdict) -> None:
    with _named("runs", verdict):
        listed = {run.id for run in readings.runs()}
        if absent := expected.runs.keys() - listed:
            _miss(verdict, f"runs() does not list {sorted(absent)}")
    for id_, info in expected.runs.items():
        with _named(f"get {id_}", verdict):
            if readings.get(id_) != info:
                verdict.wrong.append(f"get {id_} told something else")
    for id_, point in expected.points.items():
        with _named(f"restore {id_}", verdict):
            found = readings.restore(id_)
            if found == (point[0].model_copy(update=NO_FACTS), point[1]) != point:
                verdict.loud.append("facts")  # Verification must find why.
            elif found != point:
                verdict.wrong.append(f"restore {id_} gave another state")
            verdict.restored += 1


def _verify(opened: Opened, verdict: Verdict) -> None:
    with _named("verify", verdict):
        report = verify(opened)
        if not report.is_whole:
            verdict.loud.append("verify")
        elif verdict.loud:
            verdict.wrong.append(f"verify found nothing, but loud were {verdict.loud}")


@contextlib.contextmanager
def _named(what: str, verdict: Verdict) -> Iterator[None]:
    """An error of ours is loud; any other is a finding, and so is saying that nothing is there."""
    try:
        yield
    except (UnknownRun, UnknownCheckpoint) as error:
        _miss(verdict, f"{what} says it is absent ({error})")
    except HoldfastError:
        verdict.loud.append(what.partition(" ")[0])
    except Exception as error:  # noqa: BLE001 a foreign error is a finding
        verdict.wrong.append(f"{what} raised {type(error).__name__}: {error}")


def _miss(verdict: Verdict, what: str) -> None:
    """Work is absent: wrong unless the store already refused to open."""
    if "open" not in verdict.loud:
        verdict.wrong.append(what)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Opened]:
    opened = open_store(path, SystemClock(), must_exist=True)
    try:
        yield opened
    finally:
        opened.close()


def _close(opened: Opened, verdict: Verdict) -> None:
    with _named("close", verdict):
        opened.close()


class Patient:
    """A copy of a store that is damaged and healed over and over, without copying it each time."""

    def __init__(self, healthy: Path, place: Path) -> None:
        self.path = place
        self._files = {
            file.relative_to(healthy): file.read_bytes()
            for file in sorted(healthy.rglob("*"))
            if file.is_file()
        }
        for name, data in self._files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(data)

    def data(self, name: str) -> bytes:
        """What a file holds while the store is healthy."""
        return self._files[Path(name)]

    def names(self, start: str) -> list[str]:
        """The files whose names begin so."""
        return [name.as_posix() for name in self._files if name.as_posix().startswith(start)]

    def harm(self, name: str, data: bytes | None) -> None:
        """Give a file other bytes, or take it away."""
        if data is None:
            (self.path / name).unlink()
        else:
            (self.path / name).write_bytes(data)

    def put_back(self, *names: str) -> None:
        """Put these files back: nothing else was touched."""
        for name in names:
            (self.path / name).write_bytes(self.data(name))

    def heal(self) -> None:
        """Put every file back as it was."""
        for folder, _, names in os.walk(self.path):
            for name in names:
                file = Path(folder, name)
                if file.relative_to(self.path) not in self._files:
                    file.unlink()
        for known, data in self._files.items():
            file = self.path / known
            if not file.exists() or file.read_bytes() != data:
                file.write_bytes(data)
