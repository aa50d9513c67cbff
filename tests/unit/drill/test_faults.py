"""What single faults do, seen from inside the process that they strike."""

import random
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.drill import fake
from holdfast.drill.bent import BentClock
from holdfast.drill.faults import ClockJump, RateLimit, Scene, SlowDisk, Timeout
from holdfast.drill.ledger import Ledger
from holdfast.drill.scenario import Scenario, read
from holdfast.errors import UsageError
from holdfast.model.failure import FailureKind
from holdfast.policy.classify import classify


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(
        chance=random.Random(1),  # noqa: S311 it is to repeat
        clock=BentClock(),
        ledger=Ledger(tmp_path / "ledger"),
        life=0,
    )


def test_a_jump_moves_the_wall_clock_and_leaves_monotonic_time_alone(scene: Scene) -> None:
    before = scene.clock.monotonic()

    ClockJump().strike(scene)

    off_s = abs(scene.clock.now() - SystemClock().now())
    assert 600 <= off_s <= 86_401
    assert scene.clock.monotonic() - before < 60
    assert ["clock-jump"] == [line.name for line in scene.ledger.read()]


def test_a_slow_disk_waits_only_before_what_is_durable(scene: Scene) -> None:
    began = scene.clock.monotonic()
    SlowDisk().reached(scene, "effect.recorded")
    between = scene.clock.monotonic()
    SlowDisk().reached(scene, "effect.recording")

    assert scene.clock.monotonic() - between >= 0.02
    assert between - began < 0.02


def test_providers_errors_are_classified_as_theirs_are(scene: Scene) -> None:
    with pytest.raises(TimeoutError) as late:
        Timeout().strike(scene)
    with pytest.raises(Exception, match="too many requests") as limited:
        RateLimit().strike(scene)

    assert FailureKind.TIMEOUT is classify(late.value).kind
    failure = classify(limited.value)
    assert FailureKind.TRANSIENT is failure.kind
    assert 0.05 <= (failure.retry_after_s or 0) <= 0.5


def test_pauses_are_scaled_and_chance_repeats() -> None:
    fake.begin(0.0, "case 1")
    began = SystemClock().monotonic()

    fake.pause(60)

    assert SystemClock().monotonic() - began < 30
    assert fake.chance().random() == fake.chance().random()
    fake.begin(1.0, "")


def test_a_scenario_fills_in_the_case_everywhere() -> None:
    made = Scenario(input={"a": "x-{case}", "b": [{"c": "{case}"}], "d": 1})

    assert {"a": "x-4", "b": [{"c": "4"}], "d": 1} == made.arguments(4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cases = 0", "cases is a whole number"),
        ("share = 2.0", "share is the part"),
        ("scale = 0.0", "above 0"),
        ('stall = "soon"', "stall"),
        ("colour = 1", "unknown field `colour`"),
        ("cases = 'x'", "Expected `int`"),
        ("cases =", "scenario"),
    ],
)
def test_a_wrong_scenario_says_where(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text)

    with pytest.raises(UsageError, match=said):
        read(file)
