"""A disk that fills up during gc, a rotation, an encryption or a repair: nothing is lost."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.engine.repair import plan_repair
from holdfast.errors import StoreUnwritable
from holdfast.store.keys.local import RootKey
from holdfast.store.rekey import clean, encrypt, rotate
from holdfast.store.seal.files import in_clear
from holdfast.store.seal.unlock import facts
from tests.engine.test_retain import forgetful
from tests.sealed import kit

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk of its own"),
]

FREE_KIB = (8, 120, 4000)
"""Too little to open, to go on; at last enough."""
RULES = holdfast.Retention(last=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with garbage in it, open as long as nobody encrypts it."""
    path = tmp_path_factory.mktemp("made") / "store"
    with holdfast.open(path) as store:
        store.run(forgetful, 30, id="run")
    return path


@contextlib.contextmanager
def disk(place: Path) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill(place: Path, free_kib: int) -> Path:
    filler = place / "filler"
    found = os.statvfs(place)
    size = found.f_bavail * found.f_frsize - free_kib * 1024
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(size, 1))
    return filler


def act(path: Path, what: str) -> None:
    if what == "repair":
        plan_repair(path).apply()
        return
    if what == "gc":
        with holdfast.open(path, key=kit.KEY) as store:
            store.gc(RULES)
        return
    key = kit.KEY if facts(path).is_encrypted else None
    with contextlib.closing(kit.opened(path, key, alone=True)) as found:
        if what == "rotate":
            rotate(found, kit.KEY, data=True)
        elif key is None:
            encrypt(found, kit.KEY)
        else:
            clean(found)


def newest(path: Path, key: RootKey | None) -> object:
    with holdfast.open(path, key=key or "") as store:
        return store.restore("run")[1]


def refusal(path: Path, what: str) -> str | None:
    """Why it could not be done; None if it was."""
    try:
        act(path, what)
    except StoreUnwritable as error:
        return str(error)
    return None


@pytest.mark.parametrize("what", ["gc", "rotate", "encrypt"])
def test_a_disk_that_is_full_is_named_and_the_act_goes_on_once_there_is_space(
    made: Path, tmp_path: Path, what: str
) -> None:
    before = None if what == "encrypt" else kit.KEY
    refused = 0
    for free in FREE_KIB:
        with disk(tmp_path / f"disk-{free}") as place:
            path = place / "store"
            shutil.copytree(made, path)
            if before is not None:
                act(path, "encrypt")
            state = newest(path, before)
            filler = fill(place, free)
            why = refusal(path, what)
            filler.unlink()
            if why is not None:
                assert "disk is full" in why
                found = kit.findings(path, kit.KEY if facts(path).is_encrypted else None)
                # Open files may be left of an encryption, and what removes them is said.
                assert [] == [
                    each for each in found if "`holdfast keys init` removes it" not in each
                ]
                assert what == "encrypt" or not found
                refused += 1
                act(path, what)

            assert [] == kit.findings(path)
            assert state == newest(path, kit.KEY)
            assert [] == list(in_clear(path))

    assert 0 < refused < len(FREE_KIB)


def flip(path: Path) -> None:
    """Damage the newest pack of a store."""
    with contextlib.closing(sqlite3.connect(path / "store.db")) as link, link:
        id_, body = link.execute("SELECT id, body FROM pack ORDER BY id DESC LIMIT 1").fetchone()
        changed = body[:-20] + bytes([body[-20] ^ 1]) + body[-19:]
        link.execute("UPDATE pack SET body=? WHERE id=?", (changed, id_))


def test_a_repair_on_a_full_disk_leaves_the_old_database_or_a_whole_new_one(
    tmp_path: Path,
) -> None:
    kit.fill(tmp_path / "made", None, runs=4, turns=30)
    flip(tmp_path / "made")
    refused, kept = 0, set()
    for free in (*range(160, 300, 20), 2500):
        with disk(tmp_path / f"disk-{free}") as place:
            path = place / "store"
            shutil.copytree(tmp_path / "made", path)
            filler = fill(place, free)
            why = refusal(path, "repair")
            filler.unlink()
            if why is not None:
                assert "disk is full" in why
                refused += 1
                act(path, "repair")

            assert [] == kit.findings(path, None)
            kept.add(len(kit.states(path, None)))

    assert 0 < refused
    assert 1 == len(kept)
