"""How long recoveries take: the exact distribution of many incidents."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SAMPLE = 16
"""So many of the pieces are looked at for a place to cut all of them."""


class Incidents(NamedTuple):
    """Recoveries, in columns: each takes `begins_s` and the part of its unit done when it failed.

    That part is exponential, cut to [0, `spread_s`]. `down_s` is detection and restore alone.
    """

    weight: Sequence[float]
    down_s: Sequence[float]
    begins_s: Sequence[float]
    spread_s: Sequence[float]


Piece = tuple[float, float, float]
"""Weight over time: of the first, as dense as exp(-rate * time since the second), to the third."""


class Tail:
    """The distribution of recovery times; empty where nothing ever fails."""

    def __init__(self, rate: float, incidents: Incidents) -> None:
        self._rate = rate
        self._total = math.fsum(incidents.weight)
        self._pieces: list[Piece] = [
            (weight / -math.expm1(-rate * spread_s), begins_s, begins_s + spread_s)
            if begins_s + spread_s > begins_s
            else _shortest(rate, weight, begins_s)
            for weight, _, begins_s, spread_s in zip(*incidents, strict=True)
            if weight > 0
        ]

    def quantile(self, share: float) -> float | None:
        """The time that `share` of the recoveries do not pass."""
        [found] = self.quantiles((share,))
        return found

    def quantiles(self, shares: Sequence[float]) -> list[float | None]:
        """For each share, rising, the time that so many of the recoveries do not pass."""
        if not self._pieces:
            return [None] * len(shares)
        return [*_select(self._rate, self._pieces, [share * self._total for share in shares])]

    def at_most(self, limit_s: float) -> float | None:
        """The share of recoveries that take no longer than `limit_s`."""
        if not self._pieces:
            return None
        return min(1.0, _before(self._rate, self._pieces, limit_s) / self._total)


def _shortest(rate: float, weight: float, begins_s: float) -> Piece:
    """For a unit so short beside its recovery that adding it changes no digit."""
    ends_s = math.nextafter(begins_s, math.inf)
    return weight / -math.expm1(-rate * (ends_s - begins_s)), begins_s, ends_s


class _Window(NamedTuple):
    """A stretch of time: the weight before it, and the pieces that it holds.

    `across` is how dense at its begin what lasts from there to its end is, all of it together.
    """

    begin_s: float
    end_s: float
    below: float
    across: float
    pieces: Sequence[Piece]


def _select(rate: float, pieces: Sequence[Piece], wanted: Sequence[float]) -> list[float]:
    """When the weight reaches each of `wanted`, which rise.

    As elements are selected from many that are not sorted: all pieces are cut in two where one of
    them begins or ends, until none does so within. What is left of a piece beyond a cut is a piece.
    """
    begin_s, end_s = min(piece[1] for piece in pieces), max(piece[2] for piece in pieces)
    found: list[float] = []
    todo = [(_Window(begin_s, end_s, 0.0, 0.0, pieces), wanted)]
    while todo:
        window, wanted = todo.pop()
        window = _merged(window)
        if not window.pieces:
            found += [_reach(rate, window, each) for each in wanted]
            continue
        at_s = _place(window)
        below = _below(rate, window, at_s)
        before = [each for each in wanted if each <= below]
        if len(before) < len(wanted):
            todo.append((_second(rate, window, at_s, below), wanted[len(before) :]))
        if before:
            todo.append((_first(window, at_s), before))
    return found


def _merged(window: _Window) -> _Window:
    """With all that lasts from its begin to its end taken together."""
    begin_s, end_s = window.begin_s, window.end_s
    inner = [piece for piece in window.pieces if piece[1] > begin_s or piece[2] < end_s]
    if len(inner) == len(window.pieces):
        return window
    whole = [piece[0] for piece in window.pieces if piece[1] <= begin_s and piece[2] >= end_s]
    return window._replace(pieces=inner, across=window.across + math.fsum(whole))


def _place(window: _Window) -> float:
    """The middle one of some of the times at which pieces begin or end within."""
    some = window.pieces[:: 1 + len(window.pieces) // SAMPLE]
    times_s = sorted(
        at_s
        for _, from_s, to_s in some
        for at_s in (from_s, to_s)
        if window.begin_s < at_s < window.end_s
    )
    return times_s[len(times_s) // 2]


def _below(rate: float, window: _Window, at_s: float) -> float:
    """The weight up to a time within the window."""
    across = -window.across * math.expm1(-rate * (at_s - window.begin_s))
    return window.below + across + _before(rate, window.pieces, at_s)


def _first(window: _Window, at_s: float) -> _Window:
    """The part of it up to a time."""
    cut = [
        each if each[2] <= at_s else (each[0], each[1], at_s)
        for each in window.pieces
        if each[1] < at_s
    ]
    return window._replace(end_s=at_s, pieces=cut)


def _second(rate: float, window: _Window, at_s: float, below: float) -> _Window:
    """The part of it from a time on."""
    cut = [
        each if each[1] >= at_s else (each[0] * math.exp(rate * (each[1] - at_s)), at_s, each[2])
        for each in window.pieces
        if each[2] > at_s
    ]
    across = window.across * math.exp(-rate * (at_s - window.begin_s))
    return _Window(at_s, window.end_s, below, across, cut)


def _before(rate: float, pieces: Sequence[Piece], at_s: float) -> float:
    """The weight of the pieces up to a time."""
    return math.fsum(
        [
            -dense * math.expm1(rate * (from_s - (to_s if to_s < at_s else at_s)))  # noqa: FURB136 faster
            for dense, from_s, to_s in pieces
            if from_s < at_s
        ]
    )


def _reach(rate: float, window: _Window, wanted: float) -> float:
    """When the weight reaches `wanted` in a window that nothing begins or ends in."""
    more = wanted - window.below
    if more <= 0:
        return window.begin_s
    if more >= window.across:
        return window.end_s
    return min(window.end_s, window.begin_s - math.log1p(-more / window.across) / rate)


def excess_s(limit_s: float, begins_s: float, spread_s: float, rate: float) -> float:
    """By how much a recovery passes the limit, on average (those that do not count as nothing)."""
    left = limit_s - begins_s
    if left >= spread_s:
        return 0.0
    kept, fails = math.exp(-rate * spread_s), -math.expm1(-rate * spread_s)
    if left <= 0:
        return -left + 1 / rate - spread_s * kept / fails
    return (math.exp(-rate * left) / rate - kept * (spread_s - left + 1 / rate)) / fails


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
