"""How long a supervised run stands still: killed with SIGKILL, or hung."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter_ns, sleep

from bench import child
from bench.figures import Result, Table, Target, show
from bench.session import Session
from bench.systems.catalog import OURS

MODULE = "bench.systems.supervisor"
RESUME_S_MAX = 1.0
STALL_S = 2.0
LATE_S_MAX = 1.0
LIFE_S = 2.5
"""How long each process lives before it is killed."""
_LOOK_S = 0.002


def measure(session: Session) -> Result:
    """Kill the child again and again, with a spare and without; then let it hang."""
    kills = session.scale.restarts
    ms: dict[str, list[float]] = {}
    for how in ("spare", "plain"):
        with _supervised(session, how) as log:
            ms[how] = [_kill(log) for _ in range(kills)]
        session.say(f"{how}: ms from SIGKILL to the next turn: {show(median(ms[how]), '.0f')}")
    with _supervised(session, "spare", stall=f"{STALL_S}s", hangs_s=600) as log:
        late = [_hang(log) for _ in range(max(3, kills // 3))]
    session.say(f"hung: found {show(median(late), '.2f')} s after the limit")
    return _result(session, ms, late)


@contextmanager
def _supervised(
    session: Session, how: str, stall: str = "", hangs_s: float = 0.0
) -> Iterator[Path]:
    with child.scratch() as place:
        log = place / "turns"
        log.touch()
        command = [sys.executable, "-m", MODULE, str(place / "store"), str(log), how, stall]
        process = subprocess.Popen(
            [*command, str(hangs_s)], cwd=child.ROOT, env=child.environment()
        )
        try:
            _first(log, after=0)
            yield log
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(child.WAIT_S_MAX)
            session.say(f"{how}: the supervisor ended with status {process.returncode}")


def _kill(log: Path) -> float:
    """Milliseconds from SIGKILL to the first turn of the next process."""
    sleep(LIFE_S)
    pid, _ = _last(log)
    begin = perf_counter_ns()
    os.kill(pid, signal.SIGKILL)
    return (_first(log, after=pid) - begin) / 1e6


def _hang(log: Path) -> float:
    """Seconds beyond the limit after which a hung process was gone."""
    pid, _ = _last(log)
    while Path(f"/proc/{pid}").exists():
        sleep(_LOOK_S)
    gone = perf_counter_ns()
    last = max(at for who, at in _turns(log) if who == pid)
    _first(log, after=pid)
    return (gone - last) / 1e9 - STALL_S


def _first(log: Path, after: int) -> int:
    """When the first turn of another process than `after` ran; waits for it."""
    until = perf_counter_ns() + child.WAIT_S_MAX * 10**9
    while perf_counter_ns() < until:
        pid, _ = _last(log)
        if pid not in (0, after):
            return min(at for who, at in _turns(log) if who == pid)
        sleep(_LOOK_S)
    raise child.ChildFailed(MODULE, 0, "no turn ran")


def _last(log: Path) -> tuple[int, int]:
    turns = _turns(log)
    return turns[-1] if turns else (0, 0)


def _turns(log: Path) -> list[tuple[int, int]]:
    lines = log.read_text(encoding="utf-8").splitlines()
    pairs = [line.split() for line in lines]
    return [(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2]


def _p95(values: list[float]) -> float:
    return sorted(values)[max(0, round(0.95 * len(values)) - 1)]


def _result(session: Session, ms: dict[str, list[float]], late: list[float]) -> Result:
    names = {"spare": "killed, a spare waiting", "plain": "killed, a new process"}
    rows = [
        [names[how], show(median(time), ",.0f"), show(_p95(time), ",.0f")]
        for how, time in ms.items()
    ]
    hung = [1000 * (each + STALL_S) for each in late]
    found = [show(median(hung), ",.0f"), show(_p95(hung), ",.0f")]
    rows.append([f"hung, stall={STALL_S:g}s: until killed", *found])
    return Result(
        subject="supervise",
        title="A supervised run: from kill -9 or a hang to the next turn",
        table=Table(columns=("what happened", "ms, median", "ms, P95"), rows=rows),
        targets=[
            Target(
                promise="P95 from kill -9 to the next turn running, imports of 0.2 s",
                measured=_p95(ms["spare"]) / 1000,
                limit=RESUME_S_MAX,
                unit=" s",
            ),
            Target(
                promise="a hung agent is found after its limit and at most",
                measured=max(late),
                limit=LATE_S_MAX,
                unit=" s",
            ),
        ],
        numbers={OURS: {"ms_of_kills": ms, "s_late": late}},
        note=f"{session.scale.restarts} kills each, after {LIFE_S:g} s of life. A spare is a "
        "second process with everything imported that waits to begin.",
    )
