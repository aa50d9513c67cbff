"""A case for the advisor, from what a store has seen: durations, failures, sizes, prices."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias, TypeGuard

import msgspec

from holdfast.errors import BadCase
from holdfast.model.cadence import Cadence
from holdfast.model.case import Case, Cause, Policy, Promise, Saving, Scope, Unit
from holdfast.model.failure import FailureKind
from holdfast.model.journal import Answer, Entry, Happened, Started, Streamed
from holdfast.model.limits import SLA, dollars, seconds
from holdfast.model.run import Status
from holdfast.policy.adaptive import PRIOR_FAILURES, PRIOR_S
from holdfast.report.episodes import Ending, Episode, Line, entries_of, episodes, lines_of
from holdfast.report.facts import children_of, copies_in, lineage, place_of
from holdfast.report.gaps import gaps_of, worked_s
from holdfast.report.held import held_of
from holdfast.report.metrics import counted
from holdfast.report.sizes import large, sizes
from holdfast.report.sla import targets_of
from holdfast.store.open import Opened
from holdfast.store.reader import Run
from holdfast.store.steady import of_each

RUNS_MAX = 500
"""The newest runs that are looked at."""
RECORD_S = 0.0005
"""What a record is taken to block where nothing was measured, and that is said."""
RECOVERED = 0.95
"""How surely a recovery helps, believed as strongly as one that was seen."""
UNIT_S_MIN = 1e-3
RECORD_S_MAX = 1.0
"""No record blocks as long as this: in more time between two calls the agent itself was at work."""
THINKING = 10
"""A time between two calls that is so many times the median is the agent's own, not a record's."""

Answered: TypeAlias = Answer | Happened | Streamed

SCOPES: dict[FailureKind, Scope] = {
    FailureKind.TRANSIENT: Scope.IN_PLACE,
    FailureKind.TIMEOUT: Scope.IN_PLACE,
    FailureKind.CRASH: Scope.PROCESS,
    FailureKind.CORRUPTION: Scope.ROLLBACK,
    FailureKind.INVALID: Scope.ROLLBACK,
}
"""How far a failure of a kind reaches; one of another kind waits for a person: poison."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a child adds to the call that carried it out, its own children included."""

    usd: float
    bytes: int
    calls: int
    is_effect: bool
    is_priced: bool


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as far as the advisor is concerned."""

    is_finished: bool
    is_fork: bool
    is_child: bool
    units: list[Unit]
    calls: int
    worked_s: float
    bytes: int
    blocked_s: list[float]
    gaps_s: list[float]
    episodes: list[Episode]
    sla: SLA | None
    every: int
    is_priced: bool


def case_of(opened: Opened, now: float = math.inf) -> Case:
    """The case of a store; `BadCase` says what is missing where it has seen too little.

    A failure that lasts counts as not recovered once it is overdue, by the time that it is `now`.
    """
    where = f"the store at {opened.path}"
    runs = _newest(opened)
    whole = [run for run in runs if run.is_finished and run.units]
    tasks = [run for run in runs if not run.is_child] or runs  # A child's work is its parent's.
    whole = [run for run in whole if not run.is_child] or whole
    whole = [run for run in whole if not run.is_fork] or whole  # A fork is a part of a task.
    if not whole:
        some = "no run in it has finished yet"
        if any(run.is_finished for run in runs):
            some = "the runs that finished in it made no call (a step, an effect, a stream)"
        raise BadCase(where, f"{some}, so nothing is known of its work")
    typical = sorted(whole, key=lambda run: len(run.units))[len(whole) // 2]
    exposed_s = math.fsum(run.worked_s for run in tasks)
    usual = next((run.sla for run in runs if run.sla is not None), None)
    found = [
        each
        for run in runs
        for each in counted(run.episodes, now, targets_of(run.sla or usual))
        if not run.is_child or tasks is runs or _is_inside(each)
    ]
    record_s, checkpoint_s, told = costs_of(runs)
    records = _mean((run.calls / len(run.units) for run in whole), 1.0)
    size = statistics.fmean(run.bytes / len(run.units) for run in whole)
    units = [msgspec.structs.replace(unit, bytes=size) for unit in typical.units]
    restore_s = _mean((each.parts["restore"] for each in found if each.parts), 0.0)
    source = (
        f"what was seen: {_seen_runs(runs)}, {_counted(len(found), 'failure')} (ended "
        f"or overdue), {exposed_s:.4g} s of work; besides, one failure of the process in "
        f"{PRIOR_S / 3600:g} h is taken for granted until more is seen"
    )
    notes = [source, *told, *_guessed(found)]
    if records > 1:
        notes.append(f"a turn makes {records:.3g} records on average, so it is blocked as often")
    if not all(run.is_priced for run in whole):
        notes.append(
            "the price of some answers is not recorded, so their work counts as free: "
            "`@holdfast.step(usage=holdfast.priced)` records it, a stream never does"
        )
    return Case(
        name=where,
        unit="turn",
        units=units,
        causes=list(_causes(found, exposed_s)),
        saving=Saving(
            journal_local_s=record_s * records,
            checkpoint_local_s=checkpoint_s,
            restore_local_s=restore_s,
            restore_remote_s=restore_s,
            checkpoint_bytes=size,
        ),
        promise=promise_of(typical.sla),
        current=Policy(journal="local", local_every=typical.every),
        notes=notes,
    )


def _newest(opened: Opened) -> list[Seen]:
    """The newest runs that nobody works on now."""
    used = {each.run: each.bytes for each in sizes(opened).runs}
    seen: set[bytes] = set()
    newest = (
        run
        for run in islice(opened.reader.runs(), RUNS_MAX)
        if run.body.status is not Status.RUNNING or not opened.leases.is_held(run.row.no)
    )
    runs: list[Seen] = []
    parts: dict[str, Part] = {}  # Children are newer than their parents, so they come before them.
    for run, lines in of_each(
        opened.reader, newest, lambda run: (run, lines_of(opened.reader, run))
    ):
        taken = used.get(run.body.id, 0) + large(opened, entries_of(lines), seen)
        one = _seen(lines, run, taken, parts)
        runs.append(one)
        parts[run.body.id] = Part(
            usd=math.fsum(unit.usd for unit in one.units),
            bytes=one.bytes,
            calls=one.calls,
            is_effect=any(unit.is_effect for unit in one.units),
            is_priced=one.is_priced,
        )
    return runs


def _is_inside(failure: Episode) -> bool:
    """Whether a failure of a child is its alone; others are told of by its parent too."""
    return failure.ending is Ending.RECOVERED and SCOPES.get(failure.kind) is not Scope.PROCESS


def costs_of(runs: Sequence[Seen]) -> tuple[float, float, list[str]]:
    """How long a record and a checkpoint block here, and how that is known."""
    gaps = [gap for run in runs for gap in run.gaps_s]
    blocked = [each for run in runs for each in run.blocked_s]
    are_two = bool(gaps)
    gaps = [gap for gap in gaps if gap < RECORD_S_MAX]
    usual = statistics.median(gaps) * THINKING if gaps else 0.0
    gaps = [gap for gap in gaps if gap <= usual]
    record_s = _mean(gaps, RECORD_S)
    checkpoint_s = _mean(blocked, record_s)
    record = (
        f"a record blocks {1000 * record_s:.3g} ms: the mean of {_counted(len(gaps), 'time')} "
        "between two calls, so at most that (the agent's own code counts)"
    )
    if not gaps:
        why = "no run made two calls one after the other"
        if are_two:
            why = f"between all calls {RECORD_S_MAX:g} s and more were the agent's own"
        record = (
            f"what a record costs here is not known, since {why}: {1000 * record_s:g} ms is taken, "
            "a flush of a local disk"
        )
    checkpoint = (
        f"a checkpoint blocks {1000 * checkpoint_s:.3g} ms beside its record: the mean of "
        f"{len(blocked)} that measured themselves"
    )
    if not blocked:
        checkpoint = "what a checkpoint costs here is not known, since none was made: as a record"
    return record_s, checkpoint_s, [record, checkpoint]


def _guessed(found: Sequence[Episode]) -> Iterator[str]:
    """What recoveries are taken to last where none was seen."""
    crashes = [each for each in found if SCOPES.get(each.kind) is Scope.PROCESS and each.parts]
    unseen = [] if crashes else ["how soon a process that died is noticed"]
    unseen += [] if any(each.parts for each in found) else ["how long a restore takes"]
    if unseen:
        text = "not known here, since none was seen, so 0 s is taken: `holdfast drill` measures it"
        yield f"{' and '.join(unseen)} is {text}"
    yield f"going through a recorded turn again is taken to last {1000 * Saving().replay_s:g} ms"


def promise_of(sla: SLA | None) -> Promise:
    """What an SLA promises, as the advisor takes it."""
    if sla is None:
        return Promise()
    return Promise(
        availability=sla.availability,
        max_recovery_s=None if sla.max_recovery is None else seconds(sla.max_recovery),
        clock=sla.clock or "catch_up",
        breach_usd_per_hour=sla.breach_usd_per_hour,
        recovery_usd=None if sla.recovery_budget is None else dollars(sla.recovery_budget),
        overhead=Promise().overhead if sla.overhead_cap is None else sla.overhead_cap,
    )


def _seen(lines: Sequence[Line], run: Run, size: int, parts: Mapping[str, Part]) -> Seen:
    entries, origin = list(entries_of(lines)), run.body.origin
    copies = copies_in(lines)
    started = next((entry for entry in entries if isinstance(entry, Started)), None)
    calls = [entry for entry in entries if _is_answer(entry)]
    # A turn that was rolled back and done again is one turn.
    line = list(lineage(lines, run.row.head))
    stand = [entry for entry in line if _is_answer(entry)]
    stand.sort(key=lambda entry: entry.at)
    children = children_of(line)
    inside = {place: parts[id_] for place, id_ in children.items() if id_ in parts}
    units = _units(stand, inside)
    saves = sum(save.mode == "checkpoint" for save in held_of(line))
    return Seen(
        is_finished=run.body.status is Status.FINISHED,
        is_fork=origin is not None and not origin.is_child,
        is_child=origin is not None and origin.is_child,
        units=units,
        calls=len(stand) + sum(part.calls for part in inside.values()),
        worked_s=worked_s(calls),
        bytes=size + sum(part.bytes for part in inside.values()),
        blocked_s=[save.blocked_s for save in held_of(entries) if save.mode == "checkpoint"],
        gaps_s=gaps_of(entry for entry in entries if id(entry) not in copies),
        episodes=episodes(lines),
        sla=None if started is None else started.sla,
        every=every_of(None if started is None else started.cadence, units, saves),
        is_priced=all(map(_is_priced, calls)) and all(part.is_priced for part in inside.values()),
    )


def every_of(cadence: Cadence | None, units: Sequence[Unit], saves: int) -> int:
    """Every how many turns a run made a checkpoint; 0 is never.

    What counts turns alone says it. Steps, tokens, seconds and events do not: there it is as often
    as the run made them.
    """
    if (
        cadence is not None
        and cadence.turns is not None
        and cadence == Cadence(turns=cadence.turns)
    ):
        return cadence.turns
    return max(1, round(len(units) / saves)) if saves else 0


def _is_answer(entry: Entry) -> TypeGuard[Answered]:
    """Whether a call ended here; of a stream, its last record."""
    return isinstance(entry, Answer | Happened) or (isinstance(entry, Streamed) and entry.how != "")


def _is_priced(entry: Answered) -> bool:
    """Whether all that it used has a price; a stream counts tokens only."""
    if isinstance(entry, Streamed):
        return False
    return entry.usage is None or entry.usage.usd is not None


def _units(calls: Sequence[Answered], children: Mapping[str, Part]) -> list[Unit]:
    """A unit for each scope that was worked in: a turn, or the code outside turns."""
    by_scope: dict[object, list[Answered]] = defaultdict(list)
    for entry in calls:
        if isinstance(entry.call.scope, int):
            by_scope[entry.call.scope].append(entry)
    return [_unit(group, children) for group in by_scope.values()]


def _unit(group: Sequence[Answered], children: Mapping[str, Part]) -> Unit:
    places = [place_of(entry.call) for entry in group] if children else []
    inside = [children[place] for place in places if place in children]
    used = [entry.usage for entry in group if not isinstance(entry, Streamed)]
    return Unit(
        seconds=max(UNIT_S_MIN, worked_s(group)),
        usd=math.fsum(each.usd for each in used if each is not None and each.usd is not None)
        + math.fsum(part.usd for part in inside),
        is_effect=any(isinstance(entry, Happened) for entry in group)
        or any(part.is_effect for part in inside),
    )


def _causes(found: Sequence[Episode], exposed_s: float) -> Iterator[Cause]:
    by_scope: dict[Scope, list[Episode]] = defaultdict(list)
    for each in found:
        by_scope[SCOPES.get(each.kind, Scope.POISON)].append(each)
    for scope in Scope:
        group = by_scope[scope]
        believed = PRIOR_FAILURES if scope is Scope.PROCESS else 0.0
        if not group and not believed:
            continue
        helped = sum(each.ending is Ending.RECOVERED for each in group)
        p_recovered = (helped + RECOVERED) / (len(group) + 1)
        yield Cause(
            name=scope,
            scope=scope,
            per_second=(believed + len(group)) / (PRIOR_S + exposed_s),
            detect_s=_mean((each.parts["detect"] for each in group if each.parts), 0.0),
            p_recovered=0.0 if scope is Scope.POISON else p_recovered,
        )


def _seen_runs(runs: Sequence[Seen]) -> str:
    children = sum(run.is_child for run in runs)
    return _counted(len(runs), "run") + f" ({children} of them children)" * bool(children)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _mean(values: Iterable[float], otherwise: float) -> float:
    known = list(values)
    return statistics.fmean(known) if known else otherwise
