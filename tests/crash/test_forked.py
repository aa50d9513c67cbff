"""A fork killed anywhere is there wholly or not at all; the run it comes from is as it was."""

from pathlib import Path

import pytest

import holdfast
from tests.crash.test_import import call, thinker
from tests.crash.trial import check_whole

pytestmark = pytest.mark.crash

KILLED_AT = {
    "run.forking": False,
    "store.committing": False,
    "store.committed": True,
    "run.forked": True,
}
"""Where the fork is killed, and whether it is there afterwards."""


@pytest.mark.parametrize(("failpoint", "is_there"), KILLED_AT.items())
def test_a_killed_fork_is_whole_or_not_there(
    tmp_path: Path, failpoint: str, is_there: bool
) -> None:
    with holdfast.open(tmp_path / "store") as store:
        whole = store.run(thinker, id="run")
    command = ("fork", "run", "--at", "2", "--as", "fork", "--store", "store")

    killed = call(tmp_path, *command, failpoint=f"{failpoint}:1")

    assert -9 == killed
    check_whole(tmp_path / "store")
    with holdfast.open(tmp_path / "store") as store:
        assert is_there == ("fork" in [each.id for each in store.runs()])
    assert (2 if is_there else 0) == call(tmp_path, *command)
    with holdfast.open(tmp_path / "store") as store:
        assert whole == store.run(thinker, id="fork")
        assert whole == store.run(thinker, id="run")
    check_whole(tmp_path / "store")
