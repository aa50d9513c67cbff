"""The five promises of operation, each measured with the bound that shows it, or does not.

Pure functions over episodes and runs; where they come from (drills, or a store in use) is the
caller's. A promise is *met* only if its 95 % bound is on the right side; *missed* if what was
measured is on the wrong one; otherwise it is *not shown*, and says how many samples would do.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec

from holdfast.report.bounds import bootstrap, trials_for, upper
from holdfast.report.episodes import Ending, Episode

T = TypeVar("T")

SAMPLES_MIN = 20
"""Fewer samples of a mean show nothing, however much alike they are."""


class Verdict(StrEnum):
    """What was found of a promise."""

    MET = "met"
    MISSED = "missed"
    NOT_SHOWN = "not shown"
    NEVER_SEEN = "never seen"
    """Of what must not happen at all: that it never will cannot be shown."""


class Targets(msgspec.Struct, frozen=True, kw_only=True):
    """What is promised; the defaults are those of production."""

    recovery_failures: float = 0.002
    recovery_s: float = 20.0
    recovery_share: float = 0.95
    bytes_per_run: float = 50_000.0
    overhead: float = 0.15
    breaches: float = 0.001
    max_recovery_s: float = 30.0
    clock: str = "catch_up"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A promise and what was measured of it.

    `value` is what was measured, `bound` what is sure of it, `target` what it must not exceed (of
    a success, what it must reach); `samples` and `failures` are what was counted; `needed` is how
    many samples would show it, where they are too few.
    """

    name: str
    unit: str
    target: float
    value: float | None
    bound: float | None
    samples: int
    failures: int | None
    verdict: Verdict
    needed: int | None = None
    is_least: bool = False
    note: str = ""


def counted(episodes: Iterable[Episode], now: float, targets: Targets) -> list[Episode]:
    """The episodes that count: those that ended, and open ones that are overdue."""
    return [
        each
        for each in episodes
        if each.ending is not Ending.OPEN or now - each.failed_at > targets.max_recovery_s
    ]


def recovery_success(
    episodes: Sequence[Episode], targets: Targets, *, spoiled: int = 0
) -> Measured:
    """Episodes recovered without a person, of all; `spoiled` ones repeated an effect or lie."""
    bad = sum(each.ending is not Ending.RECOVERED for each in episodes)
    return _share(
        "recovery success",
        len(episodes),
        min(len(episodes), bad + spoiled),
        targets.recovery_failures,
        is_success=True,
    )


def recovery_time(times_s: Sequence[float | None], targets: Targets) -> Measured:
    """Episodes that took no longer than promised; None never ended.

    No quantile is interpolated: the share of those that took longer is bounded. `value` is the
    measured quantile, for people.
    """
    limit_s, share = targets.recovery_s, targets.recovery_share
    slow = sum(took_s is None or took_s > limit_s for took_s in times_s)
    found = _share("recovery time", len(times_s), slow, 1.0 - share)
    ended = sorted(float("inf") if took_s is None else took_s for took_s in times_s)
    rank = max(0, min(len(ended) - 1, -int(-share * len(ended) // 1) - 1))
    least = bound_of_quantile(ended, share)
    return msgspec.structs.replace(
        found,
        name=f"recovery time P{100 * share:g}",
        unit="s",
        target=limit_s,
        value=ended[rank] if ended else None,
        bound=least,
        note=f"{len(ended) - slow} of {len(ended)} within {limit_s:g} s",
    )


def bound_of_quantile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest sample below which a `share` of all surely lies; None where none is."""
    low, high = 0, len(ordered)
    while low < high:  # The share of what exceeds the n-th sample falls with n.
        middle = (low + high) // 2
        if upper(len(ordered) - middle - 1, len(ordered)) <= 1.0 - share:
            high = middle
        else:
            low = middle + 1
    return ordered[low] if low < len(ordered) else None


def storage(bytes_per_run: Sequence[float], targets: Targets) -> Measured:
    """Bytes that each ended run added to its store, on average."""
    return _mean(
        "storage per run", "B", list(bytes_per_run), targets.bytes_per_run, statistics.fmean
    )


def overhead(samples: Sequence[tuple[float, float]], targets: Targets) -> Measured:
    """Time that runs were held up by saving, for the time they took without that, all together."""

    def share(chosen: Sequence[tuple[float, float]]) -> float:
        rest_s = sum(rest for _, rest in chosen)
        return sum(held for held, _ in chosen) / rest_s if rest_s else 0.0

    return _mean("latency overhead", "share", list(samples), targets.overhead, share)


def breaches(runs: int, broken: int, targets: Targets) -> Measured:
    """Runs that were not recovered, or not within `max_recovery`, of all that ended."""
    return _share("SLA breach", runs, broken, targets.breaches)


def is_breach(episodes: Iterable[Episode], times_s: Iterable[float | None], limit_s: float) -> bool:
    """Whether a run broke its promise: an episode without recovery, or one that took too long."""
    return any(each.ending is not Ending.RECOVERED for each in episodes) or any(
        took_s is None or took_s > limit_s for took_s in times_s
    )


def _share(
    name: str, trials: int, failures: int, allowed: float, *, is_success: bool = False
) -> Measured:
    sure = upper(failures, trials)
    found = failures / trials if trials else None
    if found is not None and found > allowed:
        verdict = Verdict.MISSED
    else:
        verdict = Verdict.MET if trials and sure <= allowed else Verdict.NOT_SHOWN

    def turned(share: float) -> float:
        return 1.0 - share if is_success else share

    return Measured(
        name=name,
        unit="share",
        target=turned(allowed),
        value=None if found is None else turned(found),
        bound=turned(sure) if trials else None,
        samples=trials,
        failures=failures,
        verdict=verdict,
        needed=trials_for(allowed, failures) if verdict is Verdict.NOT_SHOWN else None,
        is_least=is_success,
    )


def _mean(
    name: str,
    unit: str,
    samples: Sequence[T],
    target: float,
    statistic: Callable[[Sequence[T]], float],
) -> Measured:
    is_enough = len(samples) >= SAMPLES_MIN
    found = statistic(samples) if samples else None
    sure = bootstrap(samples, statistic)[1] if is_enough else None
    if found is not None and found > target:
        verdict = Verdict.MISSED
    else:
        verdict = Verdict.MET if sure is not None and sure <= target else Verdict.NOT_SHOWN
    return Measured(
        name=name,
        unit=unit,
        target=target,
        value=found,
        bound=sure,
        samples=len(samples),
        failures=None,
        verdict=verdict,
        needed=None if is_enough else SAMPLES_MIN,
    )
