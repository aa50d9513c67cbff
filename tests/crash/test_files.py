"""Large values as files: nothing cut short or unflushed is taken for kept, no row comes first."""

import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.store.backends.directory import Directory
from holdfast.store.backends.fs import RealFs
from holdfast.testing import kill
from holdfast.testing.kill import Failpoint, Syscall, can_trace
from holdfast.testing.objects import name

ROOT = Path(__file__).resolve().parents[2]
DATA = b"large " * 50_000

PUT = """
import resource, signal, sys
from pathlib import Path
from holdfast.errors import StoreUnwritable
from holdfast.store.backends.directory import Directory
from holdfast.store.backends.fs import RealFs
from tests.crash.test_files import DATA, name

if limit := int(sys.argv[2]):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    Directory(Path(sys.argv[1]), RealFs()).put(name(DATA), DATA)
    print("kept")
except StoreUnwritable:
    print("refused")
"""
ANSWER = """
import sys
import holdfast
from tests.crash.test_files import large

with holdfast.open(sys.argv[1]) as store:
    print(len(store.run(large, id="run")))
"""


@holdfast.step
def answer() -> bytes:
    return DATA


@holdfast.agent
def large(_: holdfast.Run) -> bytes:
    return answer()


def put(place: Path, *, limit: int = 0, at: Syscall | None = None) -> str:
    ended = kill.run([sys.executable, "-c", PUT, str(place), str(limit)], cwd=ROOT, at=at)
    assert 0 == ended.status, ended.output
    return ended.output.strip()


def test_a_file_that_could_only_be_written_in_part_is_not_kept(tmp_path: Path) -> None:
    assert "refused" == put(tmp_path / "objects", limit=len(DATA) // 2)

    assert Directory(tmp_path / "objects", RealFs()).get(name(DATA)) is None


@pytest.mark.strace
@pytest.mark.skipif(not can_trace(), reason="strace is missing, or may not trace")
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_what_could_not_be_flushed_is_not_said_to_be_kept(tmp_path: Path, nth: int) -> None:
    # A flush that failed may say that all is well the next time, and nothing is.
    at = Syscall(name="fsync", nth=nth, error="EIO")

    assert "refused" == put(tmp_path / "objects", at=at)
    assert "kept" == put(tmp_path / "objects")
    assert DATA == Directory(tmp_path / "objects", RealFs()).get(name(DATA))


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_row_never_names_a_large_value_that_is_not_there(tmp_path: Path, nth: int) -> None:
    command = [sys.executable, "-c", ANSWER, str(tmp_path / "store")]

    kill.run(command, cwd=ROOT, at=Failpoint(name="store.committed", nth=nth))

    ended = kill.run(command, cwd=ROOT)
    assert str(len(DATA)) == ended.output.strip()
