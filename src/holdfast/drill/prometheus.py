"""What a drill came to as metrics in Prometheus' text format, beside those of stores."""

from collections import Counter, defaultdict

from holdfast.drill.result import Results
from holdfast.drill.scorecard import took_s
from holdfast.report.prometheus import BUCKETS_S, Key, Text

CALM = "none"
"""The scenario of a run that no fault was meant for."""


def exposition(results: Results) -> str:
    """Runs by fault and outcome, and how long recoveries took at full length."""
    runs = list(results.runs.values())
    counts = Counter((run.fault or CALM, "sound" if run.is_sound else "unsound") for run in runs)
    times: dict[Key, list[float]] = defaultdict(list)
    for run in runs:
        for each in run.episodes:
            if (time_s := took_s(each, results.head)) is not None:
                times[(("scenario", run.fault or CALM),)].append(time_s)
    text = Text()
    text.counter(
        "holdfast_drills_total",
        "Runs of a drill, by fault and by whether every promise about what they did was kept.",
        [
            ("", {"scenario": fault, "outcome": how}, n)
            for (fault, how), n in sorted(counts.items())
        ],
    )
    about = "Time to recover in a drill, on the clock of its promises."
    text.histogram("holdfast_drill_recovery_seconds", about, times, BUCKETS_S)
    return text.whole()
