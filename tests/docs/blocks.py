"""The pages of the documentation as tests see them: programs, sessions, and what they print.

A `python` block whose first line is `# name.py` is a file of that name; any other that begins with
`import holdfast` is a program, and a `text` block right after it is what it prints. A `console`
block is a session: lines after `$ ` are commands, lines below them what they print.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
]

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")
_VARIES = [
    (re.compile(r"\b(?:[0-9a-f]{16}){1,2}\b"), "0"),
    (re.compile(r"process \d+ on \S+"), "process 0 on here"),
    (re.compile(r"\d[\d.,:-]*"), "0"),
    (re.compile(r"\b0 (?:µs|ms|s|min|h|kB|B)\b"), "0 unit"),
]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    kind: str
    text: str
    line: int
    prints: str | None = None


@dataclass(frozen=True, kw_only=True)
class Command:
    """A line after `$ ` and what the page says that it prints."""

    line: str
    prints: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    return [
        Block(
            kind=match[1],
            text=match[2],
            line=text.count("\n", 0, match.start()) + 1,
            prints=after[2] if after and _is_output(text, match, after) else None,
        )
        for match, after in zip_longest(found, found[1:])
    ]


def _is_output(text: str, block: re.Match[str], after: re.Match[str]) -> bool:
    return after[1] == "text" and not text[block.end() : after.start()].strip()


def file_name(block: Block) -> str | None:
    named = _FILE.match(block.text)
    return named[1] if named else None


def programs(page: Path) -> list[Block]:
    return [
        block
        for block in blocks(page)
        if block.kind == "python" and block.text.startswith("import holdfast")
    ]


def commands(block: Block) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, prints = part.partition("\n")
        yield Command(line=line.partition("   #")[0].strip(), prints=prints)


def write_files(page: Path, folder: Path) -> None:
    for block in blocks(page):
        name = file_name(block)
        if name is not None:
            (folder / name).write_text(block.text, encoding="utf-8")


def run(command: list[str], folder: Path) -> str:
    """What a command prints, on both streams, with the tools of this environment first."""
    tools = Path(sys.executable).parent
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            **kept,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "PYTEST_ADDOPTS": "-p no:asyncio",  # It warns of settings that a reader does not have.
        },
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout


def shape(output: str) -> list[list[str]]:
    """The words of each line, with every number, unit and process taken for one of its kind."""
    for pattern, instead in _VARIES:
        output = pattern.sub(instead, output)
    return [line.split() for line in output.splitlines() if line.strip()]
