"""All parts of the soak, one after the other, then the page of what they counted: `make soak`.

Stopped at any moment it goes on where it was. `--seconds 600` gives each part ten minutes at most;
names choose parts: `python -m tests.soak fuzz flips`.
"""

import argparse
import subprocess
import sys

from tests.soak.page import write
from tests.soak.part import FOLDER, ROOT, SEED, records

PARTS = (
    *("simulated", "power", "kills", "recovery", "cuts", "io_errors", "flips", "fuzz"),
    *("stalls", "model", "together", "golden"),
)


def main() -> int:
    """Go on with every part; the exit status says whether any found anything."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", default=SEED)
    arguments.add_argument("--seconds", default="inf", help="at most so long for each part")
    arguments.add_argument("names", nargs="*", default=PARTS, help="parts; all of them by default")
    asked = arguments.parse_args()
    status = 0
    for name in asked.names or PARTS:
        # Each in a process of its own: one is loaded before the C library, one caps its memory.
        command = [sys.executable, "-m", f"tests.soak.{name}"]
        options = ["--seed", asked.seed, "--seconds", asked.seconds]
        status |= subprocess.run([*command, *options], cwd=ROOT, check=False).returncode
        write()
    skipped = [f"{each.name} ({each.skipped})" for each in records(FOLDER) if each.skipped]
    sys.stdout.write(f"{len(skipped)} parts skipped{': ' * bool(skipped)}{', '.join(skipped)}\n")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
