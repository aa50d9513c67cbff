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
from dataclasses import dataclass
from itertools import accumulate, compress
from operator import mul

from holdfast.model.case import Cause, Promise, Scope, Strategy, Unit
from holdfast.policy.advise.places import Returns, returns, saves
from holdfast.policy.advise.tail import Incidents, Tail, excess_s

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
        self._found: tuple[Sequence[float], Incidents] | None = None
        self.fails = [-math.expm1(-self.rate * a) for a in self.exposed]

    def reached(self) -> Reached:
        """The means; raises `Hopeless` where a run never ends."""
        recovered = [
            share * cause.p_recovered for share, cause in zip(self.shares, self.causes, strict=True)
        ]
        lost = math.fsum(
            share * (1 - cause.p_recovered)
            for cause, share in zip(self.causes, self.shares, strict=True)
        )
        goes = [
            [] if row.is_here else [share * fails for fails in self.fails]
            for row, share in zip(self.returns, recovered, strict=True)
        ]
        visits = self._visits(goes, [lost * fails for fails in self.fails])
        success = visits[-1] * self.kept[-1]
        failed = list(map(mul, visits, self.fails))
        failures = math.fsum(failed)
        down_s = math.fsum(
            share * (cause.detect_s * failures + math.fsum(map(mul, failed, row.restore_s)))
            for cause, share, row in zip(self.causes, self.shares, self.returns, strict=True)
        )
        work_s = failures / self.rate if self.rate else math.fsum(map(mul, visits, self.exposed))
        breach_s = None
        if self.promise.breach_s is not None:
            breach_s = self._excess(visits) + (1 - success) * math.fsum(
                unit.seconds for unit in self.units
            )
        passed_over = self._passed_over(failed, recovered)
        return Reached(
            visits=visits,
            success=success,
            time_s=work_s + down_s,
            down_s=down_s,
            usd=self._usd(visits),
            breach=self._breach(),
            breach_s=breach_s,
            effects_passed_over=math.fsum(passed_over.values()),
            effects_repeated=math.fsum(passed_over[scope] for scope in self._forgets),
            effects_in_doubt=math.fsum(
                compress(failed, (unit.is_effect for unit in self.units)),
            ),
            failures=failures,
            remote_restores=failures
            * math.fsum(
                share
                for cause, share in zip(self.causes, recovered, strict=True)
                if cause.scope is Scope.HOST
            ),
            blocked_s=math.fsum(map(mul, visits, self.saves)),
        )

    def tail(self, visits: Sequence[float]) -> Tail:
        """How long recoveries take, on the clock `catch_up`."""
        return Tail(self.rate, self._incidents(visits))

    def resume_times(self, visits: Sequence[float]) -> list[tuple[float, float]]:
        """How long it takes until a run goes on, each with its weight: the clock `resume`."""
        weights: dict[float, float] = {}
        incidents = self._incidents(visits)
        for down_s, weight in zip(incidents.down_s, incidents.weight, strict=True):
            weights[down_s] = weights.get(down_s, 0.0) + weight
        return list(weights.items())

    def _visits(self, goes: Sequence[Sequence[float]], ends: Sequence[float]) -> list[float]:
        """How often each unit is begun, given where recoveries and ends take their share.

        What simply does a unit again is no jump, and takes no share in `goes`.
        """
        jumps = [
            (row.to, share)
            for row, share in zip(self.returns, goes, strict=True)
            if not row.is_here
        ]
        kept, last = self.kept, len(self.units) - 1
        if min(kept) < 1 / VISITS_MAX:
            raise Hopeless
        visits = [1.0] * len(kept)
        ended = kept[last]  # What ends at or beyond the unit, once the last is visited once.
        back: dict[int, float] = {}  # What crosses this cut backwards, by where it goes.
        for unit in range(last, -1, -1):
            visit = 1.0
            if unit < last:
                visit = (ended + sum(back.values())) / kept[unit]
                if not visit < VISITS_MAX:
                    raise Hopeless
            visits[unit] = visit
            ended += visit * ends[unit]
            for to, share in jumps:
                target = to[unit]
                if target < unit:
                    back[target] = back.get(target, 0.0) + visit * share[unit]
            back.pop(unit, None)
        return [visit / ended for visit in visits]

    def _usd(self, visits: Sequence[float]) -> float:
        total = []
        for visit, unit in zip(visits, self.units, strict=True):
            if unit.usd:
                exposure = self.rate * unit.seconds
                rest = -math.expm1(-exposure) / exposure if exposure else 1.0
                total.append(visit * unit.usd * (unit.upfront + (1 - unit.upfront) * rest))
        return math.fsum(total)

    def _incidents(self, visits: Sequence[float]) -> Incidents:
        if self._found is not None and self._found[0] is visits:
            return self._found[1]
        # Units that are alike make like incidents: those are one, with the weight of all.
        weights: dict[tuple[float, float, float], float] = {}
        failed = list(map(mul, visits, self.fails))
        for cause, share, row in zip(self.causes, self.shares, self.returns, strict=True):
            if not cause.p_recovered:
                continue
            weigh, detect_s = share * cause.p_recovered, cause.detect_s
            for restore_s, redo_s, spread_s, often in zip(
                row.restore_s, self._redone(row), self.exposed, failed, strict=True
            ):
                alike = detect_s + restore_s, round(redo_s, DIGITS) if redo_s else 0.0, spread_s
                weights[alike] = weights.get(alike, 0.0) + often * weigh
        found = Incidents(
            list(weights.values()),
            [down_s for down_s, _, _ in weights],
            [down_s + redo_s for down_s, redo_s, _ in weights],
            [spread_s for _, _, spread_s in weights],
        )
        self._found = visits, found
        return found

    def _redone(self, row: Returns) -> list[float]:
        """For each unit, how long the whole units take that are done again before it."""
        if row.is_here:
            return [0.0] * len(self.units)
        starts = self.starts
        return [start - starts[to] for start, to in zip(starts, row.to, strict=False)]

    def _excess(self, visits: Sequence[float]) -> float:
        limit = self.promise.breach_s
        assert limit is not None
        if self.promise.clock == "resume":
            return math.fsum(w * max(0.0, s - limit) for s, w in self.resume_times(visits))
        return math.fsum(
            weight * excess_s(limit, begins_s, spread_s, self.rate)
            for weight, _, begins_s, spread_s in zip(*self._incidents(visits), strict=True)
            if weight and begins_s + spread_s > limit
        )

    def _breach(self) -> float | None:
        """The share of runs that end without success, or with one recovery beyond the limit."""
        limit = self.promise.breach_s
        if limit is None:
            return None
        goes: list[list[float]] = []
        ends = [0.0] * len(self.units)
        for cause, share, row in zip(self.causes, self.shares, self.returns, strict=True):
            weigh, missed = share * cause.p_recovered, share * (1 - cause.p_recovered)
            late = self._late(limit, cause, row)
            ends = [
                end + missed * fails + weigh * beyond
                for end, fails, beyond in zip(ends, self.fails, late, strict=True)
            ]
            within = zip(self.fails, late, strict=True)
            goes.append(
                [] if row.is_here else [weigh * (fails - beyond) for fails, beyond in within]
            )
        return math.fsum(map(mul, self._visits(goes, ends), ends))

    def _late(self, limit: float, cause: Cause, row: Returns) -> list[float]:
        """For each unit, how likely it fails so late that its recovery passes the limit."""
        left_s = limit - cause.detect_s
        if self.promise.clock == "resume":
            restored = zip(row.restore_s, self.fails, strict=True)
            return [0.0 if restore_s <= left_s else fails for restore_s, fails in restored]
        rate, expm1 = self.rate, math.expm1
        found = []
        for restore_s, redo_s, exposed_s, kept, fails in zip(
            row.restore_s, self._redone(row), self.exposed, self.kept, self.fails, strict=True
        ):
            beyond_s = exposed_s - (left_s - restore_s - redo_s)
            if beyond_s <= 0:
                found.append(0.0)
            else:
                found.append(fails if beyond_s >= exposed_s else kept * expm1(rate * beyond_s))
        return found

    def _passed_over(
        self, failed: Sequence[float], recovered: Sequence[float]
    ) -> dict[Scope, float]:
        """How many effects a run goes back behind, by how far the failure reached."""
        found = dict.fromkeys(Scope, 0.0)
        before = [0, *accumulate(int(unit.is_effect) for unit in self.units)]
        if not before[-1]:
            return found
        for cause, row, share in zip(self.causes, self.returns, recovered, strict=True):
            if not row.is_here:
                found[cause.scope] += share * math.fsum(
                    often * (done - before[to])
                    for often, done, to in zip(failed, before, row.to, strict=False)
                )
        return found


def floor(units: Sequence[Unit], causes: Sequence[Cause]) -> float:
    """The breach rate that no interval can beat: failures that nothing recovers from."""
    time_s = math.fsum(unit.seconds for unit in units)
    return -math.expm1(-time_s * math.fsum(c.per_second * (1 - c.p_recovered) for c in causes))
