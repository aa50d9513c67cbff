"""Supervise the mortal agent: STORE LOG SPARE STALL HANGS, until Ctrl-C."""

import contextlib
import sys

import holdfast
from bench.systems.mortal import mortal


def main() -> None:
    """Go on until Ctrl-C, which stops the child too."""
    store, log, spare, stall, hangs_s = sys.argv[1:]
    with contextlib.suppress(KeyboardInterrupt), holdfast.open(store) as opened:
        opened.supervise(
            mortal,
            log,
            hangs_s=float(hangs_s),
            id="mortal",
            spare=spare == "spare",
            stall=stall or None,
        )


if __name__ == "__main__":
    main()
