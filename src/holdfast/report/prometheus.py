"""What a store has seen as metrics in Prometheus' text format: base units, no ids in labels."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from holdfast.report.cost import Cost
from holdfast.report.episodes import Episode
from holdfast.report.facts import Facts
from holdfast.report.sla import WHY, Kept
from holdfast.version import VERSION

BACKEND = "sqlite"
"""The one that an embedded store has."""
WRITE_BUCKETS_S = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0)
RUN_BUCKETS_S = (1.0, 10.0, 60.0, 300.0, 1800.0, 3600.0, 21_600.0, 86_400.0)
BUCKETS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
CLOCKS = ("resume", "catch_up")

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]
Key = tuple[tuple[str, str], ...]


def exposition(
    facts: Sequence[Facts], kept: Kept, cost: Cost, store_bytes: int, escalations: int = 0
) -> str:
    """The metrics of a store, to be scraped from a file or a page.

    `escalations` is how many things wait for a person.
    """
    text = Text()
    _runs(text, facts)
    _saves(text, facts, store_bytes)
    _recoveries(text, [each for run in facts for each in run.episodes])
    text.counter(
        "holdfast_downtime_seconds_total",
        "Time from failures to runs going on.",
        [("", {}, kept.down_s)],
    )
    # A counter that begins with its first breach shows no increase, so no alert would see that one.
    reasons = Counter(dict.fromkeys(WHY.values(), 0))
    reasons.update(breach.why for breach in kept.breaches)
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
    outcomes = {
        "happened": sum(run.effects for run in facts),
        "not done": sum(run.not_done for run in facts),
    }
    text.counter("holdfast_effects_total", "Effects, by outcome.", _by("outcome", outcomes))
    doubts = sum(run.in_doubt for run in facts)
    text.gauge("holdfast_effects_in_doubt", "Effects that wait for a person's word.", doubts)
    text.gauge("holdfast_escalations_open", "What waits for a person.", escalations)
    text.gauge("holdfast_build_info", "This version.", 1, {"version": VERSION})
    return text.whole()


def _runs(text: "Text", facts: Sequence[Facts]) -> None:
    ended = [run for run in facts if run.is_ended]
    outcomes = Counter(str(run.status) for run in ended)
    text.counter("holdfast_runs_total", "Runs that ended.", _by("outcome", outcomes))
    times: dict[Key, list[float]] = defaultdict(list)
    for run in ended:
        times[(("outcome", str(run.status)),)].append(run.time_s)
    text.histogram("holdfast_run_seconds", "Runs, start to end.", times, RUN_BUCKETS_S)
    text.counter(
        "holdfast_run_active_seconds_total",
        "Time that calls of runs took.",
        [("", {}, sum(run.worked_s for run in facts))],
    )
    replays = _added(run.replayed for run in facts)
    text.counter(
        "holdfast_replayed_calls_total", "Calls answered from the record.", _by("kind", replays)
    )


def _saves(text: "Text", facts: Sequence[Facts], store_bytes: int) -> None:
    text.counter(
        "holdfast_checkpoint_wait_seconds_total",
        "Time between calls: what saving takes, and at most that.",
        [("", {}, sum(run.between_s for run in facts))],
    )
    times: dict[Key, list[float]] = defaultdict(list)
    for save in (save for run in facts for save in run.saves):
        named = (("mode", save.mode), ("granularity", save.granularity), ("backend", BACKEND))
        times[named].append(save.blocked_s)
    about = "Time for which a save held its run up, as it measured itself."
    text.histogram("holdfast_checkpoint_write_seconds", about, times, WRITE_BUCKETS_S)
    kinds = _added(run.state_bytes for run in facts)
    text.counter(
        "holdfast_checkpoint_bytes_total", "Bytes of state, before packing.", _by("kind", kinds)
    )
    text.gauge("holdfast_checkpoint_stored_bytes", "Bytes of the store.", store_bytes)


def _recoveries(text: "Text", episodes: Sequence[Episode]) -> None:
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
    times: dict[Key, list[float]] = defaultdict(list)
    for each in episodes:
        key = (str(each.kind), str(each.action or "none"), str(each.ending))
        for clock in CLOCKS:
            if (took_s := each.took_s(clock)) is not None:
                times[(*zip(names, key, strict=True), ("clock", clock))].append(took_s)
    text.histogram("holdfast_recovery_seconds", "Time to recover.", times, BUCKETS_S)


def _usage(text: "Text", cost: Cost) -> None:
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


def _added(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return found


class Text:
    """Families of samples, as text."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def counter(self, name: str, about: str, samples: Iterable[Sample]) -> None:
        """What only grows."""
        self.family(name, "counter", about, samples)

    def gauge(self, name: str, about: str, value: float, labels: Labels | None = None) -> None:
        """What may also fall."""
        self.family(name, "gauge", about, [("", labels or {}, value)])

    def histogram(
        self, name: str, about: str, times: Mapping[Key, Sequence[float]], limits: Sequence[float]
    ) -> None:
        """How many times are within each limit, by labels."""
        samples: list[Sample] = []
        for key, took in sorted(times.items()):
            labels = dict(key)
            for limit in limits:
                below = sum(each <= limit for each in took)
                samples.append(("_bucket", {**labels, "le": f"{limit:g}"}, below))
            samples.append(("_bucket", {**labels, "le": "+Inf"}, len(took)))
            samples += [("_sum", labels, sum(took)), ("_count", labels, len(took))]
        self.family(name, "histogram", about, samples)

    def family(self, name: str, kind: str, about: str, samples: Iterable[Sample]) -> None:
        """Samples of one name, after what is said of them all."""
        self._lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
        for end, labels, value in samples:
            said = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
            self._lines.append(f"{name}{end}{f'{{{said}}}' if said else ''} {float(value)!r}")

    def whole(self) -> str:
        """All of it."""
        return "\n".join(self._lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
