"""Well-known mistakes, seen in a store: bloat, restores that are too slow, recoveries unchecked."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from holdfast.policy.estimate import percentile
from holdfast.report.episodes import PARTS, Ending, Episode
from holdfast.report.facts import Facts
from holdfast.report.metrics import Targets
from holdfast.report.sla import Kept, own_targets

BLOAT_BYTES = 50_000
"""Bytes a task may add: 50 GB for a million of them."""
BEFORE_RESUMED = ("detect", "wait", "restore")
"""The parts of a recovery that the clock `resume` counts."""
FEW = 3
"""Fewer recoveries say little about how long they take, and that is said."""


class Smell(msgspec.Struct, frozen=True, kw_only=True):
    """A mistake that can be seen, and what would be better."""

    name: str
    found: str
    instead: str


def smells(facts: Sequence[Facts], kept: Kept) -> list[Smell]:
    """Every mistake that is seen here."""
    return [*_bloat(facts), *_slow(kept, facts), *_alone(facts)]


def _bloat(facts: Sequence[Facts]) -> Iterator[Smell]:
    ended = [run for run in facts if run.is_ended]
    if not ended:
        return
    mean = sum(run.bytes for run in ended) / len(ended)
    if mean > BLOAT_BYTES:
        largest = max(ended, key=lambda run: run.bytes)
        yield Smell(
            name="bloat",
            found=f"a run adds {mean:,.0f} bytes on average, {largest.id} {largest.bytes:,}",
            instead=f"`holdfast du {largest.id}` shows what it holds; let steps return what is "
            "new, not all messages; keep large values out of the state, or collect old points: "
            "`holdfast gc`",
        )


def _slow(kept: Kept, facts: Sequence[Facts]) -> Iterator[Smell]:
    promised: dict[Targets, list[Episode]] = defaultdict(list)
    for run in facts:
        own = own_targets(run, kept.targets)
        # How long people took to help says nothing of restores; those are breaches of their own.
        promised[own] += [each for each in run.episodes if each.ending is Ending.RECOVERED]
    for own, ended in promised.items():
        yield from _slow_by(own, ended)


def _slow_by(own: Targets, ended: Sequence[Episode]) -> Iterator[Smell]:
    times = [took for each in ended if (took := each.took_s(own.clock)) is not None]
    limit_s = own.max_recovery_s
    p95_s = percentile(times, 0.0)
    if p95_s <= limit_s:
        return
    parts = BEFORE_RESUMED if own.clock == "resume" else PARTS
    took_s = {name: math.fsum(each.parts.get(name, 0.0) for each in ended) for name in parts}
    slowest = max(parts, key=lambda name: took_s[name])
    left_s = limit_s - (math.fsum(took_s.values()) - took_s[slowest]) / len(ended)
    fits = f"of which {left_s:.3g} s would fit" if left_s > 0 else "and the rest alone does not fit"
    few = f" ({len(times)} so far)" if len(times) < FEW else ""
    cure = {
        "detect": "notice failures sooner: `store.supervise`, `holdfast watch`, a shorter `stall=`",
        "wait": "wait less before it is tried again: `holdfast.Retry(base=, cap=)`",
        "restore": "smaller states, a faster disk, or a process that stands by",
        "replay": "end turns more often: a restart replays the turn that was cut off",
        "redo": "checkpoint more often: `holdfast advise --from-store` says how often",
    }
    yield Smell(
        name="slow recovery",
        found=f"P95 of recoveries{few} is {p95_s:.3g} s, {limit_s:g} s are promised; most of it is "
        f"{slowest}, {fits}",
        instead=cure[slowest],
    )


def _alone(facts: Sequence[Facts]) -> Iterator[Smell]:
    left = [run for run in facts if run.is_left_alone and run.is_down]
    if left and not any(run.is_watched for run in facts):
        them = "1 run failed with nobody to restart it"
        if len(left) > 1:
            them = f"{len(left)} runs failed with nobody to restart them"
        yield Smell(
            name="nobody watches",
            found=them,
            instead="`store.supervise`, or `holdfast watch` as a service",
        )
