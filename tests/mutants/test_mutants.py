"""Every planted fault fits the source and has its test; some are planted each time."""

import datetime as dt
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import page
from tests.mutants.__main__ import conclude, main, try_all
from tests.mutants.mutant import Mutant, mutant
from tests.mutants.plant import ROOT, Verdict, misfits
from tests.mutants.table import FAULTS, MUTANTS, NO_CODE

PAGE = ROOT / "docs" / "mutants.md"
SEED, COUNT = "HOLDFAST_MUTANTS_SEED", 2
"""`make mutants` plants all of them."""

BLIND = mutant(
    "none",
    "a word of a docstring",
    "tests/mutants/test_killers.py::test_what_stands_in_place_of_a_pruned_row_is_checked",
    ("store/chain.py", '"""Hashes that bind', '"""Hashes which bind'),
)


BROKEN = mutant(
    "none",
    "a name that there is not",
    "tests/mutants/test_killers.py::test_what_stands_in_place_of_a_pruned_row_is_checked",
    ("store/chain.py", "        body = seal(payload)\n", "        body = sael(payload)\n"),
)


@pytest.mark.parametrize("planted", MUTANTS, ids=lambda each: each.name)
def test_a_planted_fault_fits_the_source(planted: Mutant) -> None:
    assert [] == misfits(planted)


def test_every_fault_of_the_list_is_planted_or_has_no_code() -> None:
    planted = {each.fault for each in MUTANTS}

    assert set(FAULTS) == planted | NO_CODE.keys()
    assert set() == planted & NO_CODE.keys()
    assert len(MUTANTS) == len({each.name for each in MUTANTS})


def test_every_killing_test_is_there() -> None:
    tests = sorted({each.killed_by for each in MUTANTS})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]

    done = subprocess.run([*command, *tests], cwd=ROOT, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout[-2000:]


def test_some_of_them_are_planted_and_noticed_and_one_that_proves_nothing_is_told(
    tmp_path: Path,
) -> None:
    chance = random.Random(os.environ.get(SEED, "1"))  # noqa: S311 a seed, not a secret

    is_healthy, verdicts = try_all([*chance.sample(MUTANTS, COUNT), BLIND, BROKEN], tmp_path)

    *planted, blind, broken = verdicts
    assert is_healthy
    assert [] == [verdict for verdict in planted if not verdict.is_killed]
    assert not blind.is_killed
    assert "the test passed: nobody noticed" == blind.why
    assert not broken.is_killed
    assert "what is planted does not run: NameError" in broken.why


@pytest.mark.parametrize(
    ("is_healthy", "are_killed", "status"),
    [
        (True, [True, True], 0),
        (True, [True, False], 1),
        (False, [True, True], 1),
    ],
)
def test_one_survivor_or_one_sick_test_fails_the_gate(
    is_healthy: bool, are_killed: list[bool], status: int
) -> None:
    verdicts = [
        Verdict(mutant=BLIND, is_killed=is_killed, why="", took_s=0.0) for is_killed in are_killed
    ]

    assert status == conclude(verdicts, is_healthy=is_healthy)


def test_the_page_tells_who_noticed_and_who_did_not() -> None:
    killed = Verdict(mutant=MUTANTS[0], is_killed=True, why="in /x/0/temp/y: 1 | 2", took_s=0.0)
    missed = Verdict(mutant=MUTANTS[-1], is_killed=False, why="nobody noticed", took_s=0.0)

    told = page.text([missed, killed], "abc", dt.date(2026, 11, 16))

    assert "**1 of 2** noticed, 2 of 45 kinds; commit abc, 2026-11-16." in told
    assert f"| {killed.mutant.fault} | {killed.mutant.name} |" in told
    assert "`in y: 1 ¦ 2` |" in told
    assert "`SURVIVED: nobody noticed` |" in told
    assert told.index(killed.mutant.name) < told.index(missed.mutant.name)


def test_the_kept_page_is_one_of_a_run_that_noticed_all() -> None:
    found = re.search(r"\*\*(\d+) of (\d+)\*\* noticed", PAGE.read_text(encoding="utf-8"))

    assert found
    assert found[1] == found[2]


def test_a_page_of_a_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "no dir fsync", "--page", "page.md"])

    assert "--page is for all of them" in capsys.readouterr().err


def test_a_part_that_nothing_is_called_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "no such fault"])

    assert "no planted fault is called 'no such fault'" in capsys.readouterr().err


def test_text_that_is_not_there_once_is_told() -> None:
    gone = mutant("none", "gone", BLIND.killed_by, ("store/chain.py", "no such text", ""))
    twice = mutant("none", "twice", BLIND.killed_by, ("store/chain.py", "hashlib.sha256", ""))
    broken = mutant("none", "broken", BLIND.killed_by, ("store/chain.py", "KID_BYTES = 16", "= 16"))

    assert ["store/chain.py holds this text 0 times, not once: 'no such text'"] == misfits(gone)
    assert "times, not once: 'hashlib.sha256'" in misfits(twice)[0]
    assert "is no Python any more" in misfits(broken)[0]
