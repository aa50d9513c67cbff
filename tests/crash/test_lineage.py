"""Rollback, undo, fork and permission killed at every failpoint: they go on, nothing is doubled."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.trial import ROOT, Tally, check_whole
from tests.tidy.source import failpoints

pytestmark = pytest.mark.crash

CUT_OFF_IN_SHIPPING = "effect.called:6"
"""The sixth effect, whose outcome is then in doubt."""
LIVES: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "rolled back": ((), "roll back", ("go on",)),
    "gone on after it": (("roll back",), "go on", ()),
    "forked": ((), "fork", ("go on with the fork",)),
    "gone on with the fork": (("fork",), "go on with the fork", ()),
    "allowed": (("roll back",), "allow", ()),
    "gone back": (("roll back",), "go back", ("go on",)),
    "cancelled": ((), "cancel", ("revive",)),
    "revived": (("cancel",), "revive", ()),
}
"""What comes before, what is killed, what comes after."""


class Warm:
    """The warm process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.lineage"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, place: Path, act: str, failpoint: str = "", count: list[str] | None = None) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        told = {"place": str(place), "act": act, "failpoint": failpoint, "count": count or []}
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    made = Warm()
    yield made
    made.close()


@pytest.fixture(scope="module")
def begun(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with effects of every kind, the last of them in doubt."""
    place = tmp_path_factory.mktemp("begun")
    assert -9 == warm.do(place, "start", CUT_OFF_IN_SHIPPING)
    return place


@pytest.mark.parametrize("life", LIVES)
def test_what_was_killed_goes_on_and_nothing_is_doubled(
    warm: Warm, begun: Path, tmp_path: Path, count: Callable[[Tally], None], life: str
) -> None:
    before, act, after = LIVES[life]
    ready = shutil.copytree(begun, tmp_path / "ready")
    assert [0] * len(before) == [warm.do(ready, each) for each in before]
    known = shutil.copytree(ready, tmp_path / "known")
    assert 0 == warm.do(known, act, count=sorted(set(failpoints())))
    reached = json.loads((known / "counted").read_text(encoding="utf-8"))
    tally = Tally()

    for name, times in sorted(reached.items()):
        for nth in sorted({1, times}) if times else ():
            place = shutil.copytree(ready, tmp_path / f"{name}-{nth}")
            tally.trials += 1
            if -9 == warm.do(place, act, f"{name}:{nth}"):
                tally.killed_at.append(name)
            statuses = [warm.do(place, each) for each in (act, *after)]
            if any(statuses):
                tally.broken.append(f"{life}, {name}:{nth}: {statuses}")
            check_whole(place / "store")
            tally.doubled += [f"{name}:{nth}: {each}" for each in _doubled(place)]
            shutil.rmtree(place)

    count(tally)
    assert [] == tally.findings
    assert {name for name, times in reached.items() if times} == set(tally.killed_at)


def _doubled(place: Path) -> list[str]:
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
    return found
