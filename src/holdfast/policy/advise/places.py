"""Where each failure sends a run back to, and how long the restore takes."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.model.case import Cause, Scope, Strategy, Unit


class Return(NamedTuple):
    """A failure in unit i goes on from unit `to`, after `restore_s`."""

    to: int
    restore_s: float


def saves(units: Sequence[Unit], strategy: Strategy) -> list[float]:
    """How long the agent is blocked after each unit; no checkpoint follows the last."""
    last = len(units)
    return [
        strategy.journal_s
        + (strategy.local_s if is_due(n, strategy.local_every) and n < last else 0.0)
        + (strategy.remote_s if is_due(n, strategy.remote_every) and n < last else 0.0)
        for n in range(1, last + 1)
    ]


def is_due(done: int, every: int) -> bool:
    """Whether a checkpoint follows the unit that makes it `done` units."""
    return bool(every) and done % every == 0


def returns(cause: Cause, strategy: Strategy, count: int) -> list[Return]:
    """For each unit, where a failure of this cause in it sends the run."""
    return [_return(cause, strategy, unit) for unit in range(count)]


def _return(cause: Cause, strategy: Strategy, unit: int) -> Return:
    local = max(_last(unit, strategy.local_every), _last(unit, strategy.remote_every))
    remote = _last(unit, strategy.remote_every)
    has_journal = strategy.journal != "none"
    match cause.scope:
        case Scope.IN_PLACE | Scope.POISON:
            return Return(unit, 0.0)
        case Scope.PROCESS:
            replay_s = strategy.replay_s * (unit - local)
            if has_journal:
                return Return(unit, strategy.restore_local_s + replay_s)
            return Return(local, strategy.restore_local_s)
        case Scope.HOST:
            replay_s = strategy.replay_s * (unit - remote)
            if strategy.journal == "remote":
                return Return(unit, strategy.restore_remote_s + replay_s)
            return Return(remote, strategy.restore_remote_s)
        case Scope.ROLLBACK:
            every = min(filter(None, (strategy.local_every, strategy.remote_every)), default=0)
            if not every and has_journal:
                every, local = 1, unit  # Every recorded unit is a point to go back to.
            return Return(max(0, local - cause.generations * every), strategy.restore_local_s)


def _last(unit: int, every: int) -> int:
    return unit // every * every if every else 0
