"""Rows that pass by the page cache on a disk that works meanwhile: kills, readers, power cuts."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.model.ids import row_id
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.store.backends.tail import PASSED_BY
from holdfast.testing.rows import append, create, journal_row
from tests.soak.cuts import KINDS, FileSystem, is_there, missing

pytestmark = pytest.mark.crash

WRITER = """
import sys
from pathlib import Path
from holdfast.clock import SystemClock
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.store.backends import tail
from holdfast.testing.rows import append, create, journal_row

tail.FEW_ROWS, tail.LOOK_NS = 0, 10**9  # No row takes the way for slow disks.
records = SqliteRecords(Path(sys.argv[1]), SystemClock())
run = int(sys.argv[2])
records.commit([create(b"%d" % run)])
for seq in range(1, int(sys.argv[3])):
    # Of one block and of more; now and then one of them takes the others into the database.
    body, intents = b"%d " % seq * (seq % 7 * 400 + 1), [b"i"] if seq % 150 == 0 else []
    records.commit([append(run, journal_row(run, seq, body), intents=intents)])
    print(seq, flush=True)
"""
KILLS, CUTS, ROWS = 12, 4, 1500


def body(seq: int) -> bytes:
    return b"%d " % seq * (seq % 7 * 400 + 1)


def started(place: Path, run: int, rows: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(place), str(run), str(rows)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed(place: Path, run: int, *, after: int) -> int:
    """The newest row that was acknowledged to a writer killed soon after so many."""
    with started(place, run, 10**6) as writer:
        assert writer.stdout is not None
        seen = [writer.stdout.readline() for _ in range(after)]
        writer.kill()
        seen += writer.stdout.readlines()
        assert -signal.SIGKILL == writer.wait(60)
    return int(seen[-1])


def test_who_is_killed_while_the_disk_writes_has_what_was_acknowledged(disk: Path) -> None:
    chance = random.Random("kills")  # noqa: S311 a seed
    for run in range(1, KILLS + 1):
        acknowledged = killed(disk, run, after=chance.randint(1, 200))
        records = SqliteRecords(disk, SystemClock())
        kept = records.rows(row_id(run, 1), row_id(run, 10**6))
        assert acknowledged <= len(kept) <= acknowledged + 1
        assert [journal_row(run, seq, body(seq)) for seq in range(1, len(kept) + 1)] == kept
        assert [] == records.missing()
        records.close()


def test_readers_see_every_row_that_was_acknowledged_and_no_other(disk: Path) -> None:
    records = SqliteRecords(disk, SystemClock())
    records.commit([create(b"mine")])
    records.commit([append(1, journal_row(1, 1))])
    seen, looks, own = 0, 0, 1
    with started(disk, 2, ROWS) as writer:
        assert writer.stdout is not None
        while line := writer.stdout.readline():
            seq = int(line)
            rows = records.rows(row_id(2, max(1, seq - 40)), row_id(2, ROWS))
            assert [row.body for row in rows] == [body(row.id & 0xFFFFFFFF) for row in rows]
            newest = rows[-1].id & 0xFFFFFFFF
            assert max(seq, seen) <= newest
            seen, looks = newest, looks + 1
            if looks % 5 == 0:  # Beside its rows, in another block of the same file.
                own += 1
                records.commit([append(1, journal_row(1, own))])
        assert 0 == writer.wait(60)
    assert ROWS - 1 == seen
    assert [journal_row(1, n) for n in range(1, own + 1)] == records.rows(
        row_id(1, 1), row_id(1, own)
    )
    records.close()


@pytest.mark.skipif(missing() != "", reason=missing())
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in PASSED_BY and is_there(kind)])
def test_what_was_acknowledged_is_there_after_a_power_cut(kind: str, tmp_path: Path) -> None:
    chance = random.Random(kind)  # noqa: S311 a seed
    disk, place = FileSystem(kind, tmp_path), tmp_path / "store"
    try:
        for run in range(CUTS):
            with disk.mounted(place):
                acknowledged = killed(place, 1, after=chance.randint(1, 400))  # The file grows.
                disk.cut(place)

                records = SqliteRecords(place, SystemClock())
                kept = records.rows(row_id(1, 1), row_id(1, 10**6))
                records.close()
            assert [journal_row(1, n, body(n)) for n in range(1, len(kept) + 1)] == kept
            assert acknowledged <= len(kept), f"cut {run} of {kind}"
    finally:
        disk.close()
