"""Make the golden stores of the present format: `python -m tests.golden.make`.

Run once for each released format, never by tests; what is committed stays as it is for ever.
Before the first release of a format it may be made anew.
"""

import asyncio
import contextlib
import json
import os
import shutil
import sqlite3
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
from holdfast.store.backends import packs, slots, tail
from holdfast.store.backends.schema import FORMAT, TAIL
from tests.golden import agents
from tests.golden.tell import KEY, KEY_TEXT, contents

HERE = Path(__file__).parent
KEPT = ("store.db", "tail", "heads", "objects")
SEALED = "sealed"
SINKS_AT = 10
NAME = f"v{FORMAT}-{TAIL}"
"""The format, and what a store of it has besides; those in `v1` were made before values stood
beside rows, those in `v1-values` when a checkpoint in the middle of a turn still held the whole
state, those in `v1-values-changes` before leaves were named, those in `v1-leaves` before large
values were patches, and those in `v1-patches` when all rows stood in the database."""


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
            target.mkdir(parents=True)
            asyncio.run(_sink(made, key, target))
            told = contents(Path(shutil.copytree(target, Path(folder, f"{name} left"))), key)
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
        patch.object(tail, "BYTES_MIN", slots.SLOT),
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


async def _sink(path: Path, key: str | None, target: Path) -> None:
    """Two runs whose process is killed in the middle of a write, and what is left of the store."""
    names = ("sailor", "mate")
    reef = asyncio.Barrier(len(names) + 1)

    async def storm(turn: int) -> None:
        if turn == SINKS_AT:
            await reef.wait()
            await asyncio.Event().wait()

    with (
        holdfast.open(path, key=key) as store,
        patch.object(writer, "PACK_BYTES", 1 << 20),  # A pack would take their rows along.
        patch.object(agents, "calm", storm),
    ):
        runs = [asyncio.create_task(store.arun(agents.sailor, id_, 11, id=id_)) for id_ in names]
        await reef.wait()
        with contextlib.closing(sqlite3.connect(path / "store.db")) as link:
            assert not link.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            meta = dict(link.execute("SELECT key, value FROM meta").fetchall())
        for each in KEPT:
            if (path / each).is_dir():
                shutil.copytree(path / each, target / each)
            else:
                shutil.copy(path / each, target / each)
        for run in runs:
            run.cancel()
        await asyncio.wait(runs)
    _tear(target / "tail", slots.seed(meta["store_id"]), int.from_bytes(meta["tail"][:8], "big"))


def _tear(file: Path, seed: int, generation: int) -> None:
    """As if the kill had come while one record more was written, of which the end is missing."""
    data = bytearray(file.read_bytes())
    found = slots.read(bytes(data), seed, generation)
    record = slots.record(found.rows[:1], seed, generation, found.end)
    data[found.end : found.end + len(record)] = record[:-1] + bytes([record[-1] ^ 0xFF])
    file.write_bytes(data)


if __name__ == "__main__":
    raise SystemExit(main())
