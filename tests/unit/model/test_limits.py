"""What the user asks for: durations, service level, cadence."""

from typing import Any

import msgspec
import pytest

from holdfast.model.limits import SLA, Every, every, seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (30, 30.0),
        (0.5, 0.5),
        (0, 0.0),
        ("45", 45.0),
        ("30s", 30.0),
        (" 1.5 s ", 1.5),
        ("250ms", 0.25),
        ("5m", 300.0),
        ("5min", 300.0),
        ("2h", 7200.0),
        ("1d", 86400.0),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: float | str, value: float) -> None:
    assert value == seconds(text)


@pytest.mark.parametrize("text", ["", "soon", "5 weeks", "-3s", "1e3", "3s4", True, None, [3]])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write it as 30s"):
        seconds(text)


@pytest.mark.parametrize("value", [-1, float("inf"), float("nan"), "9" * 400])
def test_a_duration_is_finite_and_not_negative(value: float | str) -> None:
    with pytest.raises(ValueError, match="finite number of seconds"):
        seconds(value)


def test_a_service_level_keeps_what_was_written() -> None:
    sla = SLA(max_recovery="30s", availability=0.999, deadline=600, overhead_cap=0.05)

    assert ("30s", 0.999, 600, 0.05) == (
        sla.max_recovery,
        sla.availability,
        sla.deadline,
        sla.overhead_cap,
    )
    assert SLA() == SLA(max_recovery=None, availability=None)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"max_recovery": "later"}, "'later' is not a duration"),
        ({"deadline": -1}, "finite number of seconds"),
        ({"availability": 99.9}, "availability is a share between 0 and 1, not 99.9"),
        ({"overhead_cap": -0.1}, "overhead_cap is a share between 0 and 1"),
    ],
)
def test_a_service_level_that_cannot_be_meant_is_refused_where_it_is_written(
    wrong: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        SLA(**wrong)


def test_a_cadence_counts_turns() -> None:
    assert Every(turns=5) == every(turns=5)
    assert 1 == every().turns


@pytest.mark.parametrize("turns", [0, -1, True, 1.5, "2"])
def test_a_cadence_that_never_comes_is_refused(turns: int) -> None:
    with pytest.raises(ValueError, match="whole number from 1"):
        every(turns=turns)


def test_limits_come_back_from_their_bytes() -> None:
    for limit in (SLA(max_recovery="30s", availability=0.5), Every(turns=3)):
        assert limit == msgspec.msgpack.decode(msgspec.msgpack.encode(limit), type=type(limit))
