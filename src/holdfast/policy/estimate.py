"""How likely a recovery is to help and how long it takes: what was seen, and a prior.

The chance is the mean of a Beta distribution: with nothing seen it is the prior's, and what this
store has seen soon outweighs that. The time is the 95th percentile of what was measured.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

from holdfast.model.decision import Action

PERCENTILE = 0.95


class Prior(msgspec.Struct, frozen=True, kw_only=True):
    """What is believed before anything was seen: as if so often it helped, and so often not."""

    helped: float
    failed: float
    time_s: float


PRIORS: dict[Action, Prior] = {
    Action.RETRY: Prior(helped=2.0, failed=1.0, time_s=5.0),
    Action.RESTART: Prior(helped=2.0, failed=1.0, time_s=2.0),
    Action.ROLLBACK: Prior(helped=1.0, failed=1.0, time_s=4.0),
}
"""Guesses, worth three tries at most. A rollback is a restart and more, so never faster."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """How an action went in this store: how often it helped, how often not, how long it took."""

    helped: int = 0
    failed: int = 0
    times_s: Sequence[float] = ()


class Odds(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate of an action."""

    p_success: float
    time_s: float


def odds(action: Action, seen: Mapping[Action, Seen]) -> Odds:
    """What to expect of an action, after what was seen of it."""
    prior, found = PRIORS[action], seen.get(action, Seen())
    tries = prior.helped + prior.failed + found.helped + found.failed
    time_s = percentile(found.times_s, prior.time_s)
    if action is Action.ROLLBACK:
        time_s = max(time_s, odds(Action.RESTART, seen).time_s)
    return Odds(p_success=(prior.helped + found.helped) / tries, time_s=time_s)


def percentile(times_s: Sequence[float], otherwise: float, share: float = PERCENTILE) -> float:
    """The time that `share` of the measured ones do not pass; `otherwise` when there are none."""
    if not times_s:
        return otherwise
    ordered = sorted(times_s)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]
