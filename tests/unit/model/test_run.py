"""A run's status, its holder, and what is shown of it."""

import msgspec
import pytest

from holdfast.model.run import NEXT, Holder, RunBody, RunInfo, Status

HOLDER = Holder(pid=7, host="reef", since=5.0)


def test_a_finished_run_can_only_be_rolled_back_and_every_other_can_go_on() -> None:
    assert set(Status) == set(NEXT)
    assert {Status.ROLLING_BACK} == NEXT[Status.FINISHED]
    assert all(Status.RUNNING in NEXT[s] for s in Status if s is not Status.FINISHED)


def test_a_holder_says_which_process_it_is() -> None:
    assert "process 7 on reef" == str(HOLDER)


def test_what_the_catalog_keeps_comes_back_from_its_bytes() -> None:
    body = RunBody(id="r", agent="a", module="m", created=1.0, holder=HOLDER, error="why")

    again = msgspec.msgpack.decode(msgspec.msgpack.encode(body), type=RunBody)

    assert body == again
    assert Status.RUNNING is again.status


@pytest.mark.parametrize(
    ("status", "is_held", "is_interrupted"),
    [
        (Status.RUNNING, False, True),
        (Status.RUNNING, True, False),
        (Status.FINISHED, False, False),
        (Status.IN_DOUBT, False, False),
    ],
)
def test_a_run_is_interrupted_when_it_runs_and_nobody_holds_it(
    status: Status, is_held: bool, is_interrupted: bool
) -> None:
    info = RunInfo(
        id="r",
        agent="a",
        module="m",
        version=None,
        status=status,
        is_held=is_held,
        created=1.0,
        ended=None,
        holder=HOLDER,
        epoch=1,
        branch=1,
        error=None,
    )

    assert is_interrupted is info.is_interrupted
