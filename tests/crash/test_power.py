"""What was acknowledged survives a power cut that takes everything that was not flushed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.model.ids import row_id
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.directory import Directory
from holdfast.store.backends.fs import RealFs
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.store.backends.tail import NAME as TAIL
from holdfast.testing.kill import can_trace
from holdfast.testing.objects import name
from holdfast.testing.rows import journal_row
from tests.crash.power import cuts

pytestmark = [
    pytest.mark.strace,
    pytest.mark.skipif(not can_trace(), reason="strace is missing, or may not trace"),
]

ROWS = """
import os, sys
from pathlib import Path
from holdfast.clock import SystemClock
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.store.backends import tail
from holdfast.testing.rows import append, create, journal_row

tail.FEW_ROWS = 0  # As if there had been many.
records = SqliteRecords(Path(sys.argv[1]), SystemClock())
records.commit([create(b"a")])
for seq in range(1, 6):
    records.commit([append(1, journal_row(1, seq, b"body %d" % seq))])
    os.write(1, b"ACK %d" % seq)
"""
OBJECTS = """
import os, sys
from pathlib import Path
from holdfast.store.backends.directory import Directory
from holdfast.store.backends.fs import RealFs
from holdfast.testing.objects import name

objects = Directory(Path(sys.argv[1]) / "objects", RealFs())
for n in range(1, 4):
    data = b"large %d" % n * 9_000
    objects.put(name(data), data)
    os.write(1, b"ACK %d" % n)
"""


UNNAMED = """
from holdfast.store.backends.fs import RealFs
RealFs.flush_directory = lambda self, path: None
"""
"""Leaves out the flush of the directory in which the tail was made."""


def kept(
    program: str, place: Path, left_out: Path | None = None
) -> Iterator[tuple[list[JournalRow], list[JournalRow], bool]]:
    """Each time a row was acknowledged: those until then, what is left of them, in a tail or not.

    The first one goes to the database, the others to the tail.
    """
    (place / "store").mkdir()
    for acknowledged, left in cuts(program, place / "store", place, left_out):
        has_tail = (left / TAIL).exists()
        records = SqliteRecords(left, SystemClock())
        rows = records.rows(row_id(1, 1), row_id(1, acknowledged))
        records.close()
        said = [journal_row(1, n, b"body %d" % n) for n in range(1, acknowledged + 1)]
        yield said, rows, has_tail


def test_no_acknowledged_row_is_lost(tmp_path: Path) -> None:
    found = list(kept(ROWS, tmp_path))

    assert [(said, said, said[1:] != []) for said, _, _ in found] == found
    assert 5 == len(found)


@pytest.mark.parametrize(
    ("program", "left_out"),
    [(ROWS, f"store/{TAIL}"), (f"{UNNAMED}{ROWS}", "")],
    ids=["of the tail", "of its name"],
)
def test_a_row_is_lost_where_a_flush_is_left_out(
    tmp_path: Path, program: str, left_out: str
) -> None:
    found = list(kept(program, tmp_path, tmp_path / left_out if left_out else None))

    assert [said[:1] for said, _, _ in found] == [rows for _, rows, _ in found]
    assert 5 == len(found)


def test_no_acknowledged_object_is_lost(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    seen = 0

    for acknowledged, left in cuts(OBJECTS, tmp_path / "store", tmp_path):
        objects = Directory(left / "objects", RealFs())
        wanted = [b"large %d" % n * 9_000 for n in range(1, acknowledged + 1)]
        seen += 1

        assert wanted == [objects.get(name(data)) for data in wanted]

    assert 3 == seen
