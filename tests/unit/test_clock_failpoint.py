"""Time and crash points: the two things every layer may use."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import failpoint
from holdfast.clock import Clock, SystemClock
from holdfast.testing.fakes import ManualClock


def test_the_systems_clock_moves_forward_through_a_sleep() -> None:
    clock: Clock = SystemClock()
    before, wall = clock.monotonic(), clock.now()

    clock.sleep(0.001)

    assert clock.monotonic() - before >= 0.001
    assert clock.now() > 1_700_000_000
    assert abs(clock.now() - wall) < 3600


def test_a_manual_clock_moves_only_when_it_is_moved() -> None:
    clock = ManualClock(now=100.0, monotonic=5.0)
    seen: list[float] = []
    clock.during_sleep = lambda: seen.append(clock.now())
    assert (100.0, 5.0) == (clock.now(), clock.monotonic())

    clock.advance(1.5)
    clock.sleep(2.5)

    assert (104.0, 9.0) == (clock.now(), clock.monotonic())
    assert [2.5] == clock.slept
    assert [104.0] == seen


def test_a_manual_wall_clock_can_be_set_back_while_monotonic_time_goes_on() -> None:
    clock = ManualClock(now=100.0, monotonic=5.0)

    clock.set(40.0)

    assert (40.0, 5.0) == (clock.now(), clock.monotonic())


def test_a_disarmed_point_does_nothing_and_an_armed_one_acts_each_time() -> None:
    reached: list[str] = []

    failpoint.reach("here.now")
    failpoint.arm("here.now", lambda: reached.append("here"))
    failpoint.reach("here.now")
    failpoint.reach("elsewhere.now")
    failpoint.reach("here.now")
    failpoint.disarm()
    failpoint.reach("here.now")

    assert ["here", "here"] == reached


def test_an_empty_setting_arms_nothing() -> None:
    failpoint.arm_from("")

    failpoint.reach("")


@pytest.mark.parametrize(
    ("setting", "lines", "status"),
    [
        ("a.b", ["0"], -signal.SIGKILL),
        ("a.b:1", ["0"], -signal.SIGKILL),
        ("a.b:3", ["0", "1", "2"], -signal.SIGKILL),
        ("a.b:9", ["0", "1", "2", "3", "4"], 0),
        ("", ["0", "1", "2", "3", "4"], 0),
    ],
)
def test_a_child_is_killed_when_it_reaches_the_point_for_the_nth_time(
    setting: str, lines: list[str], status: int
) -> None:
    program = (
        "from holdfast import failpoint\n"
        "for n in range(5):\n"
        "    print(n, flush=True)\n"
        "    failpoint.reach('a.b')\n"
    )

    child = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"HOLDFAST_FAILPOINT": setting},
        check=False,
        capture_output=True,
        text=True,
    )

    assert (lines, status) == (child.stdout.split(), child.returncode)


@pytest.mark.parametrize(
    "setting",
    [
        "effect",
        "effect_called",
        "effect.",
        "effect.called:",
        "effect.called:two",
        "effect.called:0",
    ],
)
def test_a_setting_that_names_no_point_and_count_is_refused_in_words(setting: str) -> None:
    with pytest.raises(ValueError, match=f"HOLDFAST_FAILPOINT={setting} says nothing"):
        failpoint.arm_from(setting)


def test_a_command_tells_a_setting_that_names_no_point_as_the_mistake_it_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "runs", "--store", str(tmp_path / "store")],
        env=os.environ | {"HOLDFAST_FAILPOINT": "effect"},
        check=False,
        capture_output=True,
        text=True,
    )

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith("error: HOLDFAST_FAILPOINT=effect says nothing")
    assert not (tmp_path / "store").exists()


def test_whoever_listens_is_told_every_point_until_all_is_disarmed() -> None:
    heard: list[str] = []
    failpoint.listen(heard.append)

    failpoint.reach("area.first")
    failpoint.reach("area.second")
    failpoint.disarm()
    failpoint.reach("area.third")

    assert ["area.first", "area.second"] == heard
