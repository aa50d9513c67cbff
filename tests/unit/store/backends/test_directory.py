"""Objects as files: whole under their name or not there at all."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from holdfast import failpoint
from holdfast.errors import Damaged, StoreUnwritable
from holdfast.store.backends.directory import Directory
from holdfast.store.backends.fs import RealFs, is_being_written

ID = bytes(range(32))


class Failing(RealFs):
    """A file system that fails in one of its acts."""

    def __init__(self, act: str) -> None:
        self._act = act

    def write_new(self, path: Path, data: bytes) -> None:
        if self._act == "write":
            super().write_new(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write_new(path, data)

    def rename(self, source: Path, target: Path) -> None:
        if self._act == "rename":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().rename(source, target)

    def read(self, path: Path) -> bytes:
        if self._act.startswith("E"):
            raise OSError(getattr(errno, self._act), os.strerror(getattr(errno, self._act)))
        return super().read(path)


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("act", "error"), [("EIO", Damaged), ("ENOTDIR", Damaged), ("EMFILE", StoreUnwritable)]
)
def test_an_object_that_the_disk_cannot_read_is_damaged(
    tmp_path: Path, act: str, error: type[Exception]
) -> None:
    Directory(tmp_path, RealFs()).put(ID, b"data")

    with pytest.raises(error):
        Directory(tmp_path, Failing(act)).get(ID)


def test_a_file_that_would_never_end_or_fill_the_memory_is_damaged_unread(tmp_path: Path) -> None:
    objects = Directory(tmp_path, RealFs())
    objects.put(ID, b"data")
    place = tmp_path / "00" / ID.hex()

    os.truncate(place, 1 << 40)  # It has holes, and takes no room.
    with pytest.raises(Damaged, match="more than was ever written"):
        objects.get(ID)
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(Damaged, match="a pipe or a device"):
        objects.get(ID)


def test_an_object_lies_under_its_name_two_levels_deep(tmp_path: Path) -> None:
    Directory(tmp_path / "objects", RealFs()).put(ID, b"data")

    assert [f"00/{ID.hex()}"] == files(tmp_path / "objects")


@pytest.mark.parametrize("act", ["write", "rename"])
def test_a_failed_put_says_why_and_leaves_nothing_behind(tmp_path: Path, act: str) -> None:
    objects = Directory(tmp_path / "objects", Failing(act))

    with pytest.raises(StoreUnwritable):
        objects.put(ID, b"data")

    assert [] == files(tmp_path / "objects")
    assert objects.get(ID) is None
    Directory(tmp_path / "objects", RealFs()).put(ID, b"data")
    assert b"data" == objects.get(ID)


def test_what_a_crash_left_half_written_is_no_object_and_is_swept_away(tmp_path: Path) -> None:
    objects = Directory(tmp_path / "objects", RealFs())
    objects.put(ID, b"data")
    (tmp_path / "objects" / "00" / f"{ID.hex()}.0123.part").write_bytes(b"da")

    assert [ID] == list(objects.ids())
    assert 1 == objects.sweep()
    assert 0 == objects.sweep()
    assert [f"00/{ID.hex()}"] == files(tmp_path / "objects")


def test_half_written_files_stay_while_they_are_young_or_being_written(tmp_path: Path) -> None:
    objects = Directory(tmp_path / "objects", RealFs())
    objects.put(ID, b"data")
    old, young, busy = (
        tmp_path / "objects" / "00" / f"{ID.hex()}.{name}.part" for name in ("old", "young", "busy")
    )
    for part, at in ((old, 1_000), (young, 3_000), (busy, 1_000)):
        part.write_bytes(b"da")
        os.utime(part, (at, at))

    with busy.open("ab") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)

        assert 1 == objects.sweep(before=2_000)
        assert (False, True, True) == (old.exists(), young.exists(), busy.exists())
    assert 1 == objects.sweep(before=2_000)


def test_a_file_is_known_to_be_written_until_it_is(tmp_path: Path) -> None:
    path, seen = tmp_path / "new", list[bool]()

    failpoint.arm("file.flushed", lambda: seen.append(is_being_written(path)))
    try:
        RealFs().write_new(path, b"data")
    finally:
        failpoint.disarm()

    assert [True] == seen
    assert not is_being_written(path)


def test_a_file_of_somebody_else_is_no_object(tmp_path: Path) -> None:
    objects = Directory(tmp_path / "objects", RealFs())
    objects.put(ID, b"data")
    (tmp_path / "objects" / "00" / "README").write_text("hello")

    assert [ID] == list(objects.ids())


def test_an_object_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    objects = Directory(tmp_path / "objects", RealFs())
    (tmp_path / "objects" / "00" / ID.hex()).mkdir(parents=True)

    with pytest.raises(Damaged, match=f"{ID.hex()} is damaged: its file cannot be read .is a dir"):
        objects.get(ID)


class Watched(RealFs):
    """Tells which directories were flushed."""

    def __init__(self) -> None:
        self.flushed: list[Path] = []

    def flush_directory(self, path: Path) -> None:
        self.flushed.append(path)
        super().flush_directory(path)


def test_an_object_that_somebody_else_wrote_is_flushed_before_it_counts(tmp_path: Path) -> None:
    id_ = bytes(32)
    Directory(tmp_path / "objects", RealFs()).put(id_, b"large")
    fs = Watched()

    Directory(tmp_path / "objects", fs).put(id_, b"large")

    assert [tmp_path / "objects" / "00", tmp_path / "objects"] == fs.flushed


def test_a_folder_whose_maker_died_is_flushed_before_an_object_in_it_counts(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    (root / "00").mkdir(parents=True)
    (root / "01").mkdir()
    fs = Watched()
    objects = Directory(root, fs)

    objects.put(bytes(32), b"large")
    objects.put(bytes([1]) + bytes(31), b"large")

    # The folder of objects, what is in it (once for all that were there), each object's name.
    assert [tmp_path, root, root / "00", root / "01"] == fs.flushed
