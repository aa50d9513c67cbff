"""Every planted fault fits the source and has its test; some are planted each time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.__main__ import main, try_all
from tests.mutants.mutant import Mutant, mutant
from tests.mutants.plant import ROOT, misfits
from tests.mutants.table import FAULTS, MUTANTS, NO_CODE

SEED, COUNT = "HOLDFAST_MUTANTS_SEED", "3"
"""`make mutants` plants all of them."""

BLIND = mutant(
    "none",
    "a word of a docstring",
    "tests/mutants/test_killers.py::test_what_stands_in_place_of_a_pruned_row_is_checked",
    ("store/chain.py", '"""Hashes that bind', '"""Hashes which bind'),
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


def test_some_of_them_are_planted_and_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--count", COUNT, "--seed", os.environ.get(SEED, "1")])

    assert 0 == status, capsys.readouterr().out


def test_a_fault_that_nobody_notices_is_told(tmp_path: Path) -> None:
    healthy, [verdict] = try_all([BLIND], tmp_path)

    assert healthy
    assert not verdict.is_killed
    assert "the test passed: nobody noticed" == verdict.why


def test_text_that_is_not_there_once_is_told() -> None:
    gone = mutant("none", "gone", BLIND.killed_by, ("store/chain.py", "no such text", ""))
    twice = mutant("none", "twice", BLIND.killed_by, ("store/chain.py", "hashlib.sha256", ""))
    broken = mutant("none", "broken", BLIND.killed_by, ("store/chain.py", "KID_BYTES = 16", "= 16"))

    assert ["store/chain.py holds this text 0 times, not once: 'no such text'"] == misfits(gone)
    assert "times, not once: 'hashlib.sha256'" in misfits(twice)[0]
    assert "is no Python any more" in misfits(broken)[0]
