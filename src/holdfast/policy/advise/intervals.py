"""How much work to put between two saves: Young, Daly, the exact optimum, and the same in money.

`save_s` is how long a save blocks the agent, `mtbf_s` the mean time between failures. None of these
depends on how long a restore or a detection takes.
"""

import math
from dataclasses import dataclass

FLAT = math.sqrt(2)
"""An interval wrong by this factor costs 6 % more overhead: not worth a change."""


def young(save_s: float, mtbf_s: float) -> float:
    """Young's first-order optimum."""
    return math.sqrt(2 * save_s * mtbf_s)


def daly(save_s: float, mtbf_s: float) -> float:
    """Daly's higher-order optimum."""
    if save_s >= 2 * mtbf_s:
        return mtbf_s
    ratio = save_s / (2 * mtbf_s)
    return young(save_s, mtbf_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save_s


def exact(save_s: float, mtbf_s: float) -> float:
    """The optimum itself, by Lambert's W."""
    return mtbf_s * (1 + lambert(-math.exp(-save_s / mtbf_s - 1)))


def lambert(x: float) -> float:
    """The principal branch of w * exp(w) = x for -1/e <= x, by Halley's steps."""
    branch = 2 * (math.e * x + 1)
    root = math.sqrt(max(0.0, branch))
    # Near the branch point -1/e the function is a square root, elsewhere a logarithm.
    w = -1 + root - branch / 3 + 11 / 72 * branch * root if x < 0 else math.log1p(x)
    for _ in range(50):
        power = math.exp(w)
        miss = w * power - x
        if w == -1 or not miss:
            break
        step = miss / (power * (w + 1) - (w + 2) * miss / (2 * w + 2))
        w -= step
        if abs(step) <= 1e-15 * max(1.0, abs(w)):
            break
    return w


def money(save_usd: float, per_second: float, work_usd_per_s: float) -> float:
    """The same in money: what a save costs against what a second of work is worth."""
    at_risk = per_second * work_usd_per_s
    return math.sqrt(2 * save_usd / at_risk) if at_risk else math.inf


def checkpoint_units(save_s: float, per_second: float, replay_s: float, unit_s: float) -> float:
    """With a journal a checkpoint only bounds the replay: every so many units."""
    at_risk = per_second * replay_s * unit_s
    return math.sqrt(2 * save_s / at_risk) if at_risk else math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Clamp:
    """Between what an interval may be: the overhead cap below, the recovery time above."""

    low_s: float
    high_s: float

    @property
    def is_possible(self) -> bool:
        """Whether any interval keeps both."""
        return self.low_s <= self.high_s and self.high_s > 0

    def put(self, interval_s: float) -> float:
        """The nearest interval that is allowed; where none is, the one that keeps the cap."""
        return max(self.low_s, min(interval_s, self.high_s))


def clamp(
    save_s: float,
    *,
    overhead: float | None,
    max_recovery_s: float | None,
    detect_s: float = 0.0,
    restore_s: float = 0.0,
) -> Clamp:
    """What is left between the overhead cap and the promised recovery time."""
    low_s = 0.0 if overhead is None else save_s / overhead if overhead else math.inf
    high_s = math.inf if max_recovery_s is None else max_recovery_s - detect_s - restore_s
    return Clamp(low_s=low_s, high_s=high_s)
