"""The chain played out by chance: what its algebra says, seen in so many runs.

It shares the assumptions of the chain, so it proves the algebra; drills prove the model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from holdfast.model.case import Cause, Promise, Strategy, Unit
from holdfast.policy.advise.chain import Chain
from holdfast.policy.estimate import percentile

FAILURES_MAX = 100_000
"""A run with more failures is given up: it practically never ends."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mean:
    """An average over runs, and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulated:
    """What was seen in `runs` runs; recovery times on the clock `catch_up`."""

    runs: int
    time_s: Mean
    usd: Mean
    success: Mean
    breach: Mean | None
    recoveries: int
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None


@dataclass(slots=True)
class _Played:
    time_s: float = 0.0
    usd: float = 0.0
    is_success: bool = True
    is_breach: bool = False


def simulate(
    units: Sequence[Unit],
    causes: Sequence[Cause],
    strategy: Strategy,
    promise: Promise,
    *,
    runs: int,
    random: Random,
) -> Simulated:
    """Play `runs` runs."""
    chain = Chain(units, causes, strategy, promise)
    times_s: list[float] = []
    played = [_play(chain, random, times_s) for _ in range(runs)]
    has_limit = promise.breach_s is not None
    return Simulated(
        runs=runs,
        time_s=mean([run.time_s for run in played]),
        usd=mean([run.usd for run in played]),
        success=_share([run.is_success for run in played]),
        breach=_share([run.is_breach for run in played]) if has_limit else None,
        recoveries=len(times_s),
        p50_s=percentile(times_s, 0.0, 0.50) if times_s else None,
        p95_s=percentile(times_s, 0.0, 0.95) if times_s else None,
        p99_s=percentile(times_s, 0.0, 0.99) if times_s else None,
    )


def mean(values: Sequence[float]) -> Mean:
    """The average and its standard error."""
    count = len(values)
    average = math.fsum(values) / count
    spread = math.fsum((value - average) ** 2 for value in values) / max(1, count - 1)
    return Mean(value=average, error=math.sqrt(spread / count))


def _share(cases: Sequence[bool]) -> Mean:
    """A share and its error; one that never varied is as sure as one case of so many."""
    found = mean([float(case) for case in cases])
    return Mean(value=found.value, error=max(found.error, 1 / len(cases)))


def _play(chain: Chain, random: Random, times_s: list[float]) -> _Played:
    run, unit, failures = _Played(), 0, 0
    limit_s = chain.promise.breach_s
    while unit < len(chain.units):
        exposed_s = chain.exposed[unit]
        failed_s = random.expovariate(chain.rate) if chain.rate else math.inf
        if failed_s >= exposed_s:
            run.time_s += exposed_s
            run.usd += chain.units[unit].usd
            unit += 1
            continue
        failures += 1
        [kind] = random.choices(range(len(chain.causes)), chain.shares)
        cause, row = chain.causes[kind], chain.returns[kind]
        back, down_s = row.to[unit], cause.detect_s + row.restore_s[unit]
        run.time_s += failed_s + down_s
        run.usd += _paid(chain.units[unit], failed_s)
        if random.random() >= cause.p_recovered or failures > FAILURES_MAX:
            run.is_success, run.is_breach = False, True
            break
        caught_up_s = down_s + chain.starts[unit] - chain.starts[back] + failed_s
        times_s.append(caught_up_s)
        shown_s = down_s if chain.promise.clock == "resume" else caught_up_s
        run.is_breach |= limit_s is not None and shown_s > limit_s
        unit = back
    return run


def _paid(unit: Unit, failed_s: float) -> float:
    done = min(1.0, failed_s / unit.seconds) if unit.seconds else 1.0
    return unit.usd * (unit.upfront + (1 - unit.upfront) * done)
