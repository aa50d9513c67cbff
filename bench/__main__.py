"""Measure and say what was found: `python -m bench [--quick] [SUBJECT ...]`."""

import argparse
import os
import sys
from collections.abc import Callable

from bench import child, facts, report
from bench.figures import Result
from bench.scale import FULL, QUICK
from bench.session import Session
from bench.subjects import (
    blocked,
    chat,
    concurrent,
    crowd,
    flat,
    floor,
    fork,
    many,
    overhead,
    processes,
    restart,
    restore,
    sealed,
    size,
    start,
    supervise,
    turn,
)

SUBJECTS: dict[str, Callable[[Session], Result]] = {
    "turn": turn.measure,
    "concurrent": concurrent.measure,
    "start": start.measure,
    "restart": restart.measure,
    "many": many.measure,
    "processes": processes.measure,
    "floor": floor.measure,
    "chat": chat.measure,
    "flat": flat.measure,
    "size": size.measure,
    "restore": restore.measure,
    "fork": fork.measure,
    "crowd": crowd.measure,
    "blocked": blocked.measure,
    "overhead": overhead.measure,
    "sealed": sealed.measure,
    "supervise": supervise.measure,
}
GROUPS = {
    "engine": ("turn", "concurrent", "start", "restart", "many", "processes", "supervise"),
    "state": (
        "floor",
        "chat",
        "flat",
        "size",
        "restore",
        "fork",
        "crowd",
        "blocked",
        "overhead",
        "sealed",
    ),
}
"""Subjects that can be asked for by one word."""


def main() -> int:
    """Exit status: 0 all targets met, 1 one was missed or could not be measured, 2 misuse."""
    asked = _arguments()
    scale = QUICK if asked.quick else FULL
    spelled = [name for word in asked.subject for name in GROUPS.get(word, (word,))]
    names = list(dict.fromkeys(spelled)) or list(SUBJECTS)
    with child.scratch() as place:
        session = Session.begin(scale, place)
        results = [result for name in names if (result := _measure(name, session)) is not None]
        session.say("done")
    about = facts.gather()
    sys.stdout.write("\n" + report.page(results, about, scale))
    if scale is FULL and len(results) == len(SUBJECTS):
        report.save(results, about, scale)
        sys.stdout.write("\nWritten to bench/results/latest.md and latest.json.\n")
    else:
        sys.stdout.write("\nNot a full run of every subject: nothing was written.\n")
    verdicts = [target.verdict for result in results for target in result.targets]
    sys.stdout.write(f"{verdicts.count('met')} of {len(verdicts)} targets met.\n")
    failed = [name for name in names if name not in {result.subject for result in results}]
    if failed:
        sys.stdout.write(f"Could not be measured at all: {', '.join(failed)}; see above.\n")
    return int(verdicts.count("met") < len(verdicts) or bool(failed))


def _measure(name: str, session: Session) -> Result | None:
    """What the subject found, or None if a measured process failed; the others are still asked."""
    session.say(f"== {name} ==")
    os.sync()  # What the subject before has left to be written would slow this one's flushes.
    try:
        return SUBJECTS[name](session)
    except child.ChildFailed as failed:
        session.say(f"{name} could not be measured: {failed}")
        return None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    known = ", ".join(
        f"{subject} ({group})" for group, subjects in GROUPS.items() for subject in subjects
    )
    said = f"{known}; or a group of them: {', '.join(GROUPS)}"
    parser.add_argument("subject", nargs="*", metavar="SUBJECT", help=said)
    parser.add_argument("--quick", action="store_true", help="small sizes, a few minutes")
    asked = parser.parse_args()
    unknown = sorted(set(asked.subject) - SUBJECTS.keys() - GROUPS.keys())
    if unknown:
        parser.error(f"no subject {', '.join(unknown)}; there are {said}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
