"""`make mutants`: plant every fault, print who noticed, and fail where nobody did."""

import argparse
import datetime as dt
import random
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants import page
from tests.mutants.mutant import Mutant
from tests.mutants.plant import Plot, Verdict
from tests.mutants.table import FAULTS, MUTANTS, NO_CODE
from tests.soak.part import commit

WORKERS = 2
ALL_WAIT_S_MAX = 3600
"""So long all tests together may take without a fault; a busy machine is not a sick one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every fault was noticed, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", help="mutants whose fault or name contains this text")
    parser.add_argument("--count", type=int, help="so many of them, drawn by --seed")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--page", type=Path, help="write the table there too; only of all of them")
    asked = parser.parse_args(arguments)
    chosen = [each for each in MUTANTS if (asked.only or "") in f"{each.fault} {each.name}"]
    if asked.count:
        chosen = random.Random(asked.seed).sample(chosen, min(asked.count, len(chosen)))  # noqa: S311 a seed, not a secret
    if asked.page and len(chosen) < len(MUTANTS):
        parser.error("--page is for all of them: leave out --only and --count")
    if not chosen:
        parser.error(f"no planted fault is called {asked.only!r}")
    with tempfile.TemporaryDirectory() as folder:
        is_healthy, verdicts = try_all(chosen, Path(folder))
    for fault, why in NO_CODE.items() if asked.only is None else ():
        _say(f"-                  {fault}: {why}")
    if asked.page and is_healthy:
        day = dt.datetime.now(dt.UTC).date()
        asked.page.write_text(page.text(verdicts, commit(), day), encoding="utf-8")
    return conclude(verdicts, is_healthy=is_healthy)


def conclude(verdicts: Sequence[Verdict], *, is_healthy: bool) -> int:
    """Say what came of it; 0 if every fault was noticed by tests that pass without one, else 1."""
    survivors = [verdict for verdict in verdicts if not verdict.is_killed]
    kinds = {verdict.mutant.fault for verdict in verdicts}
    noticed, took_s = len(verdicts) - len(survivors), sum(each.took_s for each in verdicts)
    _say(
        f"{noticed} of {len(verdicts)} planted faults noticed, {len(kinds)} of {len(FAULTS)} kinds "
        f"of the list, {len(NO_CODE)} kinds not planted, {took_s:.0f} s of tests"
    )
    for verdict in survivors:
        _say(f"SURVIVOR {verdict.mutant.name} ({verdict.mutant.killed_by}): {verdict.why}")
    if not is_healthy:
        _say("the tests fail without any fault, so nothing is proved")
    return 0 if is_healthy and not survivors else 1


def try_all(mutants: Sequence[Mutant], folder: Path) -> tuple[bool, list[Verdict]]:
    """Whether the tests pass without a fault, and what became of each mutant, as it is known."""
    plots: SimpleQueue[Plot] = SimpleQueue()
    for n in range(WORKERS):
        plots.put(Plot(folder / str(n)))
    tests = sorted({mutant.killed_by for mutant in mutants})

    def passes(ids: list[str]) -> bool:
        plot = plots.get()
        try:
            status, output = plot.test(*ids, wait_s=ALL_WAIT_S_MAX)
        finally:
            plots.put(plot)
        if status:
            _say(output)
        return status == 0

    def try_out(mutant: Mutant) -> Verdict:
        plot = plots.get()
        try:
            verdict = plot.try_out(mutant)
        finally:
            plots.put(plot)
        word = "killed" if verdict.is_killed else "SURVIVED"
        _say(f"{word:9} {verdict.took_s:5.1f} s  {mutant.fault}: {mutant.name}  [{verdict.why}]")
        return verdict

    with ThreadPoolExecutor(WORKERS) as pool:
        shares = [tests[n::WORKERS] for n in range(WORKERS)]
        healthy = all(list(pool.map(passes, [share for share in shares if share])))
        return healthy, list(pool.map(try_out, mutants))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
