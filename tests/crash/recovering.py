"""Recovery killed at every point, and what the world saw of it: `python -m tests.crash.recovering`.

A life is an act of recovery (a rollback, an undo tried again, a fork, an approval, …) with what
comes before and after it. It is killed at the first and last time it reaches each failpoint, done
again, and judged by the world's own log: nothing done twice, no undo done twice, the store whole.
More rounds kill it at two points drawn by chance: also while it goes on with what was cut off.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Self

from tests.crash.trial import ROOT, Tally, check_whole
from tests.tidy.source import failpoints

CUT_OFF_IN_SHIPPING = "effect.called:6"
"""The sixth effect, whose outcome is then in doubt."""
LIVES: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "rolled back": ((), "roll back", ("go on",)),
    "gone on after it": (("roll back",), "go on", ()),
    "forked": ((), "fork", ("go on with the fork",)),
    "gone on with the fork": (("fork",), "go on with the fork", ()),
    "allowed": (("roll back",), "allow", ()),
    "gone back": (("roll back",), "go back", ("go on",)),
    "undone again": (("roll back",), "undo again", ("go on",)),
    "undone by hand": (("roll back",), "undo by hand", ("go on",)),
    "paused": ((), "roll back in a pause", ("go on",)),
    "cancelled": ((), "cancel", ("revive",)),
    "revived": (("cancel",), "revive", ()),
    "asked": ((), "ask", ("approve", "buy")),
    "approved": (("ask",), "approve", ("buy",)),
    "bought": (("ask", "approve"), "buy", ()),
}
"""What comes before, what is killed, what comes after."""
KILLED = -9


class Warm:
    """The warm process, whose children do the acts."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.lineage"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, place: Path, act: str, failpoint: str = "", count: list[str] | None = None) -> int:
        """Do an act in a child; its exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        told = {"place": str(place), "act": act, "failpoint": failpoint, "count": count or []}
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


class Life:
    """One act of recovery, ready to be killed over and over."""

    def __init__(self, warm: Warm, begun: Path, folder: Path, name: str) -> None:
        before, self._act, self._after = LIVES[name]
        self._warm, self._folder, self._name = warm, folder, name
        self._ready = shutil.copytree(begun, folder / "ready")
        statuses = [warm.do(self._ready, each) for each in before]
        assert not any(statuses), f"{name}: {statuses}"
        known = shutil.copytree(self._ready, folder / "known")
        assert 0 == warm.do(known, self._act, count=sorted(set(failpoints())))
        counted = json.loads((known / "counted").read_text(encoding="utf-8"))
        self.reached: dict[str, int] = {name: times for name, times in counted.items() if times}

    def everywhere(self) -> Tally:
        """Killed at each failpoint that it reaches, the first time and the last."""
        tally = Tally()
        for name, times in sorted(self.reached.items()):
            for nth in sorted({1, times}):
                self._die(tally, [f"{name}:{nth}"])
        return tally

    def by_chance(self, chance: random.Random) -> Tally:
        """Killed at one failpoint, and again at another while it goes on."""
        tally = Tally()
        points = sorted(self.reached)
        deaths = [f"{name}:{chance.randint(1, self.reached[name])}" for name in points]
        for first in deaths:
            self._die(tally, [first, chance.choice(deaths)])
        return tally

    def once(self, chance: random.Random, deaths_max: int) -> Tally:
        """Killed up to so often, at failpoints drawn by chance."""
        tally, points = Tally(), sorted(self.reached)
        deaths = [
            f"{name}:{chance.randint(1, self.reached[name])}"
            for name in chance.choices(points, k=chance.randint(1, deaths_max))
        ]
        self._die(tally, deaths)
        return tally

    def _die(self, tally: Tally, deaths: list[str]) -> None:
        where = f"{self._name}, {' then '.join(deaths)}"
        place = shutil.copytree(self._ready, self._folder / "place")
        tally.trials += 1
        for death in deaths:
            if KILLED == self._warm.do(place, self._act, death):
                tally.killed_at.append(death.partition(":")[0])
        statuses = [self._warm.do(place, each) for each in (self._act, *self._after)]
        if any(statuses):
            tally.broken.append(f"{where}: {statuses}")
        check_whole(place / "store")
        tally.doubled += [f"{where}: {each}" for each in doubled(place)]
        shutil.rmtree(place)


def begin(warm: Warm, place: Path) -> Path:
    """A run with effects of every kind, the last of them in doubt."""
    place.mkdir(exist_ok=True)
    assert KILLED == warm.do(place, "start", CUT_OFF_IN_SHIPPING)
    return place


def doubled(place: Path) -> list[str]:
    """What the world saw twice: an effect under one key, or one that stood; an undo of one effect.

    What takes a key may be asked for again under it: the world drops the second one.
    """
    seen = (place / "log").read_text(encoding="utf-8").splitlines()
    times = Counter(line for line in seen if not line.startswith(("do ship", "undo seat")))
    found = [line for line in times if times[line] > 1]
    for what in ("order a", "seat 4c", "tell bob", "mail hello", "mail good day", "ship crate"):
        done = {line for line in seen if line.startswith(f"do {what}")}
        undone = [line for line in seen if line.startswith(f"undo {what}")]
        if len(done) > len(set(undone)) + 1 or len(set(undone)) > len(done):
            found.append(f"{what}: done {len(done)} times, undone {len(set(undone))} times")
    if len([line for line in seen if line.startswith("do buy")]) > 1:
        found.append("one approval, and it was bought more than once")
    return found


def main() -> int:
    """Kill recovery for some rounds; counts as JSON, and 1 if anything was found."""
    asking = argparse.ArgumentParser(description=__doc__)
    asking.add_argument("--rounds", type=int, default=1, help="the first is of every point")
    asking.add_argument("--seed", default="kelp")
    asking.add_argument("--out", type=Path, help="where the counts go; else they are printed")
    asking.add_argument("lives", nargs="*", default=[*LIVES], help="which; all by default")
    asked = asking.parse_args()
    told: dict[str, object] = {}
    whole = Tally()
    with Warm() as warm, tempfile.TemporaryDirectory() as top:
        begun = begin(warm, Path(top) / "begun")
        for number, name in enumerate(asked.lives):
            folder = Path(top) / str(number)
            folder.mkdir()
            life, tally = Life(warm, begun, folder, name), Tally()
            for nth in range(asked.rounds):
                chance = random.Random(f"{asked.seed} {nth} {name}")  # noqa: S311 a seed
                tally.add(life.everywhere() if nth == 0 else life.by_chance(chance))
            told[name] = _counts(tally)
            whole.add(tally)
    report = {
        "rounds": asked.rounds,
        "seed": asked.seed,
        "lives": told,
        "all": _counts(whole),
        "findings": whole.findings,
    }
    text = json.dumps(report, indent=1)
    if asked.out is None:
        sys.stdout.write(text + "\n")
    else:
        asked.out.write_text(text + "\n", encoding="utf-8")
    return 1 if whole.findings else 0


def _counts(tally: Tally) -> dict[str, int]:
    return {
        "trials": tally.trials,
        "kills": len(tally.killed_at),
        "points": len(set(tally.killed_at)),
        "effects or undos doubled": len(tally.doubled),
        "not resumed": len(tally.broken),
    }


if __name__ == "__main__":
    raise SystemExit(main())
