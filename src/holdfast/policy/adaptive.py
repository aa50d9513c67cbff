"""When to save, learnt while running: what saves cost against what failures take.

The failure rate has a Gamma prior, worth one failure an hour, until enough failures were seen;
save and restore times are moving averages, and old failures count less and less too, so that a
world that gets better or worse is followed. From these comes the interval that costs least
(`advise/intervals`, in money), clamped by the overhead cap below and the promised recovery time
above. It is changed only when the optimum has moved by more than a factor of sqrt(2): less is not
worth it. No clock is read here.
"""

import math
from collections.abc import Iterable, Sequence

import msgspec

from holdfast.model.journal import (
    Answer,
    Entry,
    Failed,
    Happened,
    Interrupted,
    Kept,
    Resumed,
    Saved,
    TurnEnded,
)
from holdfast.model.limits import SLA, dollars, seconds
from holdfast.model.run import Status
from holdfast.policy.advise.intervals import FLAT, Clamp, clamp, money

OVERHEAD = 0.15
"""The share of the work that saving may take where the SLA names none."""
PRIOR_FAILURES, PRIOR_S = 1.0, 3600.0
SAVE_S = 0.005
"""What a save is taken to cost before the first was measured."""
MEMORY = 20
"""Over so many measurements an average moves, and over so many failures their rate."""
_CALM = frozenset({Status.WAITING, Status.CANCELLED})
"""How a run stops that has not failed."""


