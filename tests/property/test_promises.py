"""The five promises of a random little store, reckoned a second time from what was seen outside."""

import contextlib
import math
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.report.facts import facts_of
from holdfast.report.sla import Kept, keep
from holdfast.store.backends.sqlite import FILE
from holdfast.store.open import open_store
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import Crash, Stage

MAX_RECOVERY_S, AVAILABILITY = 30.0, 0.9
EXAMPLES = 20
LATER_S = 25.0
"""How long after the last run the store is looked at: some open failures are overdue by then."""

Trouble = tuple[str, float, float]
"""What a try comes to: it dies or raises, after so long; and how long nobody does anything."""
Step = tuple[float, float, Sequence[Trouble]]
"""The agent's own time before it, the time it takes, and the tries that fail."""

_times = st.floats(0.25, 40).map(lambda s: round(s, 2))
_deaths = st.lists(st.tuples(st.just("dies"), _times, _times), max_size=2)
_errors = st.lists(st.tuples(st.just("raises"), st.floats(0.25, 3), st.just(0.0)), max_size=2)
_troubles = st.one_of(_deaths, _errors)  # An error after a death may be too late to try again.
_steps = st.lists(st.tuples(_times, _times, _troubles), min_size=1, max_size=3)
_runs = st.lists(st.tuples(_steps, st.booleans()), min_size=1, max_size=3)


class Outside:
    """Carries a run out and notes what is seen of it: what happened, and when."""

    def __init__(self, stage: Stage, clock: ManualClock, name: str, steps: Sequence[Step]) -> None:
        self._stage, self._clock, self._name, self._steps = stage, clock, name, steps
        self._left = [list(troubles) for _, _, troubles in steps]
        self.seen: list[tuple[str, float]] = []

    def live(self, *, is_left: bool) -> None:
        """To its end; or, if it is left and dies, to its first death."""
        agent = self._agent()
        self._note("began")
        while True:
            try:
                self._stage.live(agent, id=self._name)
            except Crash:
                if is_left:
                    return
                self._note("restarted")
            else:
                self._note("ended")
                return

    def _agent(self) -> holdfast.Agent[..., int]:
        steps, clock = self._steps, self._clock

        @holdfast.step(retry=holdfast.Retry(attempts=9, base=1, cap=1))
        def work(n: int) -> int:
            self._note("asked")
            if self._left[n]:
                self._fail(*self._left[n].pop(0))
            clock.advance(steps[n][1])
            self._note("answered")
            return n

        @holdfast.agent(sla=holdfast.SLA(max_recovery=MAX_RECOVERY_S, availability=AVAILABILITY))
        def agent(run: holdfast.Run) -> int:
            for turn in run.turns():
                clock.advance(steps[turn][0])
                work(turn)
                if turn == len(steps) - 1:
                    break
            return len(steps)

        return agent

    def _fail(self, how: str, took_s: float, idle_s: float) -> None:
        self._clock.advance(took_s)
        self._note(how)
        if how == "raises":
            raise ConnectionResetError
        self._clock.advance(idle_s)
        raise Crash

    def _note(self, what: str) -> None:
        self.seen.append((what, self._clock.now()))


def failures_of(seen: Sequence[tuple[str, float]]) -> list[tuple[float, float, float]]:
    """When each failure began, when work went on, and when it had caught up; nan is not yet."""
    found: list[tuple[float, float, float]] = []
    failed_at = resumed_at = math.nan
    known_at, is_raised = seen[0][1], False
    for what, at in seen:
        if what in ("dies", "raises") and math.isnan(failed_at):
            failed_at = at if what == "raises" else known_at
        if what == "restarted" or (what == "asked" and is_raised):
            resumed_at = at
        if what == "answered" and not math.isnan(failed_at):
            found.append((failed_at, resumed_at, at))
            failed_at = resumed_at = math.nan
        if what in ("answered", "restarted", "raises"):
            known_at = at
        is_raised = what == "raises"
    return found if math.isnan(failed_at) else [*found, (failed_at, resumed_at, math.nan)]


def surely_below(failures: int, trials: int) -> float:
    """Clopper and Pearson's upper bound, from the binomial sum itself."""
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        tail = sum(
            math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(failures + 1)
        )
        low, high = (p, high) if tail > 0.05 else (low, p)
    return 1.0 if failures >= trials else high


@given(_runs)
@settings(max_examples=EXAMPLES, deadline=None, phases=[Phase.generate])
def test_the_report_says_what_was_seen_outside(plans: list[tuple[list[Step], bool]]) -> None:
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder) / "store", clock)
        runs = [Outside(stage, clock, f"run-{n}", plan[0]) for n, plan in enumerate(plans)]
        for run, (_, is_left) in zip(runs, plans, strict=True):
            run.live(is_left=is_left)
        clock.advance(LATER_S)
        opened = open_store(stage.path, clock)
        with contextlib.closing(opened):
            facts = list(facts_of(opened))
        with contextlib.closing(sqlite3.connect(stage.path / FILE)) as link:
            [[loose]] = link.execute("SELECT total(length(body) + length(mac)) FROM j")
            [[packed]] = link.execute("SELECT total(length(body)) FROM pack")

    told = keep(facts, clock.now())

    check(told, runs, clock.now())
    if all(run.seen[-1][0] == "ended" for run in runs):
        assert (loose + packed) / len(runs) == pytest.approx(told.measured[2].value)
        between_s, worked_s = times_of(plans)
        assert between_s / worked_s == pytest.approx(told.measured[3].value)


def check(told: Kept, runs: Sequence[Outside], now: float) -> None:
    success, time, storage, _, breach = told.measured
    every = [(run, each) for run in runs for each in failures_of(run.seen)]
    counted = [
        (run, each)
        for run, each in every
        if not math.isnan(each[2]) or now - each[0] > MAX_RECOVERY_S
    ]
    open_ = [each for _, each in counted if math.isnan(each[2])]
    assert (len(counted), len(open_)) == (success.samples, success.failures)
    if counted:
        assert 1 - surely_below(len(open_), len(counted)) == pytest.approx(success.bound)

    took_s = sorted(math.inf if math.isnan(end) else end - began for _, (began, _, end) in counted)
    assert (len(took_s), sum(took > 20 for took in took_s)) == (time.samples, time.failures)
    if took_s:
        assert took_s[math.ceil(0.95 * len(took_s)) - 1] == pytest.approx(time.value)

    ended = {run for run in runs if run.seen[-1][0] == "ended"}
    assert len(ended) == storage.samples
    broken = {
        run for run, (began, _, end) in counted if math.isnan(end) or end - began > MAX_RECOVERY_S
    }
    assert (len(ended | broken), len(broken)) == (breach.samples, breach.failures)

    down_s = [(now if math.isnan(back) else back) - began for _, (began, back, _) in counted]
    assert math.fsum(down_s) == pytest.approx(told.down_s, abs=1e-6)
    lasted_s = [(now if math.isnan(end) else end) - began for _, (began, _, end) in counted]
    over_s = math.fsum(max(0.0, each - MAX_RECOVERY_S) for each in lasted_s)
    assert over_s == pytest.approx(told.breach_s, abs=1e-6)


def times_of(plans: Sequence[tuple[Sequence[Step], bool]]) -> tuple[float, float]:
    """The agent's own time between calls with nothing in between, and that of answered calls."""
    every = [step for steps, _ in plans for step in enumerate(steps)]
    between_s = math.fsum(own for n, (own, _, failed) in every if n and not failed)
    return between_s, math.fsum(took for _, (_, took, _) in every)
