"""What the user asks for: durations, service level."""

from typing import Any

import msgspec
import pytest

from holdfast.model.failure import FailureKind
from holdfast.model.limits import SLA, Retry, dollars, seconds


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


@pytest.mark.parametrize("value", [-1, float("inf"), float("nan"), "9" * 400, 10**15, 10**400])
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
        ({"availability": True}, "availability is a share between 0 and 1, not True"),
        ({"overhead_cap": "0.1"}, "overhead_cap is a share between 0 and 1, not '0.1'"),
        ({"turn_usd": "cheap"}, "'cheap' is not a sum of US dollars"),
        ({"overhead_cap": -0.1}, "overhead_cap is a share between 0 and 1"),
    ],
)
def test_a_service_level_that_cannot_be_meant_is_refused_where_it_is_written(
    wrong: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        SLA(**wrong)


def test_limits_come_back_from_their_bytes() -> None:
    limit = SLA(max_recovery="30s", availability=0.5)

    assert limit == msgspec.msgpack.decode(msgspec.msgpack.encode(limit), type=SLA)


@pytest.mark.parametrize(
    ("text", "value"), [(7, 7.0), (0.5, 0.5), ("5", 5.0), ("$5.50", 5.5), (" 5 USD ", 5.0)]
)
def test_a_sum_is_read_as_people_write_it(text: float | str, value: float) -> None:
    assert value == dollars(text)


@pytest.mark.parametrize("text", ["", "five", "5 EUR", "-3", True, None])
def test_what_is_no_sum_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a sum of US dollars; write it as"):
        dollars(text)


@pytest.mark.parametrize("value", [-1, float("inf"), float("nan")])
def test_a_sum_is_finite_and_not_negative(value: float) -> None:
    with pytest.raises(ValueError, match="finite number of US dollars"):
        dollars(value)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"clock": "wall"}, "clock is 'resume' or 'catch_up', not 'wall'"),
        ({"on_exhausted": "loop"}, "on_exhausted is 'escalate' or 'fail'"),
        ({"recovery_budget": "a lot"}, "is not a sum of US dollars"),
        ({"turn_usd": -1}, "finite number of US dollars"),
        ({"criticality": 0.5}, "criticality raises the stake"),
        ({"person": "soon"}, "is not a duration"),
    ],
)
def test_a_word_that_says_nothing_is_refused_where_an_agent_is_declared(
    wrong: dict[str, Any], why: str
) -> None:
    sla = SLA(**wrong)  # A record of an older version may hold it, and must be readable.

    with pytest.raises(ValueError, match=why):
        sla.check()


def test_a_retry_says_on_which_kinds_and_classes() -> None:
    retry = Retry(attempts=3, on=["transient", KeyError, FailureKind.BUG])

    assert {FailureKind.TRANSIENT, FailureKind.BUG} == retry.kinds
    assert (KeyError,) == retry.classes
    assert {FailureKind.TRANSIENT, FailureKind.TIMEOUT} == Retry().kinds
    assert (ValueError,) == Retry(on=ValueError).classes


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"attempts": 1000},
        {"attempts": True},
        {"base": "soon"},
        {"cap": -1},
        {"on": "sometimes"},
        {"on": [int]},
        {"on": ["transient", 5]},
    ],
)
def test_a_retry_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"attempts is|duration|FailureKind|on= takes"):
        Retry(**wrong)


def test_a_sum_written_with_its_sign_is_kept_as_a_number() -> None:
    sla = SLA(turn_usd="$0.02", task_usd="4 USD", breach_usd_per_hour="120")  # type: ignore[arg-type]

    assert (0.02, 4.0, 120.0) == (sla.turn_usd, sla.task_usd, sla.breach_usd_per_hour)
    assert sla == msgspec.msgpack.decode(msgspec.msgpack.encode(sla), type=SLA)
