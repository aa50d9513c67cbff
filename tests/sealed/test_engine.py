"""A part of the engine's tests once more, on encrypted stores: forks, large values, branches.

The whole suite runs so with `HOLDFAST_KEY=env:NAME` in its environment.
"""

import os
import subprocess
import sys

from tests.docs.blocks import ROOT

FILES = ("test_fork", "test_large", "test_patches", "test_redo", "test_transfer")


def test_a_part_of_the_engines_suite_passes_on_encrypted_stores() -> None:
    env = {**os.environ, "THE_KEY": "5e" * 32, "HOLDFAST_KEY": "env:THE_KEY"}
    files = [f"tests/engine/{name}.py" for name in FILES]

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == done.returncode, done.stdout
    assert " passed" in done.stdout
