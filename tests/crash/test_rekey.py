"""Keys changed by a process that is killed, or whose disk is full: the old ones, or the new.

Never something between: after each death the store opens with one of the two keys, is whole, and
holds every state; and doing it again ends what was begun.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import HoldfastError
from holdfast.store.backends import slots
from holdfast.store.backends.tail import NAME as TAIL
from holdfast.store.keys.local import RootKey
from tests.crash.test_disk import _disk, _fill, needs_root
from tests.sealed import kit
from tests.unit.store.builders import seed_of

pytestmark = pytest.mark.crash

OLD, NEW = kit.KEY, kit.OTHER
ACTS: dict[str, tuple[RootKey | None, RootKey, list[str]]] = {
    "init": (None, OLD, ["--key", "file:{old}", "keys", "init"]),
    "rotate": (OLD, NEW, ["--key", "file:{old}", "keys", "rotate", "--new", "file:{new}"]),
    "data": (OLD, NEW, ["--key", "file:{old}", "keys", "rotate", "--new", "file:{new}", "--data"]),
}
"""Each act: the key before, the key after, the words."""
FAILPOINTS = {
    "init": [
        *("rekey.sealing:1", "rekey.sealed:2", "file.flushing:1", "file.named:2"),
        *("heads.forgetting:1", "heads.forgotten:1", "rekey.writing:1", "rekey.written:1"),
        *("store.emptying:1", "store.emptied:1", "rekey.removing:1", "rekey.removed:1"),
        *("rekey.removing:2", "store.closing:1", "tail.taking:1", "tail.taken:1"),
        *("tail.wiping:1", "tail.wiped:1"),
    ],
    "rotate": [
        *("rekey.wrapping:1", "rekey.wrapped:1", "store.emptying:1", "store.emptied:1"),
        *("tail.taking:1", "tail.taken:1", "tail.wiping:1", "tail.wiped:1"),
    ],
    "data": [
        *("heads.forgotten:1", "rekey.writing:1", "rekey.written:1", "store.emptied:1"),
        *("tail.wiping:1", "tail.wiped:1"),
    ],
}
DEATHS = [(act, death) for act, deaths in FAILPOINTS.items() for death in deaths]
FREE_KIB = [0, 64, 320, 900]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A store before each act, one that a kill left with rows in its tail, files with both keys."""
    folder = tmp_path_factory.mktemp("made")
    for act in ("init", "rotate"):
        kit.fill(folder / act, ACTS[act][0], runs=1, turns=5)
    shutil.copytree(folder / "rotate", folder / "data")
    for act, (key, *_) in ACTS.items():
        alive = shutil.copytree(folder / act, folder / f"{act} alive")
        kit.kill(alive, folder / f"{act} killed", key)
    for name, byte in (("old", b"k"), ("new", b"o")):
        (folder / name).write_text((byte * 32).hex())
        (folder / name).chmod(0o600)
    return {each.name: each for each in folder.iterdir()}


def call(made: dict[str, Path], store: Path, act: str, failpoint: str = "") -> int:
    words = [word.format(old=made["old"], new=made["new"]) for word in ACTS[act][2]]
    env = {**os.environ, "HOLDFAST_STORE": str(store)}
    env |= {"HOLDFAST_FAILPOINT": failpoint} if failpoint else {}
    command = [sys.executable, "-m", "holdfast", *words]
    return subprocess.run(
        command, env=env, check=False, timeout=120, capture_output=True
    ).returncode


def key_in_force(store: Path, act: str) -> RootKey | None:
    """The one key that opens the store."""
    opening = []
    for key in ACTS[act][:2]:
        try:
            kit.opened(store, key).close()
        except HoldfastError:
            continue
        opening.append(key)
    [found] = opening
    return found


@pytest.mark.parametrize(("act", "death"), DEATHS)
def test_a_killed_change_of_keys_left_the_old_ones_or_the_new(
    made: dict[str, Path], tmp_path: Path, act: str, death: str
) -> None:
    store = Path(shutil.copytree(made[f"{act} killed"], tmp_path / "store"))
    before, after, _ = ACTS[act]
    expected = kit.states(store, before)
    tail = (store / TAIL).read_bytes()
    seed = seed_of(store)
    assert slots.read(tail, seed, slots.newest(tail, seed)).rows

    killed = call(made, store, act, death)

    assert -9 == killed
    found = key_in_force(store, act)
    assert expected == kit.states(store, found)
    assert [] == [each for each in kit.findings(store, found) if "in a store that is" not in each]
    if found == before or act == "init":
        assert 0 == call(made, store, act)
    assert after == key_in_force(store, act)
    assert expected == kit.states(store, after)
    assert [] == kit.findings(store, after)
    assert [] == kit.found_in(store, *kit.WORDS)


@needs_root
@pytest.mark.parametrize("act", ACTS)
def test_a_full_disk_leaves_the_old_keys_until_there_is_space(
    made: dict[str, Path], tmp_path: Path, act: str
) -> None:
    before, after, _ = ACTS[act]
    expected, refused = kit.states(made[act], before), 0
    for free in FREE_KIB:
        with _disk(tmp_path / "disk") as disk:
            store = Path(shutil.copytree(made[act], disk / "store"))
            filler = _fill(disk, free * 1024)

            status = call(made, store, act)

            filler.unlink()
            found = key_in_force(store, act)
            assert expected == kit.states(store, found), free
            if status:
                refused += 1
                assert (1, before) == (status, found), free
                assert 0 == call(made, store, act)
            assert after == key_in_force(store, act)
            assert [] == kit.findings(store, after)
            assert [] == kit.found_in(store, *kit.WORDS)
        shutil.rmtree(tmp_path / "disk")
    assert 0 < refused < len(FREE_KIB)
