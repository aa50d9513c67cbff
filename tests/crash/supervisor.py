"""The supervisor that is killed: `python -m tests.crash.supervisor PLACE AGENT`."""

import json
import sys
from pathlib import Path

import holdfast
from tests.crash import kept
from tests.crash.nursery import FINISHED, STORE
from tests.crash.outside import Outside

RUN = "run"
ESCALATED = 18


def main() -> int:
    """Supervise the run to its end; its result goes to the outside."""
    place, name = sys.argv[1:]
    outside = Outside(Path(place))
    with holdfast.open(outside.place / STORE) as store:
        try:
            result = store.supervise(getattr(kept, name), id=RUN)
        except holdfast.Escalated:
            return ESCALATED
        outside.note("result", json.dumps(result))
    return FINISHED


if __name__ == "__main__":
    sys.exit(main())
