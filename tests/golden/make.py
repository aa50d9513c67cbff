"""Make the golden stores of the present format: `python -m tests.golden.make`.

Run once for each released format, never by tests; what is committed stays as it is for ever.
Before the first release of a format it may be made anew.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import holdfast
from holdfast.engine import turns
from holdfast.store import writer
from holdfast.store.backends import packs
from holdfast.store.backends.schema import FORMAT, PATCHES
from tests.golden import agents
from tests.golden.tell import KEY, KEY_TEXT, contents

HERE = Path(__file__).parent
KEPT = ("store.db", "heads", "objects")
SEALED = "sealed"
NAME = f"v{FORMAT}-{PATCHES}"
"""The format, and what a store of it has besides; those in `v1` were made before values stood
beside rows, those in `v1-values` when a checkpoint in the middle of a turn still held the whole
state, those in `v1-values-changes` before leaves were named, and those in `v1-leaves` before large
values were patches."""


def main() -> int:
    """Make the open store and the encrypted one, each with what it must be read as."""
    holdfast.register(agents.Account, name="golden.account", version=1)
    os.environ[KEY.partition(":")[2]] = KEY_TEXT
    with tempfile.TemporaryDirectory() as folder, _nowhere():
        for name, key in (("open", None), (SEALED, KEY)):
            target = HERE / NAME / name
            shutil.rmtree(target, ignore_errors=True)
            made = Path(folder, name)
            _build(made, key)
            told = contents(made, key)
            target.mkdir(parents=True)
            for each in KEPT:
                if (made / each).is_dir():
                    shutil.copytree(made / each, target / each)
                else:
                    shutil.copy(made / each, target / each)
            lines = ",\n".join(f"{json.dumps(run)}: {json.dumps(told[run])}" for run in told)
            (target / "expected.json").write_text(f"{{{lines}}}\n", encoding="utf-8")
    size = sum(file.stat().st_size for file in HERE.glob("v*/**/*") if file.is_file())
    sys.stdout.write(f"golden stores: {size:,} bytes\n")
    return 0


@contextlib.contextmanager
def _nowhere() -> Iterator[None]:
    """Small parts, and nothing in the store that says on which machine it was made."""
    machine = SimpleNamespace(nodename="reef", machine=os.uname().machine)
    with (
        patch.object(os, "uname", lambda: machine),
        patch.object(traceback, "format_exception", lambda error: [f"{error!r}\n"]),
        patch.object(turns, "BASE_BYTES_MIN", 1500),
        patch.object(writer, "PACK_BYTES", 4000),
        patch.object(packs, "CUT_FROM", 0),
    ):
        yield


def _build(path: Path, key: str | None) -> None:
    """Runs in every state that a run can be in."""
    with holdfast.open(path, key=key) as store:
        store.run(agents.collector, id="values")
        store.run(agents.worker, "packed", 9, id="packed")
        store.run(agents.worker, "large", 3, "large", id="large")
        store.run(agents.banker, id="bank")
        store.run(agents.talker, 9, id="talk")
        store.run(agents.writer, 6, id="letters")
        store.run(agents.teller, 6, id="tale")
        for redo in (None, False, True, True):
            with contextlib.suppress(holdfast.RunFailed):
                if redo is None:
                    store.run(agents.worker, "branched", 3, "fails", id="branched")
                else:
                    store.restart("branched", redo_turn=redo, reason="made anew")
        for id_, end in (("doubtful", "lost"), ("refused", "refused"), ("open", "stops")):
            with contextlib.suppress(agents.Crash, holdfast.RunFailed):
                store.run(agents.worker, id_, 2, end, id=id_)
        with contextlib.suppress(holdfast.InDoubt):
            store.restart("doubtful")
        for _ in range(2):
            with contextlib.suppress(holdfast.Waiting):
                store.run(agents.asker, id="asking")
        store.fork("packed", at="packed@3", new_id="forked", state={"note": "edited in a fork"})
        store.plan_rollback("packed", to="packed@5").apply()
        store.pin("bank")
        store.gc(holdfast.Retention(last=3))


if __name__ == "__main__":
    raise SystemExit(main())
