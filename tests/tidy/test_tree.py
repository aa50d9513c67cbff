"""House rules for every file of the repository."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.tidy.source import ROOT

FRAGMENT = re.compile(r"\d+\.(added|changed|fixed|format|security)\.md")

# Written so that no pattern matches itself.
OF_ONE_MACHINE = {
    "a path of one machine": re.compile(r"(?<![\w.~])/(?:root|work|home/\w+|Users/\w+)\b"),
    "where one machine takes packages from": re.compile(
        r"--(?:extra-)?index[-]url|--find[-]links|--trusted[-]host"
        r"|https?://[\w.-]*(?:artifact|jfrog|mirror|nexus|registry|pypi(?!\.org/project))"
    ),
}


@cache
def files() -> tuple[Path, ...]:
    """What is kept, or will be with the next commit; in a copy without git, all but leftovers."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    found = map(ROOT.joinpath, listed.stdout.split("\0")) if listed.stdout else _walk(ROOT)
    return tuple(sorted(path for path in found if path.is_file()))


def _walk(folder: Path) -> Iterator[Path]:
    left_behind = {
        line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    }
    for path in folder.iterdir():
        if path.name in left_behind | {".git"}:
            continue
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path


def test_no_store_is_kept_but_the_golden_ones() -> None:
    found = {path.relative_to(ROOT) for path in files() if path.name == "store.db"}

    assert {Path("tests/golden")} == {path.parents[-3] for path in found}


@pytest.mark.parametrize("what", OF_ONE_MACHINE)
def test_no_file_knows_the_machine_it_was_written_on(what: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()}"
        for path in files()
        for number, line in enumerate(path.read_bytes().splitlines(), start=1)
        if (match := OF_ONE_MACHINE[what].search(line.decode("utf-8", "replace")))
    ]

    assert [] == found


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("at /ro" + "ot/store", "a path of one machine"),
        ("/ho" + "me/ann/store", "a path of one machine"),
        ("https://nex" + "us.example/simple", "where one machine takes packages from"),
        ("--index" + "-url x", "where one machine takes packages from"),
    ],
)
def test_what_belongs_to_one_machine_is_found(line: str, what: str) -> None:
    assert OF_ONE_MACHINE[what].search(line)


def test_each_change_fragment_has_its_name_and_a_sentence() -> None:
    fragments = [path for path in files() if path.parent == ROOT / "changes"]

    assert [] == [path.name for path in fragments if not FRAGMENT.fullmatch(path.name)]
    assert [] == [
        path.name for path in fragments if not path.read_text(encoding="utf-8").endswith(".\n")
    ]
