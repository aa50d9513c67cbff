"""What a store has seen as metrics in Prometheus' text format: base units, no ids in labels."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from holdfast.report.cost import Cost
from holdfast.report.episodes import Episode
from holdfast.report.facts import Facts
from holdfast.report.sla import Kept
from holdfast.version import VERSION

BUCKETS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
CLOCKS = ("resume", "catch_up")

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]


def exposition(facts: Sequence[Facts], kept: Kept, cost: Cost, store_bytes: int) -> str:
    """The metrics of a store, to be scraped from a file or a page."""
    text = _Text()
    ended = Counter(str(run.status) for run in facts if run.is_ended)
    text.counter("holdfast_runs_total", "Runs that ended.", _by("outcome", ended))
    text.counter(
        "holdfast_run_active_seconds_total",
        "Time that calls of runs took.",
        [("", {}, sum(run.worked_s for run in facts))],
    )
    text.counter(
        "holdfast_checkpoint_wait_seconds_total",
        "Time between calls: what saving takes, and at most that.",
        [("", {}, sum(run.between_s for run in facts))],
    )
    text.gauge("holdfast_checkpoint_stored_bytes", "Bytes of the store.", store_bytes)
    _recoveries(text, [each for run in facts for each in run.episodes])
    text.counter(
        "holdfast_downtime_seconds_total",
        "Time from failures to runs going on.",
        [("", {}, kept.down_s)],
    )
    reasons = Counter(breach.why for breach in kept.breaches)
    text.counter("holdfast_sla_breaches_total", "Broken promises.", _by("reason", reasons))
    text.counter(
        "holdfast_sla_breach_seconds_total",
        "Time beyond the promised recovery time.",
        [("", {}, kept.breach_s)],
    )
    if kept.budget_left is not None:
        text.gauge(
            "holdfast_error_budget_remaining_ratio",
            "Share of the allowed downtime that is left.",
            kept.budget_left,
        )
    _usage(text, cost)
    text.counter(
        "holdfast_effects_total",
        "Effects that happened.",
        [("", {"outcome": "happened"}, sum(run.effects for run in facts))],
    )
    doubts = sum(run.in_doubt for run in facts)
    text.gauge("holdfast_effects_in_doubt", "Effects that wait for a person's word.", doubts)
    text.gauge("holdfast_build_info", "This version.", 1, {"version": VERSION})
    return text.whole()


def _recoveries(text: "_Text", episodes: Sequence[Episode]) -> None:
    kinds = Counter(
        (str(each.kind), str(each.action or "none"), str(each.ending)) for each in episodes
    )
    names = ("class", "action", "outcome")
    labelled = [("", dict(zip(names, key, strict=True)), n) for key, n in sorted(kinds.items())]
    text.counter("holdfast_recoveries_total", "Failures and how they ended.", labelled)
    decided = Counter(key[:2] for key in kinds.elements())
    text.counter(
        "holdfast_decisions_total",
        "What was decided about failures.",
        [("", dict(zip(names[:2], key, strict=True)), n) for key, n in sorted(decided.items())],
    )
    samples: list[Sample] = []
    for clock in CLOCKS:
        times = [took for each in episodes if (took := each.took_s(clock)) is not None]
        label = {"clock": clock}
        for limit in BUCKETS_S:
            below = sum(took <= limit for took in times)
            samples.append(("_bucket", {**label, "le": f"{limit:g}"}, below))
        samples.append(("_bucket", {**label, "le": "+Inf"}, len(times)))
        samples += [("_sum", label, sum(times)), ("_count", label, len(times))]
    text.family("holdfast_recovery_seconds", "histogram", "Time to recover.", samples)


def _usage(text: "_Text", cost: Cost) -> None:
    for what, used, about in (
        ("saved", cost.saved, "Not spent again because of replay"),
        ("lost_work", cost.lost, "Spent on branches that were left"),
    ):
        tokens = (used.tokens_in or 0) + (used.tokens_out or 0)
        text.counter(f"holdfast_{what}_tokens_total", f"{about}, tokens.", [("", {}, tokens)])
        text.counter(
            f"holdfast_{what}_usd_total", f"{about}, US dollars.", [("", {}, used.usd or 0.0)]
        )


def _by(label: str, counts: Mapping[str, int]) -> list[Sample]:
    return [("", {label: name}, count) for name, count in sorted(counts.items())]


class _Text:
    """Families of samples, as text."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def counter(self, name: str, about: str, samples: Iterable[Sample]) -> None:
        self.family(name, "counter", about, samples)

    def gauge(self, name: str, about: str, value: float, labels: Labels | None = None) -> None:
        self.family(name, "gauge", about, [("", labels or {}, value)])

    def family(self, name: str, kind: str, about: str, samples: Iterable[Sample]) -> None:
        self._lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
        for end, labels, value in samples:
            said = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
            self._lines.append(f"{name}{end}{f'{{{said}}}' if said else ''} {float(value)!r}")

    def whole(self) -> str:
        return "\n".join(self._lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
