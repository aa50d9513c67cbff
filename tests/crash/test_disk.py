"""A full, read-only or limited disk: one clear error, nothing lost, and the run goes on."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.testing.kill import Failpoint
from tests.crash.nursery import FINISHED, STOPPED, STORE, Order
from tests.crash.outside import Outside
from tests.crash.trial import Nursery, Tally, survive
from tests.crash.ward import Ward

KIB = 1024
DISK_KIB = 8 * KIB
FREE_KIB = [0, 4, 8, 16, 24, 40, 64, 96, 160, 320, 640, 1280, 2000, 2100, 2200, 2300, 2400, 4000]
"""How much of the disk is free: too little to open, to begin, to go on, to end; at last enough."""
NOBODY = 65534
CREATED = Failpoint(name="run.created")
UNWRITABLE = STOPPED[holdfast.StoreError]

pytestmark = pytest.mark.crash
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk of its own")
each_agent = pytest.mark.parametrize("agent", ["probed", "large", "mixed"])


@needs_root
@pytest.mark.parametrize("deaths", [[], [CREATED]], ids=["before the run", "during the run"])
@each_agent
def test_a_run_whose_disk_is_full_goes_on_once_there_is_space(
    ward: Ward, count: Callable[[Tally], None], agent: str, deaths: list[Failpoint]
) -> None:
    tally = Tally()
    for free in FREE_KIB:
        order = Order(agent=agent, place=str(ward.place(agent)))
        with _disk(Path(order.place, STORE)) as disk:
            for death in deaths:
                ward.lend(lambda nursery: nursery.live(order, death))  # noqa: B023 used at once
            filler = _fill(disk, free * KIB)
            tally.add(_try(ward, order, order, filler.unlink))

    count(tally)
    assert [] == tally.findings
    assert tally.faults < len(FREE_KIB)
    # A run that has begun has all the space it needs, unless it makes files of its own.
    assert tally.faults or (deaths and agent != "large")


@each_agent
def test_a_run_whose_files_may_not_grow_goes_on_once_they_may(
    ward: Ward, count: Callable[[Tally], None], agent: str
) -> None:
    tally = Tally()
    for free in FREE_KIB[2:]:
        order = Order(agent=agent, place=str(ward.place(agent)))
        limited = Order(agent=agent, place=order.place, file_bytes_max=free * KIB)
        tally.add(_try(ward, limited, order, lambda: None))

    count(tally)
    assert [] == tally.findings
    assert 0 < tally.faults < len(FREE_KIB)


@needs_root
def test_a_run_on_a_disk_that_became_read_only_goes_on_once_it_is_writable(
    ward: Ward, count: Callable[[Tally], None]
) -> None:
    order = Order(agent="probed", place=str(ward.place("probed")))
    with _disk(Path(order.place, STORE)) as disk:
        killed = Failpoint(name="effect.called", nth=2)
        ward.lend(lambda nursery: nursery.live(order, killed))
        _mount("-o", "remount,ro", str(disk))

        tally = _try(ward, order, order, lambda: _mount("-o", "remount,rw", str(disk)))

    count(tally)
    assert [] == tally.findings
    assert 1 == tally.faults


@needs_root
def test_a_store_cannot_be_made_on_a_read_only_disk(tmp_path: Path) -> None:
    with _disk(tmp_path) as disk:
        _mount("-o", "remount,ro", str(disk))

        with pytest.raises(holdfast.StoreUnwritable, match="read-only"):
            holdfast.open(disk / "new" / STORE)


def test_a_directory_that_the_user_may_not_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with (
        _as_anybody(),
        pytest.raises(holdfast.StoreUnwritable, match=r"permission denied|not writable"),
    ):
        holdfast.open(tmp_path / STORE)


def test_a_file_where_the_store_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / STORE).write_text("not a store")

    with pytest.raises(holdfast.StoreUnwritable, match="there is a file"):
        holdfast.open(tmp_path / STORE)


def _try(ward: Ward, worse: Order, better: Order, mend: Callable[[], object]) -> Tally:
    """Live where it is `worse`; mend that; live on and be judged."""
    expected = ward.known(better.agent).reference

    def live(nursery: Nursery) -> Tally:
        status = nursery.live(worse)
        log = Outside(Path(worse.place)).log()
        mend()
        tally = survive(nursery, better, [], expected)
        if status != FINISHED and (status, log[-1].kind) != (UNWRITABLE, "StoreUnwritable"):
            tally.broken.append(f"{worse} ended with {status} after {log[-1]}")
        return tally

    return ward.lend(live)


@contextlib.contextmanager
def _as_anybody() -> Iterator[None]:
    """Without the rights of root, where the tests run as root."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def _fill(disk: Path, free: int) -> Path:
    """A file that leaves `free` bytes of the disk."""
    filler, space = disk / ".filler", os.statvfs(disk)
    filler.write_bytes(bytes(max(0, space.f_bavail * space.f_frsize - free)))
    return filler


@contextlib.contextmanager
def _disk(place: Path) -> Iterator[Path]:
    """A small disk of its own, mounted at `place`."""
    place.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={DISK_KIB}k", "tmpfs", str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)
