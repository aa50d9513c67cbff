"""P5: power cuts of real file systems, ext4 and xfs on a loop device: `python -m tests.soak.cuts`.

A trial runs an agent whose store is a file system of its own, kills it at a failpoint drawn by the
seed, and shuts the file system down without letting it flush its log. Then it is mounted again, as
after a power cut, the run goes on to its end and is judged by what the world saw.
"""

import contextlib
import fcntl
import os
import random
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from holdfast.testing.kill import Failpoint
from tests.crash.agents import WRITING
from tests.crash.nursery import STORE, Order
from tests.crash.trial import Nursery, Tally, survive
from tests.crash.ward import Ward
from tests.soak.kills import counted
from tests.soak.part import Outcome, Part, Trial, main, memory

KINDS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}
BYTES = 320 * 1024 * 1024
SHUT_DOWN, WITHOUT_FLUSH = 0x8004587D, 2
"""The call that ends a file system at once, and how: its log is not flushed either."""
AGENTS = tuple(name for name in WRITING if name != "threads")


class FileSystem:
    """A file system in a file, mounted where a store should be."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self._image = kind, folder / f"{kind}.image"
        with self._image.open("wb") as file:
            file.truncate(BYTES)
        _do(*KINDS[kind], str(self._image))
        found = _do("losetup", "-f", "--show", str(self._image))
        self._device = found.strip()

    @contextlib.contextmanager
    def mounted(self, place: Path) -> Iterator[None]:
        """Mounted for a while, and empty at first."""
        place.mkdir(exist_ok=True)
        self._mount(place)
        try:
            for left in place.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            _do("sync", "-f", str(place))  # What an earlier trial left is not this one's to lose.
            yield
        finally:
            _do("umount", str(place))

    def _mount(self, place: Path) -> None:
        _do("mount", "-t", self.kind, self._device, str(place))

    def cut(self, place: Path) -> None:
        """Lose whatever was not flushed."""
        fd = os.open(place, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUT_DOWN, struct.pack("I", WITHOUT_FLUSH))
        finally:
            os.close(fd)
        _do("umount", str(place))
        self._mount(place)

    def close(self) -> None:
        """Give the device back."""
        _do("losetup", "-d", self._device)


def _do(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def cut_once(file_system: FileSystem, ward: Ward, agent: str, death: Failpoint) -> Tally:
    """One life, its death, the power cut, and the lives after it."""
    place = ward.place(agent)
    order = Order(agent=agent, place=str(place))
    expected = ward.known(agent).reference

    def live(nursery: Nursery) -> Tally:
        with file_system.mounted(place / STORE):
            nursery.live(order, death)
            file_system.cut(place / STORE)
            return survive(nursery, order, [], expected)

    tally = ward.lend(live)
    tally.broken = [f"{file_system.kind}, cut at {death}: {each}" for each in tally.broken]
    shutil.rmtree(place)
    return tally


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:
    """The file systems in turn, the agents in turn."""
    with tempfile.TemporaryDirectory(dir=memory()) as name, contextlib.ExitStack() as stack:
        systems = [FileSystem(kind, Path(name)) for kind in KINDS if is_there(kind)]
        for system in systems:
            stack.callback(system.close)
        ward = Ward(Path(name), workers=1)
        stack.callback(ward.close)

        def trial(number: int) -> Outcome:
            chance = random.Random(f"{seed} {number}")  # noqa: S311 a seed, not a secret
            system = systems[number % len(systems)]
            agent = AGENTS[number // len(systems) % len(AGENTS)]
            point, times = chance.choice(sorted(ward.known(agent).reached.items()))
            death = Failpoint(name=point, nth=chance.randint(1, times))
            outcome = counted(cut_once(system, ward, agent, death))
            outcome.counts.update({"power cuts": 1, system.kind: 1, "kills": 1})
            return outcome

        yield trial


def is_there(kind: str) -> bool:
    """Whether this machine can make such a file system."""
    return shutil.which(KINDS[kind][0]) is not None


def missing() -> str:
    """Why this machine cannot try it."""
    if os.geteuid() != 0:
        return "only root may mount a file system"
    if not Path("/dev/loop-control").exists():
        return "there are no loop devices"
    return "neither mkfs.ext4 nor mkfs.xfs is installed" if not any(map(is_there, KINDS)) else ""


PART = Part(
    id="P5",
    name="cuts",
    what="Power cuts of ext4 and xfs: what was not flushed is lost, then the run goes on.",
    counted="power cuts",
    goal=600,
    trials=trials,
    missing=missing,
)

if __name__ == "__main__":
    raise SystemExit(main(PART))