class Learnt(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run or its like: failures in so much work, and how long saves take."""

    failures: int = 0
    worked_s: float = 0.0
    save_s: float | None = None
    restore_s: float | None = None


def learnt_of(entries: Iterable[Entry], *, of_snapshots: bool = False) -> Learnt:
    """What the journal of a run says of its lives, its saves, and its restarts up to a new call.

    A life that a person's answer or a word to stop ended has not failed, and time in which no
    process worked on the run is no work. The newest saves count as in an average that moves:
    checkpoints, or those `of_snapshots`.
    """
    saves: list[float] = []
    restores: list[float] = []
    resumed_at: float | None = None
    lives = _Lives()
    for entry in entries:
        lives.take(entry)
        match entry:
            case TurnEnded() | Saved() | Kept() if entry.mark is not None:
                if of_snapshots == (getattr(entry, "only", None) is not None):
                    saves.append(entry.mark.blocked_s)
            case Resumed() if entry.facts is not None:
                resumed_at = entry.at
            case Answer() | Happened() if resumed_at is not None:
                restores.append(max(0.0, entry.at - entry.took_s - resumed_at))
                resumed_at = None
            case _:
                pass
    return Learnt(
        failures=lives.failures,
        worked_s=lives.worked_s,
        save_s=_recent(saves),
        restore_s=_recent(restores),
    )


class _Lives:
    """How many lives of a run ended in a failure, and how long they lasted together."""

    def __init__(self) -> None:
        self.failures, self.worked_s = 0, 0.0
        self._last_at: float | None = None
        self._is_calm, self._is_alive = False, True

    def take(self, entry: Entry) -> None:
        at = getattr(entry, "at", None)
        if isinstance(entry, Resumed):
            if self._last_at is not None and not self._is_calm:
                self.failures, self.worked_s = _one_more(self.failures, self.worked_s)
            self._is_alive, self._last_at = entry.facts is not None, at
            self._is_calm = not self._is_alive
        if isinstance(at, float):
            before = at if self._last_at is None else self._last_at
            self._last_at = max(before, at)  # What a person said earlier may be recorded later.
            self.worked_s += self._last_at - before if self._is_alive else 0.0
        if isinstance(entry, Failed | Interrupted):
            self._is_calm = isinstance(entry, Interrupted) or entry.status in _CALM
            self._is_alive = False


def _one_more(failures: int, worked_s: float) -> tuple[int, float]:
    """A failure more; of more than `MEMORY` each makes those before it count less."""
    if failures < MEMORY:
        return failures + 1, worked_s
    return MEMORY, worked_s * MEMORY / (MEMORY + 1)


def _recent(values: Sequence[float]) -> float | None:
    newest = values[-MEMORY:]
    return math.fsum(newest) / len(newest) if newest else None


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What a second of work and a save are worth beside the time they take; time alone: 1, 1, 0."""

    work_usd_per_s: float = 1.0
    wait_usd_per_s: float = 1.0
    save_usd: float = 0.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds an interval: the share that saving may take, the time a recovery may."""

    overhead: float = OVERHEAD
    max_recovery_s: float | None = None
    detect_s: float = 0.0


def limits_of(sla: SLA | None, detect_s: float) -> Limits:
    """The bounds that an SLA sets; what it does not say does not bind, but for the cap."""
    if sla is None:
        return Limits(detect_s=detect_s)
    return Limits(
        overhead=OVERHEAD if sla.overhead_cap is None else sla.overhead_cap,
        max_recovery_s=None if sla.max_recovery is None else seconds(sla.max_recovery),
        detect_s=detect_s,
    )


def value_of(sla: SLA | None, turn_s: float | None) -> Value:
    """What work and waiting are worth, where the SLA prices both and a turn's length is known.

    Otherwise time is weighed against time: with waiting free, saving would always pay.
    """
    if sla is None or sla.turn_usd is None or not sla.breach_usd_per_hour or not turn_s:
        return Value()
    wait = dollars(sla.breach_usd_per_hour) / 3600
    return Value(work_usd_per_s=dollars(sla.turn_usd) / turn_s + wait, wait_usd_per_s=wait)


class Controller:
    """Says when a save is due. `now` is any clock that never goes back."""

    def __init__(
        self,
        now: float,
        *,
        learnt: Learnt | None = None,
        limits: Limits | None = None,
        value: Value | None = None,
    ) -> None:
        learnt = Learnt() if learnt is None else learnt
        self._limits = Limits() if limits is None else limits
        self._value = Value() if value is None else value
        self._failures, self._worked_s = learnt.failures, learnt.worked_s
        self._save = _Average(SAVE_S, learnt.save_s)
        self._restore = _Average(0.0, learnt.restore_s)
        self._unit = _Average(0.0, None)
        self._now = now
        self._since_s = self._here_s = self._unit_s = self._blocked_s = 0.0
        self._held_s: float | None = None

    def due(self, now: float, *, usd: float = 0.0, next_s: float | None = None) -> bool:
        """Whether to save now, at the end of a unit of work that cost `usd`.

        Saves when waiting for the next unit's end (`next_s`, or as long as units usually take)
        would overshoot the interval by more than saving now falls short of it; or when this unit
        alone is worth a save. Never when the overhead cap could not pay for it.
        """
        self._work(now)
        self._unit.saw(self._unit_s)
        self._unit_s = 0.0
        if not self.affords(now):
            return False
        interval_s = self.interval()
        ahead_s = self._unit.value if next_s is None else next_s
        if self._since_s + ahead_s - interval_s > interval_s - self._since_s:
            return True
        p_lost = -math.expm1(-self.rate() * interval_s) if math.isfinite(interval_s) else 1.0
        return usd * p_lost > self._save_usd() > 0

    def affords(self, now: float) -> bool:
        """Whether one more save would keep the overhead cap."""
        here_s = self._here_s + max(0.0, now - self._now)
        return self._blocked_s + self._save.value <= self._limits.overhead * here_s

    def saved(self, cost_s: float, now: float | None = None) -> None:
        """A save was made, and held the run up for so long.

        `now` is when it was done, where that may be in the middle of a unit of work.
        """
        if now is not None:
            self._work(now - cost_s)
        self._save.saw(cost_s)
        self.spent(cost_s)
        self._since_s = 0.0

    def spent(self, cost_s: float) -> None:
        """Another kind of save held the run up for so long: the cap is for all of them."""
        self._blocked_s += cost_s
        self._now += cost_s

    def restored(self, cost_s: float) -> None:
        """A restore was made, and took so long."""
        self._restore.saw(cost_s)
        self._now += cost_s

    def failed(self) -> None:
        """A failure took the work since the last save."""
        self._failures, self._worked_s = _one_more(self._failures, self._worked_s)
        self._since_s = 0.0

    def interval(self) -> float:
        """How many seconds of work it lets pass between two saves at present."""
        best_s = money(self._save_usd(), self.rate(), self._value.work_usd_per_s)
        if self._held_s is None or not self._held_s / FLAT <= best_s <= self._held_s * FLAT:
            self._held_s = best_s
        return self.clamp().put(self._held_s)

    def clamp(self) -> Clamp:
        """Between what the interval may be; where that is impossible, the cap is kept."""
        return clamp(
            self._save.value,
            overhead=self._limits.overhead,
            max_recovery_s=self._limits.max_recovery_s,
            detect_s=self._limits.detect_s,
            restore_s=self._restore.value,
        )

    def rate(self) -> float:
        """Failures per second of work, after what was seen; enough of that needs no prior."""
        if self._failures >= MEMORY and self._worked_s > 0:
            return self._failures / self._worked_s
        return (PRIOR_FAILURES + self._failures) / (PRIOR_S + self._worked_s)

    def learnt(self) -> Learnt:
        """What a later life of the run can start from."""
        return Learnt(
            failures=self._failures,
            worked_s=self._worked_s,
            save_s=self._save.seen,
            restore_s=self._restore.seen,
        )

    def _work(self, now: float) -> None:
        worked_s = max(0.0, now - self._now)
        self._now = now
        self._since_s += worked_s
        self._here_s += worked_s
        self._unit_s += worked_s
        self._worked_s += worked_s

    def _save_usd(self) -> float:
        return self._save.value * self._value.wait_usd_per_s + self._value.save_usd


class _Average:
    """An average that moves: a guess until something was measured."""

    def __init__(self, guess: float, seen: float | None) -> None:
        self.value = guess if seen is None else seen
        self._count = 0 if seen is None else 1

    @property
    def seen(self) -> float | None:
        """The average of what was measured, if anything was."""
        return self.value if self._count else None

    def saw(self, value: float) -> None:
        """Move towards `value`."""
        self._count = min(self._count + 1, MEMORY)
        self.value += (value - self.value) / self._count
