"""Two handles of one store side by side take nothing from each other."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast import failpoint
from holdfast.clock import SystemClock
from holdfast.model.ids import row_id
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.store.codec import values
from holdfast.store.gc import objects
from holdfast.testing.rows import append, create, journal_row

MEANWHILE_S = 2.0
WRITER = """
import os, signal, sys
from pathlib import Path
from holdfast.clock import SystemClock
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.testing.rows import append, create, journal_row

records = SqliteRecords(Path(sys.argv[1]), SystemClock())
records.commit([create(b"a")])
records.commit([append(1, journal_row(1, 1))])
print("written", flush=True)
input()
for seq in (2, 3):
    records.commit([append(1, journal_row(1, seq), intents=[b"i"])])  # Into the log, not the tail.
os.kill(os.getpid(), signal.SIGKILL)
"""


KILLED = """
import sys
from pathlib import Path
from holdfast.clock import SystemClock
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.testing.rows import append, create, journal_row

records = SqliteRecords(Path(sys.argv[1]), SystemClock())
records.commit([create(b"b")])
for seq in range(1, 40):
    intents = [b"i"] if seq % 10 == 0 else []
    records.commit([append(2, journal_row(2, seq), intents=intents)])
    print(seq, flush=True)
"""
"""Rows of its own run, of which every tenth takes the tail into the database."""


@pytest.mark.crash
@pytest.mark.parametrize(
    "death",
    [
        *("tail.growing:1", "tail.grown:1", "tail.writing:1", "tail.writing:14"),
        *("tail.written:1", "tail.written:14", "tail.taking:2", "tail.taking:4"),
        *("tail.taken:2", "tail.taken:4", "store.committed:15"),
    ],
)
def test_who_dies_while_it_writes_the_tail_takes_nothing_from_another(
    tmp_path: Path, death: str
) -> None:
    records = SqliteRecords(tmp_path, SystemClock())
    records.commit([create(b"a")])
    records.commit([append(1, journal_row(1, 1))])
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    env = {**os.environ, "HOLDFAST_FAILPOINT": death}

    killed = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
    seen = [row.id for row in records.rows(row_id(2, 1), row_id(2, 40))]
    for seq in range(2, 20):
        assert [row_id(1, seq)] == records.commit([append(1, journal_row(1, seq))])
    records.close()

    assert -signal.SIGKILL == killed.returncode
    acknowledged = len(killed.stdout.split())
    left = SqliteRecords(tmp_path, SystemClock())
    kept = [row.id for row in left.rows(row_id(2, 1), row_id(2, 40))]
    assert [row_id(2, seq) for seq in range(1, len(kept) + 1)] == kept
    assert acknowledged <= len(kept) <= acknowledged + 1
    assert seen == kept
    assert [journal_row(1, n) for n in range(1, 20)] == left.rows(row_id(1, 1), row_id(1, 20))
    assert [] == left.missing()
    left.close()


def test_a_handle_that_is_closed_takes_no_commit_from_one_that_is_open(tmp_path: Path) -> None:
    # Whoever closes last removes the log: it must see that another is still connected.
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert "written\n" == writer.stdout.readline()
        SqliteRecords(tmp_path, SystemClock()).close()
        writer.stdin.write("\n")
        writer.stdin.flush()
        assert -signal.SIGKILL == writer.wait(60)

    records = SqliteRecords(tmp_path, SystemClock())
    assert [] == records.missing()
    rows = records.rows(row_id(1, 1), row_id(1, 3))
    assert [journal_row(1, seq) for seq in (1, 2, 3)] == rows
    records.close()


def test_a_value_that_another_handle_names_while_garbage_is_removed_stays(tmp_path: Path) -> None:
    document = "text" * 30_000

    @holdfast.step
    def read() -> str:
        return document

    @holdfast.agent
    def reader(_: holdfast.Run) -> int:
        return len(read())

    def name_it() -> None:
        thread.start()
        thread.join(MEANWHILE_S)  # It has to wait until the garbage is gone, then writes it again.

    with holdfast.open(tmp_path) as one, holdfast.open(tmp_path) as two:
        two._opened.chunks.keep(values.encode(document))  # noqa: SLF001 kept, and named by no row yet
        named = objects.Named(one._opened)  # noqa: SLF001 the moment of removal is not public
        garbage = objects.unnamed(one._opened, named)  # noqa: SLF001 see above
        thread = threading.Thread(target=two.run, args=(reader,), kwargs={"id": "run"})
        failpoint.arm("gc.removing", name_it)

        assert garbage == objects.remove(one._opened, named, garbage)  # noqa: SLF001 see above

        thread.join()
        assert 1 == len(garbage)
        assert [] == list(objects.unnamed(one._opened, objects.Named(one._opened)))  # noqa: SLF001 see above
        assert garbage == list(one._opened.objects.ids())  # noqa: SLF001 see above


@pytest.mark.parametrize(
    ("moving", "move"),
    [
        ("store.recycling", lambda records: records.commit([create(b"b")])),
        ("store.emptying", lambda records: records.empty_log()),
    ],
    ids=["as it grows", "all of it"],
)
def test_nothing_is_committed_while_the_log_is_moved_into_the_database(
    tmp_path: Path, moving: str, move: Callable[[SqliteRecords], object]
) -> None:
    # SQLite before 3.51.3 may lose a commit that comes while another connection moves the log.
    SqliteRecords(tmp_path, SystemClock()).close()  # A new store's log grows as it is made.
    one, two = (SqliteRecords(tmp_path, SystemClock()) for _ in range(2))
    done: list[list[int]] = []
    meanwhile: list[bool] = []

    def commit() -> None:
        if not meanwhile:
            meanwhile.append(True)
            thread.start()
            thread.join(MEANWHILE_S)
            meanwhile[:] = [bool(done)]

    thread = threading.Thread(target=lambda: done.append(two.commit([create(b"a")])))
    failpoint.arm(moving, commit)
    move(one)
    thread.join()

    assert [False] == meanwhile
    assert 1 == len(done)
    one.close()
    two.close()
