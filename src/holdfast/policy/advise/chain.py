"""What a strategy comes to, exactly: an absorbing chain over the units of a run.

From unit i a run goes on to i + 1, or fails with a cause k and goes back to where that one's
recovery starts, or ends without success. Failures are exponential, independent, and none happens
while one is being detected and restored. Jumps only go back, so the expected number of visits
follows from the last unit to the first without a matrix. Every cut between two units is crossed
forwards as often as backwards, plus once for each run that ends beyond it; that sum has no
differences in it, so nothing cancels however unlikely an end is.
"""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate

from holdfast.model.case import Cause, Promise, Scope, Strategy, Unit
from holdfast.policy.advise.places import Return, returns, saves
from holdfast.policy.advise.tail import Incident, Tail, excess_s

DIGITS = 9
"""Times that differ by less than a nanosecond are one."""
VISITS_MAX = 1e250
"""Beyond this a run practically never comes to its end."""


class Hopeless(ArithmeticError):
    """Under this strategy a run practically never comes to its end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """The means of one task under one strategy; `visits` is how often each unit is begun.

    Effects are passed over when a run goes back behind them; those of which no record is left by
    then are repeated, the others are undone or fenced.
    """

    visits: Sequence[float]
    success: float
    time_s: float
    down_s: float
    usd: float
    breach: float | None
    breach_s: float | None
    effects_passed_over: float
    effects_repeated: float
    effects_in_doubt: float
    failures: float
    remote_restores: float
    blocked_s: float

    @property
    def availability(self) -> float:
        """The share of its time in which a task was not down."""
        return 1.0 - self.down_s / self.time_s

    @property
    def usd_per_success(self) -> float:
        """Failed tasks stop early and look cheap, so what all cost is set against successes."""
        return self.usd / self.success if self.success else math.inf


class Chain:
    """One strategy over the units of a run."""

    def __init__(
        self, units: Sequence[Unit], causes: Sequence[Cause], strategy: Strategy, promise: Promise
    ) -> None:
        self.units, self.promise = units, promise
        self.causes = [cause for cause in causes if cause.per_second > 0]
        self.saves = saves(units, strategy)
        self.exposed = [u.seconds + s for u, s in zip(units, self.saves, strict=True)]
        self.starts = [0.0, *accumulate(self.exposed)]
        self.rate = math.fsum(cause.per_second for cause in self.causes)
        self.returns = [returns(cause, strategy, len(units)) for cause in self.causes]
        self.shares = [cause.per_second / self.rate for cause in self.causes]
        self.kept = [math.exp(-self.rate * a) for a in self.exposed]
        # A rollback knows what it passes over as long as there is a journal to tell it.
        self._forgets = {Scope.PROCESS, Scope.HOST}
        self._forgets |= {Scope.ROLLBACK} if strategy.journal == "none" else set()
        self._found: tuple[Sequence[float], list[Incident]] | None = None
        self.fails = [-math.expm1(-self.rate * a) for a in self.exposed]

    def reached(self) -> Reached:
        """The means; raises `Hopeless` where a run never ends."""
        goes = [
            [share * cause.p_recovered * fails for fails in self.fails]
            for cause, share in zip(self.causes, self.shares, strict=True)
        ]
        lost = math.fsum(
            share * (1 - cause.p_recovered)
            for cause, share in zip(self.causes, self.shares, strict=True)
        )
        visits = self._visits(goes, [lost * fails for fails in self.fails])
        success = visits[-1] * self.kept[-1]
        failures = math.fsum(v * f for v, f in zip(visits, self.fails, strict=True))
        down_s = math.fsum(
            v * f * share * (cause.detect_s + r.restore_s)
            for cause, share, row in zip(self.causes, self.shares, self.returns, strict=True)
            for v, f, r in zip(visits, self.fails, row, strict=True)
        )
        exposed = zip(visits, self.exposed, self.fails, strict=True)
        work_s = math.fsum(v * (f / self.rate if self.rate else a) for v, a, f in exposed)
        breach_s = None
        if self.promise.max_recovery_s is not None:
            breach_s = self._excess(visits) + (1 - success) * math.fsum(
                unit.seconds for unit in self.units
            )
        return Reached(
            visits=visits,
            success=success,
            time_s=work_s + down_s,
            down_s=down_s,
            usd=self._usd(visits),
            breach=self._breach(),
            breach_s=breach_s,
            effects_passed_over=self._passed_over(visits, goes, set(Scope)),
            effects_repeated=self._passed_over(visits, goes, self._forgets),
            effects_in_doubt=math.fsum(
                v * f
                for v, f, unit in zip(visits, self.fails, self.units, strict=True)
                if unit.is_effect
            ),
            failures=failures,
            remote_restores=self._hosts(visits, goes),
            blocked_s=math.fsum(v * s for v, s in zip(visits, self.saves, strict=True)),
        )

    def tail(self, visits: Sequence[float]) -> Tail:
        """How long recoveries take, on the clock `catch_up`."""
        return Tail(self.rate, self._incidents(visits))

    def resume_times(self, visits: Sequence[float]) -> list[tuple[float, float]]:
        """How long it takes until a run goes on, each with its weight: the clock `resume`."""
        return [(each.down_s, each.weight) for each in self._incidents(visits)]

    def _visits(self, goes: Sequence[Sequence[float]], ends: Sequence[float]) -> list[float]:
        """How often each unit is begun, given where recoveries and ends take their share."""
        count = len(self.units)
        visits = [0.0] * count
        ended = self.kept[-1]  # What ends at or beyond the unit, once the last is visited once.
        back: dict[int, float] = {}  # What crosses this cut backwards, by where it goes.
        visits[-1] = 1.0
        if min(self.kept) < 1 / VISITS_MAX:
            raise Hopeless
        for unit in range(count - 1, -1, -1):
            if unit < count - 1:
                visits[unit] = (ended + math.fsum(back.values())) / self.kept[unit]
                if not visits[unit] < VISITS_MAX:
                    raise Hopeless
            ended += visits[unit] * ends[unit]
            for row, share in zip(self.returns, goes, strict=True):
                to = row[unit].to
                if to < unit:
                    back[to] = back.get(to, 0.0) + visits[unit] * share[unit]
            back.pop(unit, None)
        return [visit / ended for visit in visits]

    def _usd(self, visits: Sequence[float]) -> float:
        total = []
        for visit, unit in zip(visits, self.units, strict=True):
            exposure = self.rate * unit.seconds
            rest = -math.expm1(-exposure) / exposure if exposure else 1.0
            total.append(visit * unit.usd * (unit.upfront + (1 - unit.upfront) * rest))
        return math.fsum(total)

    def _incidents(self, visits: Sequence[float]) -> list[Incident]:
        if self._found is not None and self._found[0] is visits:
            return self._found[1]
        # Units that are alike make like incidents: those are one, with the weight of all.
        weights: dict[tuple[float, float, float], float] = {}
        starts, exposed, fails = self.starts, self.exposed, self.fails
        for cause, share, row in zip(self.causes, self.shares, self.returns, strict=True):
            if not cause.p_recovered:
                continue
            weigh, detect_s = share * cause.p_recovered, cause.detect_s
            for unit, (to, restore_s) in enumerate(row):
                redo_s = round(starts[unit] - starts[to], DIGITS)
                alike = detect_s + restore_s, redo_s, exposed[unit]
                weight = visits[unit] * fails[unit] * weigh
                weights[alike] = weights.get(alike, 0.0) + weight
        found = [
            Incident(weight, down_s, down_s + redo_s, spread_s)
            for (down_s, redo_s, spread_s), weight in weights.items()
        ]
        self._found = visits, found
        return found

    def _excess(self, visits: Sequence[float]) -> float:
        limit = self.promise.max_recovery_s
        assert limit is not None
        if self.promise.clock == "resume":
            return math.fsum(w * max(0.0, s - limit) for s, w in self.resume_times(visits))
        return math.fsum(
            each.weight * excess_s(limit, each, self.rate) for each in self._incidents(visits)
        )

    def _breach(self) -> float | None:
        """The share of runs that end without success, or with one recovery beyond the limit."""
        limit = self.promise.max_recovery_s
        if limit is None:
            return None
        goes: list[list[float]] = []
        ends = [0.0] * len(self.units)
        for cause, share, row in zip(self.causes, self.shares, self.returns, strict=True):
            line = []
            for unit, back in enumerate(row):
                late = self._late(limit, cause, back, unit)
                line.append(share * cause.p_recovered * (self.fails[unit] - late))
                missed = (1 - cause.p_recovered) * self.fails[unit]
                ends[unit] += share * (missed + cause.p_recovered * late)
            goes.append(line)
        visits = self._visits(goes, ends)
        return math.fsum(v * e for v, e in zip(visits, ends, strict=True))

    def _late(self, limit: float, cause: Cause, back: Return, unit: int) -> float:
        """How likely the unit fails so late that its recovery passes the limit."""
        down_s = cause.detect_s + back.restore_s
        if self.promise.clock == "resume":
            return 0.0 if down_s <= limit else self.fails[unit]
        begins_s = down_s + self.starts[unit] - self.starts[back.to]
        fits_s = min(max(limit - begins_s, 0.0), self.exposed[unit])
        return self.kept[unit] * math.expm1(self.rate * (self.exposed[unit] - fits_s))

    def _passed_over(
        self, visits: Sequence[float], goes: Sequence[Sequence[float]], scopes: AbstractSet[Scope]
    ) -> float:
        before = [0, *accumulate(int(unit.is_effect) for unit in self.units)]
        if not before[-1]:
            return 0.0
        return math.fsum(
            visits[unit] * share[unit] * (before[unit] - before[back.to])
            for cause, row, share in zip(self.causes, self.returns, goes, strict=True)
            if cause.scope in scopes
            for unit, back in enumerate(row)
        )

    def _hosts(self, visits: Sequence[float], goes: Sequence[Sequence[float]]) -> float:
        return math.fsum(
            visit * gone
            for cause, share in zip(self.causes, goes, strict=True)
            if cause.scope is Scope.HOST
            for visit, gone in zip(visits, share, strict=True)
        )


def floor(units: Sequence[Unit], causes: Sequence[Cause]) -> float:
    """The breach rate that no interval can beat: failures that nothing recovers from."""
    time_s = math.fsum(unit.seconds for unit in units)
    return -math.expm1(-time_s * math.fsum(c.per_second * (1 - c.p_recovered) for c in causes))
