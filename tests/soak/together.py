"""P13: eight workers, a collector and a verifier on one store; `python -m tests.soak.together`.

Workers are stopped (SIGSTOP) until others have taken their runs and then woken, killed (SIGKILL)
and replaced; their wall clocks jump by up to a day. Then one process ends the runs, and what the
store says is held against what the world saw: nothing handed out is lost or another, no order is
booked under two keys, every process was told the same, every byte is whole. The seed draws who is
struck and when; what they do in that moment is up to the machine. One process is struck for sure:
it is stopped in the midst of its first step and woken when its run was rolled back and has ended on
another branch. On its own one the next place is free, so the epoch alone keeps it from writing.
"""

import contextlib
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import holdfast
from tests.crash.outside import Line, Outside
from tests.crash.trial import check_whole
from tests.soak import crowd
from tests.soak.part import Outcome, Part, Trial, main, memory

T = TypeVar("T")
WORKERS = 8
ROUND_S = 7.0
LEFT_S_MAX = 30.0
"""So long after the end of a round a process may still be there; then it hangs."""


@dataclass
class Round:
    """One store and its crowd."""

    place: Path
    chance: random.Random
    seed: str
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    asleep: dict[int, float] = field(default_factory=dict)
    """Who is stopped, and when it is to be woken."""
    late: list[int] = field(default_factory=list)
    """Who stops itself, and is woken when all is over."""

    def run(self) -> Outcome:
        """Live it, then judge it."""
        (self.place / crowd.KEYS).mkdir(parents=True)
        end = time.monotonic() + ROUND_S
        try:
            with holdfast.open(self.place / crowd.STORE):
                pass
            self.late = [self._begin(crowd.oversleep, end)]
            self.others = [self._begin(crowd.collect, end), self._begin(crowd.look, end)]
            self.workers = [self._begin(crowd.work, end) for _ in range(WORKERS)]
            while time.monotonic() < end:
                self._strike(end)
                time.sleep(self.chance.uniform(0.02, 0.1))
            self._wait()
            self._judge()
        finally:
            for pid in [*self.workers, *self.others, *self.late]:
                self._end(pid, signal.SIGKILL)
        return Outcome(counts=self.counts, findings=self.findings)

    def _begin(self, life: crowd.Life, end: float) -> int:
        self.counts["processes"] += 1
        return crowd.begin(life, self.place, f"{self.seed} {self.counts['processes']}", end)

    def _strike(self, end: float) -> None:
        now, awake = time.monotonic(), [pid for pid in self.workers if pid not in self.asleep]
        for pid in [pid for pid, at in self.asleep.items() if at < now]:
            os.kill(pid, signal.SIGCONT)
            del self.asleep[pid]
        act = self.chance.choices(["stop", "kill", "none"], [2, 1, 6])[0]
        if act == "stop" and len(awake) > WORKERS // 2:
            pid = self.chance.choice(awake)
            os.kill(pid, signal.SIGSTOP)
            self.asleep[pid] = now + crowd.TAKEN_S + self.chance.uniform(0.2, 1.2)
            self.counts["stops"] += 1
        elif act == "kill":
            pid = self.chance.choice(self.workers)
            self._end(pid, signal.SIGKILL)
            self.counts["kills"] += 1
            self.asleep.pop(pid, None)
            self.workers[self.workers.index(pid)] = self._begin(crowd.work, end)

    @staticmethod
    def _end(pid: int, sign: int) -> None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, sign)
            os.waitpid(pid, 0)

    def _wait(self) -> None:
        """Wake who sleeps; all of them see that the round is over."""
        for pid in self.asleep:
            os.kill(pid, signal.SIGCONT)
        self.workers, self.others = self._left([*self.workers, *self.others]), []

    def _left(self, pids: list[int]) -> list[int]:
        """Wait until all have ended; who has not, hangs."""
        left, until = pids, time.monotonic() + LEFT_S_MAX
        while left and time.monotonic() < until:
            left = [pid for pid in left if os.waitpid(pid, os.WNOHANG)[0] == 0]
            time.sleep(0.02)
        self.findings += [f"process {pid} did not end" for pid in left]
        return left

    def _judge(self) -> None:
        results: dict[str, list[crowd.Answer]] = {}
        try:
            results = self._finish()
            self._wake()
        except Exception as error:  # noqa: BLE001 whatever it is, it is a finding
            self.findings.append(f"{type(error).__name__}: {error}")
        log = Outside(self.place).log()
        kinds = Counter(line.kind for line in log)
        self.counts["rounds"] += 1
        self.counts["writes refused"] += kinds["Fenced"]
        self.counts["clock jumps"] += kinds["jump"]
        self.counts["collections"] += kinds["gc"]
        self.counts["verifications"] += kinds["verify"]
        self.findings += [each.what for each in log if each.kind == "broken"]
        self.findings += [
            f"verify beside writers: {each.what}"
            for each in log
            if each.kind == "verify" and each.what
        ]
        try:
            self._compare(log, results)
            check_whole(self.place / crowd.STORE)
        except Exception as error:  # noqa: BLE001 whatever it is, it is a finding
            self.findings.append(f"{type(error).__name__}: {error}")

    def _finish(self) -> dict[str, list[crowd.Answer]]:
        """Every run, ended by one process that is alone."""
        crowd.outside.place = self.place
        with holdfast.open(self.place / crowd.STORE, stall=crowd.STALL_S) as store:
            told = {name: store.run(crowd.worker, name, id=name) for name in crowd.RUNS}
            if self._is_asleep():
                plan = store.plan_rollback(crowd.SLEEPER, to="start")
                _once_free(lambda: plan.apply(reason="its holder sleeps"))
                told[crowd.SLEEPER] = _once_free(
                    lambda: store.run(crowd.worker, crowd.SLEEPER, id=crowd.SLEEPER)
                )
            return told

    def _is_asleep(self) -> bool:
        """Whether the sleeper sleeps by now; where it is not even there yet, it is waited for."""
        until = time.monotonic() + LEFT_S_MAX
        while not (is_asleep := (self.place / crowd.ASLEEP).exists()) and time.monotonic() < until:
            time.sleep(0.02)
        return is_asleep

    def _wake(self) -> None:
        """Its run has ended without it: what it does now comes too late."""
        for pid in self.late:
            os.kill(pid, signal.SIGCONT)
        self.late = self._left(self.late)
        self.counts["woken too late"] += 1
        log = Outside(self.place).log()
        if not any((line.kind, line.what) == ("Fenced", crowd.SLEEPER) for line in log):
            self.findings.append("a process that woke up after its run had ended was not refused")

    def _compare(self, log: list[Line], results: dict[str, list[crowd.Answer]]) -> None:
        found = judged(log, Outside(self.place).world(), results)
        for what, each in found.items():
            self.counts[what] += len(each)
            self.findings += [f"{what}: {words}" for words in each]


