"""The ways to save that a case allows, and what each comes to for one task."""

import dataclasses
import math
from collections.abc import Iterator

import msgspec

from holdfast.model.case import Case, Policy, Strategy
from holdfast.policy.advise.chain import Chain, Hopeless, Reached
from holdfast.policy.advise.places import points
from holdfast.policy.advise.tail import weighted_quantiles
from holdfast.policy.advise.tokens import is_known, seen_by
from holdfast.policy.advise.worth import Worth

GB = 1e9
HOUR_S = 3600.0
EVERY = (1, 2, 5, 10, 20, 50, 100)
"""Intervals that are tried, in units, besides the one that the closed form names."""
REPEATED = "effects repeated"
QUANTILES = (0.50, 0.95, 0.99)


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of the promise, and what a strategy comes to there."""

    name: str
    limit: float
    value: float
    is_kept: bool


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy, for one task: seconds, bytes, US dollars, shares.

    `catch_up_s` and `resume_s` are the recovery times at P50, P95 and P99 on the two clocks.
    `usd` are the parts of what a task costs, `total_usd` their sum; a part whose price is not
    known is not there. `interruption_usd_per_hour` is the expected cost of breaches per hour of
    operation.
    """

    strategy: Strategy
    mode: str
    interval_s: float | None
    catch_up_s: list[float | None]
    resume_s: list[float | None]
    success: float
    breach: float | None
    availability: float
    overhead: float
    time_s: float
    bytes: float
    usd: dict[str, float]
    total_usd: float
    saving_usd: float
    interruption_usd_per_hour: float | None
    effects_passed_over: float
    effects_repeated: float
    effects_in_doubt: float
    checks: list[Check]

    @property
    def misses(self) -> list[Check]:
        """The limits that it does not keep."""
        return [check for check in self.checks if not check.is_kept]

    def against(self, other: "Option") -> Worth:
        """What it brings over another way to save, and what it costs more."""
        return Worth(
            benefit_usd=(other.total_usd - other.saving_usd) - (self.total_usd - self.saving_usd),
            cost_usd=self.saving_usd - other.saving_usd,
            inputs={
                "cost of failures before, USD/task": other.total_usd - other.saving_usd,
                "cost of failures after, USD/task": self.total_usd - self.saving_usd,
                "cost of saving before, USD/task": other.saving_usd,
                "cost of saving after, USD/task": self.saving_usd,
            },
        )


