"""The file calls of the store on a real disk."""

import resource
import signal
from pathlib import Path

import pytest

from holdfast.store.backends.fs import RealFs


def test_a_file_that_cannot_be_written_whole_is_not_left(tmp_path: Path) -> None:
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            RealFs().write_new(tmp_path / "key", bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)

    assert [] == list(tmp_path.iterdir())


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"old")

    with pytest.raises(FileExistsError):
        RealFs().write_new(tmp_path / "key", b"new")

    assert b"old" == (tmp_path / "key").read_bytes()
