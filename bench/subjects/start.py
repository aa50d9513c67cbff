"""How long a program waits before its first line: imports and the command's help."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

from bench import child
from bench.figures import Result, Table, Target, show, times
from bench.session import Session
from bench.systems.catalog import ALONE

IMPORT_MS_MAX = 80
HELP_MS_MAX = 250
BARE = "bare interpreter"
OURS = "import holdfast"
USED = "import holdfast, then the engine"
HELP = "holdfast --help"
PEERS = {
    "langgraph": "from langgraph.graph import StateGraph\n"
    "from langgraph.checkpoint.sqlite import SqliteSaver",
    "dbos": "from dbos import DBOS",
}


def measure(session: Session) -> Result:
    """Start every program in turn, again and again."""
    commands: dict[str, Sequence[str]] = {
        BARE: _python("pass"),
        OURS: _python("import holdfast"),
        USED: _python("import holdfast; holdfast.open"),
        HELP: [str(Path(sys.executable).with_name("holdfast")), "--help"],
    }
    for needs in sorted({system.needs for system in session.installed(ALONE)} & PEERS.keys()):
        commands[f"import {needs}"] = _python(PEERS[needs])
    times: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():  # once unmeasured: compiled files, page cache
        _start(command)
    for _ in range(session.scale.starts):
        for name, command in commands.items():
            times[name].append(_start(command))
    said = ", ".join(f"{name} {show(median(time), '.0f')}" for name, time in times.items())
    session.say(f"{session.scale.starts} starts each, ms: {said}")
    return _result(session, {name: median(time) for name, time in times.items()})


def _python(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def _start(command: Sequence[str]) -> float:
    """Milliseconds from start to end of `command`."""
    begin = perf_counter()
    ended = subprocess.run(
        command, check=False, capture_output=True, cwd=child.ROOT, env=child.environment()
    )
    took_ms = (perf_counter() - begin) * 1000
    if ended.returncode != 0:
        name = f"{Path(command[0]).name} {command[-1]}"
        raise child.ChildFailed(name, ended.returncode, ended.stderr.decode()[-2000:])
    return took_ms


def _result(session: Session, ms: dict[str, float]) -> Result:
    bare = ms[BARE]
    ours = ms[OURS] - bare
    return Result(
        subject="start",
        title="Start of a program",
        table=Table(
            columns=("program", "ms", "ms above bare", "above bare / import holdfast"),
            rows=[
                [name, show(one, ".0f"), show(one - bare, ".0f"), times((one - bare) / ours)]
                for name, one in ms.items()
            ],
        ),
        targets=[
            Target(
                promise="import holdfast, above a bare interpreter",
                measured=ours,
                limit=IMPORT_MS_MAX,
                unit=" ms",
            ),
            Target(promise="holdfast --help", measured=ms[HELP], limit=HELP_MS_MAX, unit=" ms"),
        ],
        numbers={name: {"ms": value} for name, value in ms.items()},
        note=f"Medians of {session.scale.starts} starts, taken in turn.",
    )
