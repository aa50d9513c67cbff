"""House rules for what is written in C."""

import re
from pathlib import Path

import pytest

from tests.tidy.source import ROOT

LINES_MAX = 400
SOURCES = sorted((ROOT / "src" / "native").glob("*.[ch]"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_file_is_short_and_says_in_its_first_line_what_it_is(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()

    assert len(lines) <= LINES_MAX
    assert re.match(r"/\* \S.*[.:;]", lines[0])
    assert [] == [line for line in lines if len(line) > 100]
