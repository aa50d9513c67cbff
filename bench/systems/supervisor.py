"""Supervise the mortal agent: STORE LOG SPARE STALL HANGS, until Ctrl-C."""

import contextlib
import signal
import sys

import holdfast
from bench.systems.mortal import mortal


def main() -> None:
    """Go on until Ctrl-C, which stops the child too."""
    store, log, spare, stall, hangs_s = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell's `&` has it ignored.
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
