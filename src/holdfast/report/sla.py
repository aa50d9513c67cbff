"""Whether a store keeps its promise: the five metrics, breaches one by one, time lost a month."""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from holdfast.model.limits import SLA, seconds
from holdfast.report.episodes import PARTS, Ending, Episode
from holdfast.report.facts import Facts
from holdfast.report.metrics import (
    Measured,
    Targets,
    Verdict,
    breaches,
    counted,
    is_breach,
    overhead,
    recovery_success,
    recovery_time,
    storage,
)

_Judged: TypeAlias = tuple[Facts, Episode, Targets]
"""A failure of a run, and what that run is held to."""
MONTH_H = 720.0
HOUR_S = 3600.0
WHY: Mapping[Ending, str] = {
    Ending.FAILED: "it was not recovered",
    Ending.OPEN: "it is not recovered yet",
    Ending.PERSON: "a person had to help",
    Ending.RECOVERED: "it took too long",
}
"""Why a failure broke the promise, by how it ended."""


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """One recovery that broke the promise: none came, or it came too late."""

    run: str
    failed_at: float
    kind: str
    why: str
    took_s: float | None
    limit_s: float
    parts: dict[str, float]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of a promise: `targets`, or a run's own where it `is_mixed`.

    `apart` are runs that failed with no supervisor there: they wait for whoever comes, so they are
    shown and not judged. `budget_left` is the share of the allowed downtime that is left, and
    `down_h_per_month` what the downtime comes to in a month of such running.
    """

    targets: Targets
    runs: int
    ended: int
    episodes: int
    apart: int
    measured: list[Measured]
    breaches: list[Breach]
    success: float | None
    availability: float | None
    down_s: float
    breach_s: float
    down_h_per_month: float | None
    breach_h_per_month: float | None
    budget_left: float | None
    parts: dict[str, float]
    is_mixed: bool = False


def own_targets(run: Facts, usual: Targets) -> Targets:
    """What a run is held to: its own SLA, or what is usual in its store."""
    return usual if run.sla is None else targets_of(run.sla)


def targets_of(sla: SLA | None) -> Targets:
    """The targets of production, with what the SLA says of its own."""
    if sla is None:
        return Targets()
    found = Targets(clock=sla.clock or "catch_up")
    if sla.max_recovery is not None:
        found = msgspec.structs.replace(found, max_recovery_s=seconds(sla.max_recovery))
    if sla.overhead_cap is not None:
        found = msgspec.structs.replace(found, overhead=sla.overhead_cap)
    return found


def keep(facts: Sequence[Facts], now: float) -> Kept:
    """Judge all runs, each by its own SLA; those that none watches stand apart if others are.

    A run that has none is held to that of the newest run which has, or to the usual targets.
    """
    judged = list(facts)
    if any(run.is_watched for run in facts):
        judged = [run for run in facts if not run.is_left_alone]
    sla = next((run.sla for run in judged if run.sla is not None), None)
    targets = targets_of(sla)
    owns = {run.id: own_targets(run, targets) for run in judged}
    failed = {run.id: (run, counted(run.episodes, now, owns[run.id])) for run in judged}
    found = [(run, each, owns[run.id]) for run, them in failed.values() for each in them]
    times_s = [each.took_s(own.clock) for _, each, own in found]
    ended = [run for run in judged if run.is_ended]
    over = _breaches(found)
    broken = {breach.run for breach in over}
    down_s = math.fsum(_lasted_s(each, "resume", now) for _, each, _ in found)
    up_s = math.fsum(_up_s(run, them, now) for run, them in failed.values())
    breach_s = math.fsum(
        max(0.0, _lasted_s(each, own.clock, now) - own.max_recovery_s) for _, each, own in found
    )
    return Kept(
        targets=targets,
        is_mixed=any(own != targets for own in owns.values()),
        runs=len(facts),
        ended=len(ended),
        episodes=len(found),
        apart=len(facts) - len(judged),
        measured=[
            recovery_success([each for _, each, _ in found], targets),
            recovery_time(times_s, targets),
            storage([float(run.bytes) for run in ended], targets),
            _overhead(ended, targets),
            breaches(len({run.id for run in ended} | broken), len(broken), targets),
        ],
        breaches=over,
        success=sum(run.status == "finished" for run in ended) / len(ended) if ended else None,
        availability=1 - down_s / up_s if up_s else None,
        down_s=down_s,
        breach_s=breach_s,
        down_h_per_month=down_s / up_s * MONTH_H if up_s else None,
        breach_h_per_month=breach_s / up_s * MONTH_H if up_s else None,
        budget_left=_budget(failed, None if sla is None else sla.availability, now),
        parts={
            name: math.fsum(each.parts.get(name, 0.0) for _, each, _ in found) for name in PARTS
        },
    )


def _lasted_s(episode: Episode, clock: str, now: float) -> float:
    """How long it took or, while it goes on, has lasted so far; one given up has no end."""
    took_s = episode.took_s(clock)
    if episode.ending is not Ending.OPEN:
        return took_s or 0.0
    so_far_s = max(0.0, now - episode.failed_at)
    return so_far_s if took_s is None else min(took_s, so_far_s)


def _is_down(run: Facts, episode: Episode) -> bool:
    """Whether nothing was heard of the run since: nobody took it up, or it waits to try again."""
    resumed_at = episode.resumed_at
    return episode.ending is Ending.OPEN and (resumed_at is None or resumed_at > run.last_at)


def _overhead(ended: Sequence[Facts], targets: Targets) -> Measured:
    """The overhead, bounded from both sides.

    At most it is all the time between calls, which counts the agent's own code; that can show the
    promise kept. At least it is what checkpoints measured of themselves, against all of the runs'
    time, outages too; that can show it broken.
    """
    found = overhead([(run.between_s, run.worked_s) for run in ended if run.worked_s], targets)
    blocked_s = math.fsum(save.blocked_s for run in ended for save in run.saves)
    rest_s = math.fsum(run.time_s for run in ended) - blocked_s
    least = blocked_s / rest_s if rest_s > 0 else 0.0
    verdict: Verdict = found.verdict
    if verdict is Verdict.MISSED:
        verdict = Verdict.NOT_SHOWN
    if least > targets.overhead:
        verdict = Verdict.MISSED
    note = f"at most: counts the agent's own code between calls; checkpoints alone {least:.2%}"
    return msgspec.structs.replace(found, verdict=verdict, note=note)


def _up_s(run: Facts, failures: Sequence[Episode], now: float) -> float:
    """How long a run took; if it is still down, until now."""
    is_down = any(_is_down(run, each) for each in failures)
    return max(run.time_s, run.until_s(now)) if is_down else run.time_s


def _budget(
    judged: Mapping[str, tuple[Facts, list[Episode]]], usual: float | None, now: float
) -> float | None:
    """The share that is left of the downtime which the runs' promises allow together."""
    allowed_s, down_s = [], []
    for run, failures in judged.values():
        promised = usual if run.sla is None else run.sla.availability
        if promised is not None and promised < 1:
            allowed_s.append((1 - promised) * _up_s(run, failures, now))
            down_s += [_lasted_s(each, "resume", now) for each in failures]
    total_s = math.fsum(allowed_s)
    return 1 - math.fsum(down_s) / total_s if total_s else None


def _breaches(found: Sequence[_Judged]) -> list[Breach]:
    over = []
    for run, each, own in found:
        took_s = each.took_s(own.clock)
        if not is_breach([each], [took_s], own.max_recovery_s):
            continue
        over.append(
            Breach(
                run=run.id,
                failed_at=each.failed_at,
                kind=each.kind,
                why=WHY[each.ending],
                took_s=took_s,
                limit_s=own.max_recovery_s,
                parts=each.parts,
            )
        )
    return over
