"""The file of results: whole lines or none, whatever the disk takes."""

import resource
from pathlib import Path

import pytest

from holdfast.drill.result import Log, Result, read
from holdfast.errors import UsageError
from tests.unit.drill.test_scorecard import HEAD


def test_a_line_that_the_disk_took_half_of_is_cut_off_again(tmp_path: Path) -> None:
    file = tmp_path / "drill.jsonl"
    log = Log(file)
    log.add(HEAD)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 7, before[1]))
    try:
        with pytest.raises(UsageError, match=r"cannot be written .* the same command goes on"):
            log.add(Result(no=1, case=0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    log.add(Result(no=2, case=0))

    assert [2] == list(read(file).runs)
