"""One life of an agent in a small store, to be traced: `python -m tests.soak.recorded`.

It takes the agent, the place and the durability. Everything is loaded and done once elsewhere
before the life begins, so that the trace is short.
"""

import sys
from pathlib import Path

from holdfast.store.backends import tail
from holdfast.testing.kill import await_tracer
from tests.corruption.scene import small_parts
from tests.crash.nursery import FINISHED, Order, live
from tests.soak.trace import TRACE


def main() -> int:
    """Live once, at most until the end; a life that waits for nobody ends by itself."""
    agent, place, durability = sys.argv[1:]
    tail.FEW_ROWS = 0  # So short a life writes as a long one does.
    with small_parts():
        warm = Path(place, "warm")
        warm.mkdir()
        assert FINISHED == live(Order(agent=agent, place=str(warm), durability=durability))
        traced = Path(place, "traced")
        traced.mkdir()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await_tracer()
        # A tracer that is attached may not listen yet: go on when a call of ours is written down.
        while not Path(place, TRACE).exists() or not Path(place, TRACE).stat().st_size:
            (warm / "heard").touch()
        return live(Order(agent=agent, place=str(traced), durability=durability))


if __name__ == "__main__":
    raise SystemExit(main())
