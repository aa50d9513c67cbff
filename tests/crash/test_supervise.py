"""A supervised run killed at any point, the supervisor too: no effect doubles, nothing is lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import holdfast
from tests.crash import verdict
from tests.crash.kept import DEATH, DIED, PLACE
from tests.crash.nursery import FINISHED, STORE
from tests.crash.outside import Outside
from tests.crash.supervisor import ESCALATED, RUN
from tests.crash.trial import ROOT, Tally, check_whole
from tests.crash.verdict import Reference

pytestmark = pytest.mark.crash

WORKERS = 2
LIVES_MAX = 6
WAIT_S_MAX = 120

CHILD = (
    *("store.committing", "store.committed", "turn.opened", "turn.ending", "turn.ended"),
    *("step.called", "step.recording", "step.recorded"),
    *("effect.intending", "effect.intended", "effect.called", "effect.recording"),
    *("effect.recorded", "run.ending", "run.ended"),
)
"""Where the child is killed, the first time it gets there and the second."""
TWICE = ("effect.intended", "effect.called", "effect.recorded", "turn.ended")
SUPERVISOR = ("supervise.starting", "supervise.started", "supervise.ended", "supervise.decided")
"""Where the supervisor is killed, besides its child's death in an effect."""
ESCALATION = ("supervise.decided", "escalation.recording", "escalation.recorded")


def supervise(place: Path, agent: str, child: str = "", itself: str = "") -> int:
    """A supervisor's life; its exit status, negative if a signal ended it."""
    env = {**os.environ, PLACE: str(place), DEATH: child, "HOLDFAST_FAILPOINT": itself}
    command = [sys.executable, "-m", "tests.crash.supervisor", str(place), agent]
    ended = subprocess.run(
        command, cwd=ROOT, env=env, check=False, timeout=WAIT_S_MAX, capture_output=True, text=True
    )
    assert ended.returncode in (FINISHED, ESCALATED, -signal.SIGKILL), ended.stderr[-2000:]
    return ended.returncode


def live_on(place: Path, agent: str, child: str, itself: str) -> tuple[int, int]:
    """Supervise until the run has ended; the last status, and how often the supervisor died."""
    for deaths in range(LIVES_MAX):
        status = supervise(place, agent, child, "" if deaths else itself)
        if status != -signal.SIGKILL:
            return status, deaths
    raise AssertionError(f"not ended after {LIVES_MAX} supervisors")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    place = tmp_path_factory.mktemp("calm")
    assert FINISHED == supervise(place, "kept")
    return verdict.reference(Outside(place))


def survive(place: Path, child: str, itself: str, expected: Reference) -> Tally:
    place.mkdir()
    tally, outside = Tally(trials=1), Outside(place)
    where = f"child {child or 'lives'}, supervisor {itself or 'lives'}: "
    try:
        status, deaths = live_on(place, "kept", child, itself)
        assert FINISHED == status
        tally.killed_at += [itself] * deaths + [child] * (place / DIED).exists()
        tally.asked_again += verdict.asked_again(outside, expected)
        tally.doubled += verdict.doubled(outside, expected)
        tally.lost += verdict.lost(outside, expected)
        check_whole(place / STORE)
    except Exception as error:  # noqa: BLE001 whatever it is, it is a finding
        tally.broken.append(f"{type(error).__name__}: {error}")
    for name in ("asked_again", "doubled", "lost", "broken"):
        setattr(tally, name, [where + each for each in getattr(tally, name)])
    return tally


def try_all(folder: Path, plans: list[tuple[str, str]], expected: Reference) -> Tally:
    tally = Tally()
    with ThreadPoolExecutor(WORKERS) as pool:
        tries = [
            pool.submit(survive, folder / str(number), child, itself, expected)
            for number, (child, itself) in enumerate(plans)
        ]
        for each in tries:
            tally.add(each.result())
    return tally


def test_a_child_killed_anywhere_is_followed_by_one_that_goes_on(
    tmp_path: Path, expected: Reference, count: Callable[[Tally], None]
) -> None:
    deaths = [*(f"{name}:1" for name in CHILD), *(f"{name}:2" for name in TWICE)]

    tally = try_all(tmp_path, [(death, "") for death in deaths], expected)

    count(tally)
    assert [] == tally.findings
    assert deaths == tally.killed_at


def test_a_supervisor_killed_anywhere_is_followed_by_one_that_goes_on(
    tmp_path: Path, expected: Reference, count: Callable[[Tally], None]
) -> None:
    plans = [(child, f"{name}:1") for name in SUPERVISOR for child in ("effect.called:2", "")]
    reached = [plan for plan in plans if plan[0] or plan[1] != "supervise.decided:1"]

    tally = try_all(tmp_path, reached, expected)

    count(tally)
    assert [] == tally.findings
    assert {f"{name}:1" for name in SUPERVISOR} <= set(tally.killed_at)


@pytest.mark.parametrize("point", ESCALATION)
def test_a_supervisor_killed_while_it_gives_up_does_not_begin_a_loop(
    tmp_path: Path, point: str
) -> None:
    status, deaths = live_on(tmp_path, "doomed", "", f"{point}:1")

    outside = Outside(tmp_path)
    lives = [line for line in outside.log() if line.kind == "life"]
    assert (ESCALATED, 1) == (status, deaths)
    assert len(lives) <= 3
    assert 1 == len(outside.world())
    with holdfast.open(tmp_path / STORE) as store:
        assert holdfast.Status.FAILED is store.get(RUN).status
    check_whole(tmp_path / STORE)
