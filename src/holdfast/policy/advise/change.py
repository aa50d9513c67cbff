"""What would make a promise possible that no way to save keeps: the least change that does."""

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from holdfast.model.case import Case, Cause, Scope, Strategy
from holdfast.policy.advise.options import REPEATED, Check, Option, weigh
from holdfast.policy.advise.rank import Bound, limit_text
from holdfast.policy.advise.tokens import seen_by

Causes = list[Cause]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that is missed, and what would keep it."""

    limit: str
    would: str


def changes(case: Case, best: Option) -> list[Change]:
    """For each limit that the best way misses, the first single change that keeps it."""
    tried = _Tried(case, best)
    return [
        Change(limit=limit_text(check.name, check.limit), would=_change(case, best, check, tried))
        for check in best.misses
    ]


class _Tried:
    """Which limits are missed with a change; each change is weighed once, for all limits."""

    def __init__(self, case: Case, best: Option) -> None:
        self._case, self._best = case, best
        self._misses: dict[str, set[str] | None] = {}

    def keeps(self, limit: str, words: str, change: Callable[[Causes], Causes]) -> bool:
        """Whether a limit is kept once the causes of failure are changed; `words` name it."""
        if words not in self._misses:
            changed = replace(self._case, causes=change(list(self._case.causes)))
            option = weigh(changed, self._best.strategy)
            self._misses[words] = None if option is None else {each.name for each in option.misses}
        misses = self._misses[words]
        return misses is not None and limit not in misses


def contradictions(case: Case, bounds: Sequence[Bound]) -> list[str]:
    """Causes of failure after which no interval can meet the recovery time at this save cost."""
    if case.promise.overhead == 0:
        return ["an overhead cap of 0 forbids every save: allow a share, such as 0.01"]
    found = []
    for bound in bounds:
        if bound.high_s <= 0:
            found.append(
                f"after a {bound.cause} failure, detection and restore alone take longer than "
                f"the {case.promise.max_recovery_s:g} s promised, whatever the interval: detect "
                "it sooner, restore from a faster store, or keep a standby"
            )
        elif bound.low_s > bound.high_s:
            found.append(
                f"after a {bound.cause} failure {bound.high_s:.3g} s of work may be lost, but "
                f"saves this slow need {bound.low_s:.3g} s between them to keep the overhead cap: "
                "save asynchronously, use a journal or a faster store, or keep a standby"
            )
    return found


def long_units(case: Case, bounds: Sequence[Bound], best: Strategy) -> str | None:
    """What to do about a unit, or a part of one that `best` records, longer than failures leave."""
    least_s = min((bound.high_s for bound in bounds if bound.high_s > 0), default=math.inf)
    longest_s = max(unit.seconds for unit in seen_by(case, best).units)
    if longest_s <= least_s:
        return None
    if best.is_streamed:
        return (
            f"{longest_s:.3g} s between two token records are longer than the {least_s:.3g} s that "
            "a failure leaves: record them more often (saving.tokens_every)"
        )
    return (
        f"a {case.unit} of {longest_s:.3g} s is longer than the {least_s:.3g} s that a failure "
        f"leaves, so saves at its end cannot help in it: record its tokens with `run.stream`, or "
        "cut it in two"
    )


def _change(case: Case, best: Option, check: Check, tried: _Tried) -> str:
    if check.name == "bytes per task":
        return _smaller(case, best, check.limit)
    if check.name == "overhead":
        slow_s = _blocked_s(best.strategy)
        return (
            f"would be kept with saves that block {_short(slow_s * check.limit / check.value)} in "
            f"all, not {_short(slow_s)}: save asynchronously, or on a faster store"
        )
    if check.name == REPEATED:
        return "would be kept with a journal, and one that is elsewhere where hosts fail"
    for words, change in _levers():
        if tried.keeps(check.name, words, change):
            return f"would be kept with {words}"
    together = ", ".join(words for words, _ in _COMBINED)
    if tried.keeps(check.name, together, _all_combined):
        return f"would be kept by no single change, but by these together: {together}"
    return (
        "sooner detection, surer recovery and fewer failures would not do: keep a standby that "
        "takes over at once, or promise less"
    )


def _blocked_s(strategy: Strategy) -> float:
    """How long one save of each kind that it makes blocks the agent, together."""
    kinds = (
        (strategy.journal != "none", strategy.journal_s),
        (strategy.local_every, strategy.local_s),
        (strategy.remote_every, strategy.remote_s),
    )
    return math.fsum(blocked_s for is_made, blocked_s in kinds if is_made)


def _short(time_s: float) -> str:
    return f"{time_s:.3g} s" if time_s >= 1 else f"{time_s * 1000:.3g} ms"


def _smaller(case: Case, best: Option, limit: float) -> str:
    journal = math.fsum(unit.bytes for unit in case.units)
    journal = 0.0 if best.strategy.journal == "none" else journal
    points = best.bytes - journal
    if journal >= limit:
        return (
            f"would be kept with smaller records: the journal alone takes {journal:,.0f} bytes; "
            "large values that repeat are stored once, and packing compresses"
        )
    share = best.strategy.stored * (limit - journal) / points
    return (
        f"would be kept with checkpoints that add {share:.1%} of the state, not "
        f"{best.strategy.stored:.1%} (incremental, deduplicated, compressed), or fewer of them"
    )


def _levers() -> Iterator[tuple[str, Callable[[Causes], Causes]]]:
    """Single changes, each in the order in which it gets harder."""
    for factor, part in ((0.5, "half"), (0.25, "a quarter of"), (0.1, "a tenth of")):
        yield f"failures noticed in {part} the time", _sooner(factor)
    yield "recoveries that succeed in 99.9 % of cases", _surer
    yield "the causes of poison mended, or told to a person at once", _without(Scope.POISON)
    yield "the causes of corruption mended", _without(Scope.ROLLBACK)
    for factor in (0.9, 0.75, 0.5, 0.25, 0.1):
        yield f"{1 - factor:.0%} fewer failures", _rarer(factor)


def _sooner(factor: float) -> Callable[[Causes], Causes]:
    return lambda causes: [replace(each, detect_s=each.detect_s * factor) for each in causes]


def _rarer(factor: float) -> Callable[[Causes], Causes]:
    return lambda causes: [replace(each, per_second=each.per_second * factor) for each in causes]


def _surer(causes: Causes) -> Causes:
    return [
        replace(each, p_recovered=max(each.p_recovered, 0.999)) if each.p_recovered else each
        for each in causes
    ]


def _without(scope: Scope) -> Callable[[Causes], Causes]:
    return lambda causes: [each for each in causes if each.scope is not scope]


_COMBINED: tuple[tuple[str, Callable[[Causes], Causes]], ...] = (
    (
        "poison and corruption mended",
        lambda causes: _without(Scope.ROLLBACK)(_without(Scope.POISON)(causes)),
    ),
    ("failures noticed in a tenth of the time", _sooner(0.1)),
    ("recoveries that succeed in 99.9 % of cases", _surer),
    ("half the failures", _rarer(0.5)),
)


def _all_combined(causes: Causes) -> Causes:
    for _, change in _COMBINED:
        causes = change(causes)
    return causes
