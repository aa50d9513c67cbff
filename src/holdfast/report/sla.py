"""Whether a store keeps its promise: the five metrics, breaches one by one, time lost a month."""

import math
from collections.abc import Sequence

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

MONTH_H = 720.0
HOUR_S = 3600.0


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
    """What was measured of a promise.

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
    """Judge all runs; where some are watched, those that were left alone stand apart."""
    judged = list(facts)
    if any(run.is_watched for run in facts):
        judged = [run for run in facts if not run.is_left_alone]
    sla = next((run.sla for run in judged if run.sla is not None), None)
    targets = targets_of(sla)
    found = [(run, each) for run in judged for each in counted(run.episodes, now, targets)]
    times_s = [each.took_s(targets.clock) for _, each in found]
    ended = [run for run in judged if run.is_ended]
    over = _breaches(found, targets)
    broken = {breach.run for breach in over}
    down_s = math.fsum(_lasted_s(each, "resume", now) for _, each in found)
    still_s = math.fsum(now - each.failed_at for _, each in found if _is_down(each))
    up_s = math.fsum(run.time_s for run in judged) + still_s
    breach_s = math.fsum(
        max(0.0, _lasted_s(each, targets.clock, now) - targets.max_recovery_s) for _, each in found
    )
    promised = None if sla is None else sla.availability
    return Kept(
        targets=targets,
        runs=len(facts),
        ended=len(ended),
        episodes=len(found),
        apart=len(facts) - len(judged),
        measured=[
            recovery_success([each for _, each in found], targets),
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
        budget_left=_budget(promised, down_s, up_s),
        parts={name: math.fsum(each.parts.get(name, 0.0) for _, each in found) for name in PARTS},
    )


def _lasted_s(episode: Episode, clock: str, now: float) -> float:
    """How long it took or, while it goes on, has lasted so far; one given up has no end."""
    took_s = episode.took_s(clock)
    if took_s is not None:
        return took_s
    return now - episode.failed_at if episode.ending is Ending.OPEN else 0.0


def _is_down(episode: Episode) -> bool:
    """Whether nobody has taken the run up yet."""
    return episode.ending is Ending.OPEN and episode.resumed_at is None


def _overhead(ended: Sequence[Facts], targets: Targets) -> Measured:
    """The overhead, bounded from both sides.

    At most it is all the time between calls, which counts the agent's own code; that can show the
    promise kept. At least it is what checkpoints measured of themselves, against all of the runs'
    time, waits and outages too; that can show it broken.
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


def _budget(promised: float | None, down_s: float, up_s: float) -> float | None:
    if promised is None or promised >= 1 or not up_s:
        return None
    return 1 - down_s / ((1 - promised) * up_s)


def _breaches(found: Sequence[tuple[Facts, Episode]], targets: Targets) -> list[Breach]:
    over = []
    for run, each in found:
        took_s = each.took_s(targets.clock)
        if not is_breach([each], [took_s], targets.max_recovery_s):
            continue
        why = {
            Ending.FAILED: "it was not recovered",
            Ending.OPEN: "it is not recovered yet",
            Ending.PERSON: "a person had to help",
            Ending.RECOVERED: "it took too long",
        }[each.ending]
        over.append(
            Breach(
                run=run.id,
                failed_at=each.failed_at,
                kind=each.kind,
                why=why,
                took_s=took_s,
                limit_s=targets.max_recovery_s,
                parts=each.parts,
            )
        )
    return over
