"""What every subject is given: sizes, the model's texts, and a way to say where it is."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from bench import text
from bench.job import Job
from bench.scale import Scale
from bench.systems.catalog import System

TEXTS = 2_000
LONG_TEXTS = 20_000
"""So many that what is stored in one place never holds a text twice."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """One invocation of the benchmark."""

    scale: Scale
    place: Path
    begun: float

    @classmethod
    def begin(cls, scale: Scale, place: Path) -> "Session":
        """Write the texts that all systems will answer with."""
        (place / "texts.json").write_text(json.dumps(text.messages(TEXTS)))
        return cls(scale=scale, place=place, begun=perf_counter())

    @property
    def texts(self) -> str:
        """The file with the model's texts."""
        return str(self.place / "texts.json")

    def job(self, what: str, *, turns: int = 0, runs: int = 1) -> Job:
        """A job whose directory is still to be chosen."""
        return Job(what=what, directory="", result="", texts=self.texts, turns=turns, runs=runs)

    def long_job(self, what: str, *, turns: int = 0, runs: int = 1) -> Job:
        """The same with texts that do not repeat; they are made when first asked for."""
        file = self.place / "long.json"
        if not file.exists():
            file.write_text(json.dumps(text.messages(LONG_TEXTS)))
        return replace(self.job(what, turns=turns, runs=runs), texts=str(file))

    def installed(self, systems: Sequence[System]) -> list[System]:
        """Those that can be measured here; the others are named, not forgotten."""
        for system in systems:
            if not system.is_installed:
                self.say(f"{system.name}: {system.needs} is not installed, so it is left out")
        return [system for system in systems if system.is_installed]

    def say(self, line: str) -> None:
        """Tell the person who waits where the benchmark is."""
        sys.stderr.write(f"[{perf_counter() - self.begun:5.0f} s] {line}\n")
        sys.stderr.flush()


def rotated(systems: Sequence[System], by: int) -> list[System]:
    """The systems in another order, so that none always runs after the same one."""
    by %= max(1, len(systems))
    return [*systems[by:], *systems[:by]]
