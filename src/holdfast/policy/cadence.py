"""Whether a checkpoint is due: a pure decision over the work since the one before."""

from typing import Protocol

import msgspec

from holdfast.model.cadence import Cadence

TIGHT = Cadence(steps=1, before_irreversible=True)
"""What a critical section adds to the cadence of its run."""


class Controller(Protocol):
    """Chooses the time between checkpoints by what they cost and how often runs fail."""

    def due(self, now: float) -> bool:
        """Whether it is time for a checkpoint, by the monotonic clock."""

    def affords(self, now: float) -> bool:
        """Whether one more checkpoint would keep what saving may cost."""

    def saved(self, cost_s: float, now: float) -> None:
        """A checkpoint was made by `now` and held the run up for so long."""

    def spent(self, cost_s: float) -> None:
        """Another kind of save held the run up for so long."""

    def interval(self) -> float:
        """How many seconds it lets pass at present."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is: answers and tokens since its start, and the monotonic clock."""

    steps: int = 0
    tokens: int = 0
    now: float = 0.0


def due(
    cadence: Cadence,
    since: Progress,
    at: Progress,
    *,
    turn: int | None = None,
    controller: Controller | None = None,
    is_between: bool = True,
) -> str | None:
    """Which rule asks for a checkpoint, in a word; `turn` is the one that ends here, if any.

    Every n-th turn counts from the run's first; the rest counts since the last checkpoint. A
    controller looks ahead where one piece of work has ended (`is_between`), else it waits out its
    interval.
    """
    if turn is not None and cadence.turns is not None and (turn + 1) % cadence.turns == 0:
        return "turns"
    if cadence.steps is not None and at.steps - since.steps >= cadence.steps:
        return "steps"
    if cadence.tokens is not None and at.tokens - since.tokens >= cadence.tokens:
        return "tokens"
    if cadence.seconds is not None and at.now - since.now >= cadence.seconds:
        return "seconds"
    if cadence.is_adaptive and controller is not None:
        waited_s = at.now - since.now
        if is_between:
            is_due = controller.due(at.now)
        else:
            is_due = waited_s >= controller.interval() and controller.affords(at.now)
        if is_due:
            return "adaptive"
    return None


def is_timed(cadence: Cadence) -> bool:
    """Whether a checkpoint may come due by the clock alone."""
    return cadence.seconds is not None or cadence.is_adaptive


def is_within_turns(cadence: Cadence) -> bool:
    """Whether a checkpoint may come due in the middle of a turn."""
    return cadence.steps is not None or cadence.tokens is not None or is_timed(cadence)
