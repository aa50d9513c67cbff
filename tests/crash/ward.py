"""Nurseries side by side, uninterrupted runs to compare with, and a run for each list of deaths."""

import contextlib
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

import msgspec

import holdfast
from tests.crash import verdict
from tests.crash.nursery import COUNTED, FINISHED, STOPPED, Order
from tests.crash.outside import Outside
from tests.crash.trial import Death, Nursery, Tally, survive
from tests.crash.verdict import Reference
from tests.tidy.source import failpoints

WORKERS = 2

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Known:
    """An agent's uninterrupted run, and how often it reached each failpoint."""

    reference: Reference
    reached: dict[str, int]


class Ward:
    """Where runs are killed and cared for. Wards of one `shared` folder know what others found."""

    def __init__(self, folder: Path, workers: int = WORKERS, shared: Path | None = None) -> None:
        self._folder, self._number, self._workers = folder, count(1), workers
        self._shared = shared or folder
        self._nurseries = [Nursery() for _ in range(workers)]
        self._free: SimpleQueue[Nursery] = SimpleQueue()
        for nursery in self._nurseries:
            self._free.put(nursery)

    def place(self, agent: str) -> Path:
        """A new folder for one run."""
        place = self._folder / f"{next(self._number)}-{agent}"
        place.mkdir()
        return place

    def lend(self, use: Callable[[Nursery], T]) -> T:
        """Use a nursery that nobody else uses meanwhile."""
        nursery = self._free.get()
        try:
            return use(nursery)
        finally:
            self._free.put(nursery)

    def known(self, agent: str) -> Known:
        """What an uninterrupted run of the agent does."""
        place = self._counted(agent)
        return Known(reference=verdict.reference(Outside(place)), reached=_reached(place))

    def reached(self, agent: str, death: Death) -> dict[str, int]:
        """How often the life after `death` reaches what."""
        return _reached(self._counted(agent, death))

    def _counted(self, agent: str, *deaths: Death) -> Path:
        """Where a run died by each of `deaths` and its last life was counted, once for all."""
        place = self._shared / " ".join(["counted", agent, *map(str, deaths)])
        if not place.exists():
            counted = self._count(agent, self.place(agent), *deaths)
            with contextlib.suppress(OSError):  # Where another ward was first, its own is taken.
                counted.rename(place)
        return place

    def _count(self, agent: str, place: Path, *deaths: Death) -> Path:
        order = Order(agent=agent, place=str(place))
        counting = msgspec.structs.replace(order, count=sorted(set(failpoints())))

        def live(nursery: Nursery) -> None:
            for death in deaths:
                nursery.live(order, death)
            while STOPPED[holdfast.InDoubt] == (status := nursery.live(counting)):
                pass
            assert FINISHED == status

        self.lend(live)
        return place

    def try_all(self, agent: str, plans: Iterable[Sequence[Death]], *, retries: int = 0) -> Tally:
        """A run for each list of deaths, side by side."""
        expected = self.known(agent).reference

        def one(deaths: Sequence[Death]) -> Tally:
            place = self.place(agent)
            order = Order(agent=agent, place=str(place), retries=retries)
            tally = self.lend(lambda nursery: survive(nursery, order, deaths, expected))
            if not tally.findings:
                shutil.rmtree(place)
            return tally

        tally = Tally()
        with ThreadPoolExecutor(self._workers) as pool:
            for each in pool.map(one, plans):
                tally.add(each)
        return tally

    def close(self) -> None:
        """End every nursery."""
        for nursery in self._nurseries:
            nursery.close()


def _reached(place: Path) -> dict[str, int]:
    counted: dict[str, int] = json.loads((place / COUNTED).read_text(encoding="utf-8"))
    return {name: times for name, times in counted.items() if times}
