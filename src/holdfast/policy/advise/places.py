"""Where each failure sends a run back to, and how long the restore takes."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.model.case import Cause, Scope, Strategy, Unit


class Returns(NamedTuple):
    """For each unit i: a failure in it goes on from unit `to[i]`, after `restore_s[i]`.

    Where `is_here`, every unit is simply done again: `to[i]` is i.
    """

    to: Sequence[int]
    restore_s: Sequence[float]
    is_here: bool


def saves(units: Sequence[Unit], strategy: Strategy) -> list[float]:
    """How long the agent is blocked after each unit; no checkpoint follows the last."""
    found = [strategy.journal_s] * len(units)
    for every, blocked_s in (
        (strategy.local_every, strategy.local_s),
        (strategy.remote_every, strategy.remote_s),
    ):
        for unit in range(every - 1, len(units) - 1, every) if every else ():
            found[unit] += blocked_s
    return found


def points(count: int, every: int) -> int:
    """How many checkpoints a run of so many units makes: none follows the last."""
    return (count - 1) // every if every else 0


def returns(cause: Cause, strategy: Strategy, count: int) -> Returns:
    """For each unit, where a failure of this cause in it sends the run."""
    match cause.scope:
        case Scope.IN_PLACE | Scope.POISON:
            return Returns(range(count), [0.0] * count, is_here=True)
        case Scope.PROCESS:
            newest = _newest(strategy, count)
            is_kept = strategy.journal != "none"
            return _return(strategy, newest, strategy.restore_local_s, is_kept=is_kept)
        case Scope.HOST:
            newest = _last(strategy.remote_every, count)
            is_kept = strategy.journal == "remote"
            return _return(strategy, newest, strategy.restore_remote_s, is_kept=is_kept)
        case Scope.ROLLBACK:
            newest, every = _newest(strategy, count), _least(strategy)
            if not every and strategy.journal != "none":
                newest, every = range(count), 1  # Every recorded unit is a point to go back to.
            back = cause.generations * every
            to = [max(0, unit - back) for unit in newest]
            return Returns(to, [strategy.restore_local_s] * count, is_here=False)


def _return(
    strategy: Strategy, newest: Sequence[int], restore_s: float, *, is_kept: bool
) -> Returns:
    """Where the journal is kept, what it holds since the newest checkpoint is only gone through."""
    if not is_kept:
        return Returns(newest, [restore_s] * len(newest), is_here=False)
    replay_s = strategy.replay_s
    replayed = [restore_s + replay_s * (unit - last) for unit, last in enumerate(newest)]
    return Returns(range(len(newest)), replayed, is_here=True)


def _least(strategy: Strategy) -> int:
    return min(filter(None, (strategy.local_every, strategy.remote_every)), default=0)


def _newest(strategy: Strategy, count: int) -> Sequence[int]:
    """For each unit, the newest checkpoint on any level."""
    far = _last(strategy.remote_every, count)
    return list(map(max, far, _last(strategy.local_every, count))) if strategy.local_every else far


def _last(every: int, count: int) -> Sequence[int]:
    """For each unit, the newest checkpoint at or before it."""
    return [unit // every * every for unit in range(count)] if every else [0] * count
