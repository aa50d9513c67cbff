"""How sure a measurement is: Clopper-Pearson for shares, bootstrap for means and ratios.

A promise about a share is shown by a bound, not by an estimate: 100 recoveries without a failure
show that at most 2.95 % fail, not that none does.
"""

import math
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

CONFIDENCE = 0.95
RESAMPLES = 1000
_STEPS_MAX = 300
_TINY = 1e-300
_EPSILON = 1e-14

T = TypeVar("T")


def upper(failures: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """The share of failures that is not exceeded, one-sided, by Clopper and Pearson.

    1 where nothing was tried: nothing is known then.
    """
    if trials == 0 or failures >= trials:
        return 1.0
    return _bisect(lambda p: beta(p, failures + 1, trials - failures), confidence)


def trials_for(share: float, failures: int = 0, confidence: float = CONFIDENCE) -> int:
    """How many trials with so many failures show that at most `share` fail."""
    low, high = failures, max(1, 2 * failures)
    while upper(failures, high, confidence) > share:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if upper(failures, middle, confidence) <= share else (middle, high)
        )
    return high


def bootstrap(
    samples: Sequence[T],
    statistic: Callable[[Sequence[T]], float],
    *,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """The two-sided interval of a statistic over samples, by percentiles of resamples."""
    chance = random.Random(seed)  # noqa: S311 the same samples give the same interval
    found = sorted(statistic(chance.choices(samples, k=len(samples))) for _ in range(resamples))
    edge = (1.0 - confidence) / 2
    last = len(found) - 1
    return found[math.floor(edge * last)], found[math.ceil((1.0 - edge) * last)]


def beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function: that a binomial share stays below `x`."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(1.0 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, _inverse(1.0 - (a + b) * x / (a + 1.0))
    total = d
    for m in range(1, _STEPS_MAX):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for step in (even, odd):
            d = _inverse(1.0 + step * d)
            c = 1.0 + step / c
            c = c if abs(c) > _TINY else _TINY
            total *= d * c
        if abs(d * c - 1.0) < _EPSILON:
            break
    return total


def _inverse(value: float) -> float:
    return 1.0 / (value if abs(value) > _TINY else _TINY)


def _bisect(rising: Callable[[float], float], goal: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < goal else (low, middle)
    return high
