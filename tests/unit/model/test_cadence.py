"""When a run is saved, as the user says it."""

from typing import Any

import msgspec
import pytest

from holdfast.errors import UsageError
from holdfast.model.cadence import (
    DURABILITIES,
    LOSES,
    Cadence,
    Pace,
    adaptive,
    before_irreversible,
    cadence_of,
    every,
    never,
    on_child,
    pace_of,
)


def test_without_a_number_every_turn_is_meant() -> None:
    assert Cadence(turns=1) == every()


def test_cadences_are_combined_and_the_sooner_of_two_counts() -> None:
    both = every(turns=5, tokens=1000) | every(turns=3, seconds="1m") | on_child()

    assert Cadence(turns=3, tokens=1000, seconds=60.0, on_child=True) == both
    assert both == both | never()


@pytest.mark.parametrize("unit", ["turns", "steps", "tokens"])
@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2", 10**12 + 1, 10**400])
def test_a_cadence_that_never_comes_is_refused(unit: str, count: Any) -> None:  # noqa: ANN401 what is no count
    with pytest.raises(ValueError, match=rf"every\({unit}=\) takes a whole number from 1"):
        every(**{unit: count})


@pytest.mark.parametrize("time", [0, "0s"])
def test_a_time_that_never_passes_is_refused(time: float | str) -> None:
    with pytest.raises(ValueError, match="from more than 0 on"):
        every(seconds=time)


@pytest.mark.parametrize(
    "cadence",
    [
        never(),
        every(turns=5) | every(steps=7) | before_irreversible(),
        every(tokens=1000, seconds=0.5) | on_child(),
        adaptive() | before_irreversible(),
        every(seconds="20d"),
        every(seconds=1234567.5),
        every(seconds=0.00001),
    ],
)
def test_a_cadence_is_read_as_it_is_shown(cadence: Cadence) -> None:
    assert cadence == cadence_of(str(cadence))


def test_configuration_says_times_as_people_do() -> None:
    assert every(turns=5, seconds=300) == cadence_of(" turns = 5|seconds=5m ")


@pytest.mark.parametrize("text", ["", "turns", "turns=x", "often", "never=1", "turns=5 tokens=3"])
def test_what_is_no_cadence_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(ValueError, match="is no cadence; write turns=N"):
        cadence_of(text)


def test_what_is_said_of_a_run_goes_before_what_is_said_of_all() -> None:
    said = Pace(durability="async").over(Pace(checkpoint=never(), durability="bounded"))

    assert Pace(checkpoint=never(), durability="async") == said


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"checkpoint": 5}, "takes a cadence, such as"),
        ({"checkpoint": "hourly"}, "'hourly' is no cadence"),
        ({"snapshot": {"memory": 3}}, "the cadence of each"),
        ({"snapshot": {3: never()}}, "the cadence of each"),
        ({"durability": "maybe"}, "durability=: 'maybe' is not one of durable, bounded, async"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_said(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        pace_of(**wrong)


def test_each_durability_says_what_it_may_lose() -> None:
    assert set(DURABILITIES) == set(LOSES)


@pytest.mark.parametrize("said", [never(), every(turns=3), every(tokens=5) | on_child()])
def test_a_cadence_comes_back_from_its_bytes(said: Cadence) -> None:
    pace = Pace(checkpoint=said, snapshot={"memory": said})

    assert pace == msgspec.msgpack.decode(msgspec.msgpack.encode(pace), type=Pace)


def test_a_cadence_that_an_older_version_wrote_is_read() -> None:
    assert every(turns=3) == msgspec.convert({"turns": 3}, Cadence)
