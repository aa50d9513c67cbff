"""Where an embedded store may live."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import StoreUnwritable, Unsupported
from holdfast.store.backends.fs import RealFs
from holdfast.store.backends.place import file_system, holds_file, prepare, unwritable

MOUNTS = """\
22 27 0:20 / /proc rw,nosuid - proc proc rw
30 27 0:40 / {root}/share rw shared:5 - nfs4 server:/export rw
31 30 254:1 / {root}/share/local\\040disk rw - xfs /dev/disk rw
32 27 0:41 / {root}/win rw - cifs //server/share rw
33 27 0:42 / {root}/sh rw - tmpfs tmpfs rw
34 27 0:43 / {root}/twice rw - ext4 /dev/a rw
35 27 0:44 / {root}/twice rw - fuse.sshfs me@there: rw
27 1 254:0 / / rw,relatime - ext4 /dev/root rw
a line that says nothing
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTS.format(root=tmp_path.resolve()))
    return file


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("share", "nfs4"),
        ("share/deep/er", "nfs4"),
        ("share/local disk/store", "xfs"),
        ("shared", "ext4"),
        ("sh/store", "tmpfs"),
        ("win/store", "cifs"),
        ("twice/store", "fuse.sshfs"),
        ("elsewhere", "ext4"),
        ("share/../elsewhere", "ext4"),
    ],
)
def test_the_file_system_of_a_place_is_that_of_the_mount_it_lies_on(
    tmp_path: Path, mounts: Path, place: str, kind: str
) -> None:
    assert kind == file_system(tmp_path / place, mounts)


def test_a_link_is_followed_to_the_file_system_it_leads_to(tmp_path: Path, mounts: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "share")

    assert "nfs4" == file_system(tmp_path / "link" / "store", mounts)


def test_a_system_that_lists_no_mounts_says_nothing(tmp_path: Path) -> None:
    assert "" == file_system(tmp_path, tmp_path / "no such file")


@pytest.mark.parametrize("place", ["share/store", "win/store", "twice/store"])
def test_a_network_file_system_is_refused_and_nothing_is_made(
    tmp_path: Path, mounts: Path, place: str
) -> None:
    with pytest.raises(Unsupported, match="is a network file system; put the store on a local"):
        prepare(tmp_path / place, mounts)

    assert not (tmp_path / place).exists()


def test_a_directory_is_made_with_its_parents(tmp_path: Path, mounts: Path) -> None:
    prepare(tmp_path / "a" / "b", mounts)
    prepare(tmp_path / "a" / "b", mounts)

    assert (tmp_path / "a" / "b").is_dir()


def test_windows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        with pytest.raises(Unsupported, match="Windows"):
            prepare(tmp_path / "store")

    assert not (tmp_path / "store").exists()


def test_on_windows_holdfast_can_be_imported_to_be_refused_clearly(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "sys.modules['fcntl'] = None\n"
        "import holdfast\n"
        "sys.platform = 'win32'\n"
        "try:\n"
        "    holdfast.open(sys.argv[1])\n"
        "except holdfast.errors.Unsupported as error:\n"
        "    print(error)\n"
    )

    child = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "store"],
        check=True,
        capture_output=True,
        text=True,
    )

    assert child.stdout.startswith("Windows: ")


def test_a_file_in_the_place_of_the_directory_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    for place in (tmp_path / "file", tmp_path / "file" / "store"):
        with pytest.raises(StoreUnwritable, match=r"there is a file where .*; give a path that"):
            prepare(place)


def test_a_directory_that_cannot_be_written_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)

    with pytest.raises(StoreUnwritable, match="not writable for this user; give a path that"):
        prepare(tmp_path)


def test_a_directory_that_this_user_may_not_look_into_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)

    with pytest.raises(StoreUnwritable, match="permission denied; give a path that"):
        holds_file(tmp_path, "store.db")


@pytest.mark.parametrize(
    ("error", "words", "remedy"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no space left on device", "free space"),
        (PermissionError(errno.EACCES, "Denied", "a/b"), "a/b: denied", "give a path"),
        (OSError(errno.EROFS, "Read-only file system"), "read-only file system", "give a path"),
        (OSError(errno.ENOENT, "No such file"), "no such file", "give a path"),
        (OSError(errno.EMFILE, "Too many open files"), "too many open files", "close files"),
        (OSError("odd"), "odd", "free space"),
    ],
)
def test_what_the_system_refused_is_told_in_words(error: OSError, words: str, remedy: str) -> None:
    told = unwritable(Path("store"), error)

    assert words == told.why
    assert f"{words}; {remedy}" in str(told)


def test_every_directory_made_for_a_store_is_flushed_into_the_one_that_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(RealFs, "flush_directory", lambda _fs, path: flushed.append(path))

    prepare(tmp_path / "a" / "b")
    prepare(tmp_path / "a" / "b")
    (tmp_path / "a" / "b" / "store.db").touch()
    prepare(tmp_path / "a" / "b")

    # Made and flushed; flushed again, since who made it may have died before; then in use.
    assert [tmp_path, tmp_path / "a", tmp_path / "a"] == flushed
