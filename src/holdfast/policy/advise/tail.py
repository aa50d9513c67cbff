"""How long recoveries take: the exact distribution of many incidents, swept once."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Incident(NamedTuple):
    """A recovery that takes `begins_s` and the part of its unit that was done when it failed.

    That part is exponential, cut to [0, `spread_s`]. `down_s` is detection and restore alone.
    """

    weight: float
    down_s: float
    begins_s: float
    spread_s: float


class Tail:
    """The distribution of recovery times; empty where nothing ever fails."""

    def __init__(self, rate: float, incidents: Iterable[Incident]) -> None:
        self._rate = rate
        self._knots = _sweep(rate, [each for each in incidents if each.weight > 0])

    def quantile(self, share: float) -> float | None:
        """The time that `share` of the recoveries do not pass."""
        if not self._knots:
            return None
        wanted = share * self._knots[-1].below
        here = bisect_left(self._knots, wanted, key=lambda knot: knot.below)
        if here == 0:
            return self._knots[0].at_s
        before, after = self._knots[here - 1], self._knots[here]
        rest = before.begun - wanted
        if before.left <= 0 or rest <= 0:
            return after.at_s
        return min(after.at_s, before.at_s + max(0.0, -math.log(rest / before.left)) / self._rate)

    def at_most(self, limit_s: float) -> float | None:
        """The share of recoveries that take no longer than `limit_s`."""
        if not self._knots:
            return None
        here = bisect_right(self._knots, limit_s, key=lambda knot: knot.at_s)
        if here == 0:
            return 0.0
        knot = self._knots[here - 1]
        later = math.exp(-self._rate * (limit_s - knot.at_s))
        return (knot.begun - knot.left * later) / self._knots[-1].below


class _Knot(NamedTuple):
    """Between two knots the weight below a time is `begun` - `left` * exp(-rate * time since)."""

    at_s: float
    below: float
    begun: float
    left: float


def _sweep(rate: float, incidents: Sequence[Incident]) -> list[_Knot]:
    events: list[tuple[float, float, float]] = []
    for each in incidents:
        fails = -math.expm1(-rate * each.spread_s)
        full = each.weight / fails
        events.append((each.begins_s, full, full))
        # At its end what is begun of it is its weight, and nothing of it is left.
        events.append((each.begins_s + each.spread_s, each.weight - full, full * (fails - 1)))
    events.sort()
    knots: list[_Knot] = []
    at_s = begun = left = 0.0
    for when_s, more, remains in events:
        left *= math.exp(-rate * (when_s - at_s)) if knots else 1.0
        at_s, begun, left = when_s, begun + more, max(0.0, left + remains)
        knot = _Knot(at_s, begun - left, begun, left)
        if knots and knots[-1].at_s == at_s:
            knots[-1] = knot
        else:
            knots.append(knot)
    return knots


def excess_s(limit_s: float, incident: Incident, rate: float) -> float:
    """By how much a recovery passes the limit, on average (those that do not count as nothing)."""
    spread, kept = incident.spread_s, math.exp(-rate * incident.spread_s)
    left = limit_s - incident.begins_s
    if left >= spread:
        return 0.0
    fails = -math.expm1(-rate * spread)
    if left <= 0:
        return -left + 1 / rate - spread * kept / fails
    return (math.exp(-rate * left) / rate - kept * (spread - left + 1 / rate)) / fails


def weighted_quantiles(
    values: Iterable[tuple[float, float]], shares: Sequence[float]
) -> list[float | None]:
    """For each share, rising, the value that so much of the weight does not pass.

    None where there is no weight.
    """
    ordered = sorted(values)
    total = math.fsum(weight for _, weight in ordered)
    found: list[float | None] = []
    seen = 0.0
    for value, weight in ordered if total else ():
        seen += weight
        while len(found) < len(shares) and seen >= shares[len(found)] * total * (1 - 1e-12):
            found.append(value)
    rest = ordered[-1][0] if total else None
    return found + [rest] * (len(shares) - len(found))