def _once_free(take: Callable[[], T]) -> T:
    """Take a run whose holder sleeps: it was alive just now, or so it seems."""
    until = time.monotonic() + LEFT_S_MAX
    while True:
        try:
            return take()
        except holdfast.RunHeld:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def judged(
    log: list[Line], world: list[Line], results: dict[str, list[crowd.Answer]]
) -> dict[str, list[str]]:
    """The results against what was handed out and what the world did; what must not be."""
    kept = {each["what"]: each["token"] for answers in results.values() for each in answers}
    handed = defaultdict[str, set[str]](set)
    for line in log:
        if line.kind == "got":
            handed[line.what].add(line.token)
    ended = [(each.what, each.token) for each in log if each.kind == "result"]
    times = Counter(line.what for line in world)
    return {
        "acknowledged work lost": [
            *(f"{name} says {told}" for name, told in results.items() if not _is_whole(name, told)),
            *(f"{name} once said {t}" for name, t in ended if json.loads(t) != results[name]),
            *(f"{w} was {t}, is {kept.get(w)}" for w, t in handed.items() if kept.get(w) not in t),
        ],
        "two holders wrote": [f"{w} was {sorted(t)}" for w, t in handed.items() if len(t) > 1],
        "effects doubled": [f"{order}, {n} times" for order, n in times.items() if n > 1],
    }


def _is_whole(name: str, answers: list[crowd.Answer]) -> bool:
    expected = [f"{do} {name} {n}" for n in range(crowd.TURNS) for do in ("think", "book")]
    return expected == [each["what"] for each in answers]


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:
    """Rounds, each on a store of its own."""
    with tempfile.TemporaryDirectory(dir=memory()) as folder:

        def trial(number: int) -> Outcome:
            chance = random.Random(f"{seed} {number}")  # noqa: S311 a seed, not a secret
            with tempfile.TemporaryDirectory(dir=folder) as place:
                return Round(Path(place), chance, f"{seed} {number}").run()

        yield trial


PART = Part(
    id="P13",
    name="together",
    what="Eight workers, a collector and a verifier on one store; stops, kills, clocks a day off.",
    counted="rounds",
    goal=200,
    trials=trials,
)

if __name__ == "__main__":
    raise SystemExit(main(PART))
