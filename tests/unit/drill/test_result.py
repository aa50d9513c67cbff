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


def test_a_damaged_line_is_named_and_without_it_the_rest_is_read(tmp_path: Path) -> None:
    file = tmp_path / "drill.jsonl"
    for each in (HEAD, Result(no=1, case=0), Result(no=2, case=0)):
        Log(file).add(each)
    first, second, third = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + second[5:] + third)

    with pytest.raises(UsageError, match=r"line 2 of .* is damaged .* take it out"):
        read(file)

    file.write_bytes(first + third)
    assert [2] == list(read(file).runs)
