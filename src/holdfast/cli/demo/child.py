"""One life of the demo's agent, in a process of its own that may be killed at any moment."""

import signal
import sys

import holdfast
from holdfast.cli.demo.agent import support
from holdfast.cli.demo.world import tell

RUN = "demo"


def main(store: str, folder: str, tickets: str, pace: str) -> None:
    """Start the run or continue it; say how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    with holdfast.open(store) as opened:
        result = opened.run(support, folder, int(tickets), float(pace), id=RUN)
    tell("done", result)


if __name__ == "__main__":
    main(*sys.argv[1:])
