"""Every program and every session of the documentation runs and prints what its page says."""

import re
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import (
    PAGES,
    ROOT,
    Block,
    blocks,
    commands,
    programs,
    run,
    shape,
    write_files,
)

# What sets up machines, or is run at length by a test of its own.
NOT_RUN = ("make ", "pip ", "holdfast demo")

PROGRAMS = [(page, block) for page in PAGES for block in programs(page)]
SESSIONS = [page for page in PAGES if any(block.kind == "console" for block in blocks(page))]

_LINK = re.compile(r"\]\(([^)#:]+)(?:#[\w-]+)?\)")


def name(item: object) -> str:
    if isinstance(item, Path):
        return item.relative_to(ROOT).as_posix()
    return f"line {item.line}" if isinstance(item, Block) else str(item)


@pytest.mark.parametrize(("page", "program"), PROGRAMS, ids=name)
def test_a_program_prints_what_the_page_says(page: Path, program: Block, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program.text, encoding="utf-8")

    assert program.prints is not None, f"{page.name}, line {program.line}: what does it print?"
    assert program.prints == run([sys.executable, "program.py"], tmp_path)


@pytest.mark.parametrize("page", SESSIONS, ids=name)
def test_a_session_goes_as_the_page_says(page: Path, tmp_path: Path) -> None:
    write_files(page, tmp_path)

    for block in blocks(page):
        for command in commands(block) if block.kind == "console" else ():
            if command.line.startswith(NOT_RUN):
                continue
            printed = run(["bash", "-c", command.line], tmp_path)
            if command.line.startswith(("holdfast", "pytest")):
                # Times, sizes and process numbers are never the same.
                assert shape(command.prints) == shape(printed), command.line
            else:
                assert command.prints == printed, command.line


@pytest.mark.parametrize(
    "page", sorted({*PAGES, *ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")}), ids=name
)
def test_a_link_leads_to_a_file_that_is_there(page: Path) -> None:
    links = _LINK.findall(page.read_text(encoding="utf-8"))

    assert [] == [link for link in links if not (page.parent / link).exists()]
