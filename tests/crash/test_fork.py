"""A store does not cross a fork: the child is told so, and the parent's goes on undisturbed."""

import json
import sys
from pathlib import Path

import pytest

from holdfast.testing import kill
from tests.crash.trial import ROOT, check_whole

pytestmark = pytest.mark.crash

REFUSED = ["StoreClosed"] * 6


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        ("forked_by_os", [REFUSED, [0, 1]]),
        ("forked_while_runs_are_looked_after", ["no error, but None", [0, 1]]),
        ("forked_by_multiprocessing", [REFUSED, [0, 1]]),
        ("forked_inside_a_run", [["StoreClosed", "StoreClosed"], [0, 1]]),
        ("opened_again_after_the_fork", [[0, 1], [0, 1]]),
        ("opened_by_each_worker", [list(range(n)) for n in range(1, 7)]),
    ],
)
def test_after_a_fork_only_the_process_that_opened_a_store_uses_it(
    tmp_path: Path, program: str, seen: list[object]
) -> None:
    command = [sys.executable, "-m", "tests.crash.forking", program, str(tmp_path / "store")]

    ended = kill.run(command, cwd=ROOT)

    assert 0 == ended.status, ended.output
    assert seen == json.loads(ended.output.splitlines()[-1])
    check_whole(tmp_path / "store")
