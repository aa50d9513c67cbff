"""What a drill came to: each promise with its verdict, each kind of fault with its numbers."""

from collections.abc import Iterable, Sequence

import msgspec

from holdfast.drill.result import Head, Result, Results
from holdfast.report.bounds import upper
from holdfast.report.episodes import PARTS, Ending, Episode
from holdfast.report.metrics import (
    Measured,
    Verdict,
    breaches,
    is_breach,
    overhead,
    recovery_success,
    recovery_time,
    storage,
)

BROKEN_SHOWN = 20
CALLS_S_MIN = 1.0
"""Stand-ins that take no time are nothing that saving could be compared with."""


class Never(msgspec.Struct, frozen=True, kw_only=True):
    """Something that must not happen: how often it did, the share of runs it is surely below."""

    name: str
    seen: int
    runs: int
    bound: float
    verdict: Verdict


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Runs with one kind of fault; times in seconds from the strike until the run had caught up."""

    fault: str
    runs: int
    struck: int
    episodes: int
    recovered: int
    unsound: int
    repaired: int
    median_s: float | None
    p95_s: float | None
    longest_s: float | None


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A run that kept a promise not, and the line that repeats it."""

    no: int
    fault: str | None
    why: str
    repeat: str


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result of a drill."""

    head: Head
    runs: int
    struck: int
    episodes: int
    unscaled: int
    took_s: float
    workers: int
    measured: list[Measured]
    nevers: list[Never]
    kinds: list[Kind]
    parts: dict[str, float]
    times_s: list[float]
    broken: list[Broken]

    @property
    def is_missed(self) -> bool:
        """Whether any promise was missed."""
        verdicts = {each.verdict for each in self.measured}
        return Verdict.MISSED in verdicts | {each.verdict for each in self.nevers}


def scorecard(results: Results) -> Scorecard:
    """Count everything."""
    head, runs = results.head, list(results.runs.values())
    found = [(run, each) for run in runs for each in run.episodes]
    times = [took_s(each, head) for _, each in found]
    return Scorecard(
        head=head,
        runs=len(runs),
        struck=sum(run.has_struck for run in runs),
        episodes=len(found),
        unscaled=len(results.unscaled),
        took_s=sum(each.took_s for each in results.shared),
        workers=max((each.workers for each in results.shared), default=0),
        measured=_measured(results, runs, times),
        nevers=_nevers(runs),
        kinds=[_kind(fault, runs, head) for fault in head.faults],
        parts=_parts([each for _, each in found], head.scale),
        times_s=sorted(round(time, 4) for time in times if time is not None),
        broken=[_broken(run, head) for run in runs if _is_bad(run, head)][:BROKEN_SHOWN],
    )


def took_s(episode: Episode, head: Head) -> float | None:
    """How long an episode would have taken at full length: what was redone is scaled back."""
    parts = episode.parts
    if not parts:
        return None
    if head.promises.clock == "resume":
        return parts["detect"] + parts["wait"] + parts["restore"]
    return sum(parts.values()) - parts["redo"] + parts["redo"] / head.scale


def _measured(
    results: Results, runs: Sequence[Result], times: Sequence[float | None]
) -> list[Measured]:
    promises = results.head.promises
    episodes = [each for run in runs for each in run.episodes]
    spoiled = sum(bool(run.episodes) and not run.is_sound and _has_recovered(run) for run in runs)
    extra = max((each.bytes_per_run for each in results.shared), default=0.0)
    ended = [run for run in runs if run.bytes is not None]
    full = results.unscaled if results.head.scale != 1.0 else runs
    held = [
        (run.held_s, run.calls_s or 0.0)
        for run in full
        if run.fault is None and run.held_s is not None and (run.calls_s or 0) >= CALLS_S_MIN
    ]
    return [
        recovery_success(episodes, promises, spoiled=spoiled),
        recovery_time(times, promises),
        storage([float(run.bytes or 0) + extra for run in ended], promises),
        overhead(held, promises),
        breaches(len(runs), sum(_is_breach(run, results.head) for run in runs), promises),
    ]


def _nevers(runs: Sequence[Result]) -> list[Never]:
    def never(name: str, broken: Iterable[int]) -> Never:
        counts = list(broken)
        hit = sum(count > 0 for count in counts)
        return Never(
            name=name,
            seen=sum(counts),
            runs=len(counts),
            bound=upper(hit, len(counts)),
            verdict=Verdict.MISSED if hit else Verdict.NEVER_SEEN,
        )

    return [
        never("effects doubled", (run.doubled for run in runs)),
        never("effects missing", (run.missing for run in runs)),
        never("answers asked twice", (run.asked_twice for run in runs)),
        never("states wrong", (int(bool(run.wrong)) for run in runs)),
        never("runs not finished", (int(run.outcome != "finished") for run in runs)),
    ]


def _kind(fault: str, all_: Sequence[Result], head: Head) -> Kind:
    runs = [run for run in all_ if run.fault == fault]
    episodes = [each for run in runs for each in run.episodes]
    times = sorted(time for each in episodes if (time := took_s(each, head)) is not None)
    return Kind(
        fault=fault,
        runs=len(runs),
        struck=sum(run.has_struck for run in runs),
        episodes=len(episodes),
        recovered=sum(each.ending is Ending.RECOVERED for each in episodes),
        unsound=sum(not run.is_sound for run in runs),
        repaired=sum(run.has_repaired for run in runs),
        median_s=_rank(times, 0.5),
        p95_s=_rank(times, 0.95),
        longest_s=times[-1] if times else None,
    )


def _rank(ordered: Sequence[float], share: float) -> float | None:
    """The smallest sample that a share of all does not exceed."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else None


def _parts(episodes: Sequence[Episode], scale: float) -> dict[str, float]:
    """Where the time of the mean episode went, at full length."""
    ended = [each.parts for each in episodes if each.parts]
    if not ended:
        return {}
    mean = {name: sum(each[name] for each in ended) / len(ended) for name in PARTS}
    return mean | {"redo": mean["redo"] / scale}


def _has_recovered(run: Result) -> bool:
    return all(each.ending is Ending.RECOVERED for each in run.episodes)


def _is_breach(run: Result, head: Head) -> bool:
    times = [took_s(each, head) for each in run.episodes]
    limit_s = head.promises.max_recovery_s
    return run.outcome != "finished" or is_breach(run.episodes, times, limit_s)


def _is_bad(run: Result, head: Head) -> bool:
    return not run.is_sound or _is_breach(run, head)


def _broken(run: Result, head: Head) -> Broken:
    why = [
        *([f"ended with {run.outcome}: {run.error}"] if run.outcome != "finished" else []),
        *([f"{run.doubled} effects doubled"] if run.doubled else []),
        *([f"{run.missing} effects missing"] if run.missing else []),
        *([f"{run.asked_twice} answers asked twice"] if run.asked_twice else []),
        *([f"another end than the reference: {', '.join(run.wrong)}"] if run.wrong else []),
    ]
    repeat = f"{head.command} --only {run.no}"
    reason = "; ".join(why) or "not recovered in time"
    return Broken(no=run.no, fault=run.fault, why=reason, repeat=repeat)