def strategies(case: Case, best_units: int | None) -> Iterator[Strategy]:
    """Every way to save that is tried: none, and each journal with each checkpoint interval.

    Checkpoints alone are tried only where no journal is to be had: it costs little beside them.
    """
    wanted = {*EVERY, best_units or 1}
    every = sorted(n for n in wanted if n <= max(1, len(case.units) // 2))
    yield made(case, Policy())
    saving = case.saving
    given = {"local": saving.journal_local_s, "remote": saving.journal_remote_s}
    journals = [name for name, blocked_s in given.items() if blocked_s is not None] or ["none"]
    for journal in journals:
        if journal != "none":
            yield made(case, Policy(journal=journal))
            if is_known(case):
                yield made(case, Policy(journal=journal, is_streamed=True))
        for count in every:
            if saving.checkpoint_remote_s is not None:
                yield made(case, Policy(journal=journal, remote_every=count))
            elif saving.checkpoint_local_s is not None:
                yield made(case, Policy(journal=journal, local_every=count))
            if saving.snapshot_remote_s is not None:
                yield made(case, Policy(journal=journal, remote_every=count, is_snapshot=True))
            elif saving.snapshot_local_s is not None:
                yield made(case, Policy(journal=journal, local_every=count, is_snapshot=True))
        yield from _levels(case, journal, best_units or 1)


def _levels(case: Case, journal: str, best_units: int) -> Iterator[Strategy]:
    """Two levels, where both are to be had: often on this machine, rarely elsewhere."""
    saving = case.saving
    if saving.checkpoint_local_s is None or saving.checkpoint_remote_s is None:
        return
    for near in sorted({1, best_units}):
        far = near * 10
        if far <= len(case.units) // 2:
            yield made(case, Policy(journal=journal, local_every=near, remote_every=far))


def made(case: Case, policy: Policy) -> Strategy:
    """A policy with what saving costs in this case."""
    saving = case.saving
    blocked = {"none": 0.0, "local": saving.journal_local_s, "remote": saving.journal_remote_s}
    is_bare = policy == Policy()
    bare_local_s = saving.restore_local_s if saving.bare_local_s is None else saving.bare_local_s
    bare_remote_s = (
        saving.restore_remote_s if saving.bare_remote_s is None else saving.bare_remote_s
    )
    found = Strategy(
        name=named(policy, case.unit),
        journal=policy.journal,
        journal_s=blocked[policy.journal] or 0.0,
        local_every=policy.local_every,
        local_s=saving.checkpoint_local_s or 0.0,
        remote_every=policy.remote_every,
        remote_s=saving.checkpoint_remote_s or 0.0,
        restore_local_s=bare_local_s if is_bare else saving.restore_local_s,
        restore_remote_s=bare_remote_s if is_bare else saving.restore_remote_s,
        replay_s=saving.replay_s,
        checkpoint_bytes=saving.checkpoint_bytes,
        stored=saving.stored,
        is_streamed=policy.is_streamed,
    )
    if not policy.is_snapshot:
        return found
    restore_s = saving.snapshot_restore_s
    return msgspec.structs.replace(
        found,
        is_snapshot=True,
        local_s=saving.snapshot_local_s or 0.0,
        remote_s=saving.snapshot_remote_s or 0.0,
        restore_local_s=saving.restore_local_s if restore_s is None else restore_s,
        restore_remote_s=saving.restore_remote_s if restore_s is None else restore_s,
        checkpoint_bytes=saving.snapshot_bytes,
    )


def named(policy: Policy, unit: str) -> str:
    """A policy in words."""
    said = [] if policy.journal == "none" else [f"{policy.journal} journal"]
    for place, every in (("local", policy.local_every), ("remote", policy.remote_every)):
        if every:
            often = f"every {unit}" if every == 1 else f"every {every} {unit}s"
            said.append(f"{place} {'snapshot' if policy.is_snapshot else 'checkpoint'} {often}")
    if policy.is_streamed:
        said.append("token records")
    return " + ".join(said) or "nothing saved"


def chain_of(case: Case, strategy: Strategy) -> Chain:
    """The chain of a strategy over the work as it meets it."""
    work = seen_by(case, strategy)
    return Chain(work.units, work.causes, strategy, work.promise)


def weigh(case: Case, strategy: Strategy) -> Option | None:
    """What a strategy comes to; None where a task practically never ends under it."""
    chain = chain_of(case, strategy)
    try:
        reached = chain.reached()
        if strategy.is_streamed:  # What a call is given is paid again: records buy time, not money.
            plain = Chain(case.units, case.causes, strategy, case.promise).reached()
            reached = dataclasses.replace(reached, usd=plain.usd)
    except Hopeless:
        return None
    if not math.isfinite(reached.usd_per_success):
        return None
    tail = chain.tail(reached.visits)
    resume = chain.resume_times(reached.visits)
    catch_up_s = tail.quantiles(QUANTILES)
    resume_s = weighted_quantiles(resume, QUANTILES)
    overhead = math.fsum(chain.saves) / case.work_s
    size = stored_bytes(case, strategy)
    usd = _usd(seen_by(case, strategy), strategy, reached, size)
    every = strategy.remote_every or strategy.local_every
    p95_s = resume_s[1] if case.promise.clock == "resume" else catch_up_s[1]
    breach_usd = usd.get("breach")
    return Option(
        strategy=strategy,
        mode=mode(strategy),
        interval_s=every * case.work_s / len(case.units) if every else None,
        catch_up_s=catch_up_s,
        resume_s=resume_s,
        success=reached.success,
        breach=reached.breach,
        availability=reached.availability,
        overhead=overhead,
        time_s=reached.time_s,
        bytes=size,
        usd=usd,
        total_usd=math.fsum(usd.values()),
        saving_usd=usd.get("storage", 0.0) + reached.blocked_s * (case.prices.second_usd or 0.0),
        interruption_usd_per_hour=(
            None if breach_usd is None else breach_usd / reached.time_s * HOUR_S
        ),
        effects_passed_over=reached.effects_passed_over,
        effects_repeated=reached.effects_repeated,
        effects_in_doubt=reached.effects_in_doubt,
        checks=list(checks(case, reached, overhead, size, p95_s)),
    )


def mode(strategy: Strategy) -> str:
    """Which of the modes it is: none, checkpoint, recovery point (a journal), or both."""
    has_checkpoints = bool(strategy.local_every or strategy.remote_every)
    kind = "snapshot" if strategy.is_snapshot else "checkpoint"
    if strategy.journal == "none":
        return kind if has_checkpoints else "none"
    return f"recovery point + {kind}" if has_checkpoints else "recovery point"


def stored_bytes(case: Case, strategy: Strategy) -> float:
    """What one task adds to the store."""
    journal = 0.0 if strategy.journal == "none" else math.fsum(unit.bytes for unit in case.units)
    units = len(case.units)
    count = points(units, strategy.local_every) + points(units, strategy.remote_every)
    return journal + count * strategy.checkpoint_bytes * strategy.stored


def _usd(case: Case, strategy: Strategy, reached: Reached, size: float) -> dict[str, float]:
    prices, found = case.prices, {"work": reached.usd_per_success}
    storage = []
    if prices.gb_month_usd is not None:
        storage.append(size / GB * prices.months * prices.gb_month_usd)
    if prices.put_usd is not None:
        puts = points(len(case.units), strategy.remote_every)
        puts += len(case.units) if strategy.journal == "remote" else 0
        storage.append(puts * prices.put_usd)
    if prices.get_usd is not None and not strategy.is_nothing:
        storage.append(reached.remote_restores * prices.get_usd)
    if storage:
        found["storage"] = math.fsum(storage)
    if prices.second_usd is not None:
        found["waiting"] = (reached.time_s - case.work_s) * prices.second_usd
    if case.promise.breach_usd_per_hour is not None and reached.breach_s is not None:
        found["breach"] = reached.breach_s / HOUR_S * case.promise.breach_usd_per_hour
    if prices.person_usd is not None:
        found["person"] = (1 - reached.success) * prices.person_usd
    return found


def checks(
    case: Case, reached: Reached, overhead: float, size: float, p95_s: float | None
) -> Iterator[Check]:
    """Each limit of the promise beside what was found."""
    promise = case.promise
    redone_usd = max(0.0, reached.usd_per_success - math.fsum(unit.usd for unit in case.units))
    for name, limit, value in (
        ("overhead", promise.overhead, overhead),
        ("recovery P95", promise.max_recovery_s, p95_s or 0.0),
        ("breach rate", promise.breach_rate, reached.breach),
        ("bytes per task", promise.bytes_per_task, size),
        ("recovery budget", promise.recovery_usd, redone_usd),
    ):
        if limit is not None and value is not None:
            yield Check(name=name, limit=limit, value=value, is_kept=value <= limit)
    if reached.effects_in_doubt:  # There are effects: what was done once is not done again.
        again = reached.effects_repeated
        yield Check(name=REPEATED, limit=0.0, value=again, is_kept=again == 0)
    if promise.availability is not None:
        yield Check(
            name="availability",
            limit=promise.availability,
            value=reached.availability,
            is_kept=reached.availability >= promise.availability,
        )
