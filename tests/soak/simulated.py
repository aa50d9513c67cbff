"""P1: every disk that a power cut may leave, at every act on files: `... tests.soak.simulated`.

A trial is a seed. It saves, forks, rolls back, collects garbage, encrypts, rotates keys and is
killed, over `SimFs`, with SQLite and the tail beside it as cells whose commits are all or nothing
(P2 looks at those with their real files). At every act and commit each disk that a power cut may
leave is looked at: whatever a committed row names is there and whole, no name stands over torn
bytes, and an encrypted store holds nothing in clear. Some of the disks are put in place, verified
by the library, compared with a model of what was saved, and gone on with.
"""

import contextlib
import gc
import random
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from unittest.mock import patch

import holdfast
from holdfast import failpoint
from holdfast.clock import SystemClock
from holdfast.errors import HoldfastError
from holdfast.store import open as opening
from holdfast.store import rekey
from holdfast.store.codec.frame import is_sealed as says_sealed
from holdfast.store.gc.objects import Named
from holdfast.store.keys.local import RootKey
from holdfast.store.open import open_store
from holdfast.store.verify import verify
from tests.corruption.scene import small_parts
from tests.sealed import kit
from tests.soak.part import Outcome, Part, Trial, main, memory
from tests.soak.simfs import WHOLE, Died, Disk, Known, SimFs
from tests.tidy.source import failpoints

TEXTS = 48
"""Few enough that runs share some, and that what was garbage is named again."""
ACTS_MAX = 9
DISKS_MAX = 4096
"""So many disks are looked at behind one act."""
COMPARED = 2
"""Of each run so many points are restored after a power cut; all of their bytes are verified."""


def text(number: int) -> str:
    """A value that is kept as a file of its own."""
    return f"{number:04d}" * 16_500


def text_of(seed: int, turn: int) -> str:
    """Which text a run saves in a turn."""
    return text((seed * 7 + turn * 5) % TEXTS)


@holdfast.step
def ponder(seed: int, turn: int) -> str:
    return f"thought {seed} {turn}"


@holdfast.agent(checkpoint=holdfast.every(turns=1))
def saver(run: holdfast.Run, seed: int, turns: int) -> int:
    """Saves a large value in every turn."""
    run.state["seen"] = []
    for turn in run.turns():
        run.state["seen"].append(ponder(seed, turn))
        run.state["text"] = text_of(seed, turn)
        if turn + 1 == turns:
            return turns
    raise AssertionError


@cache
def points() -> frozenset[str]:
    """Every crash point of the library: behind some of them something was committed."""
    return frozenset(failpoints())


def _unless_died(told: "sys.UnraisableHookArgs") -> None:
    """What a killed run tries at its end does not happen, and that is no news."""
    if told.exc_type is not Died:
        sys.__unraisablehook__(told)


class Simulation:
    """One seed: a store over `SimFs`, and what every power cut would leave of it."""

    def __init__(self, folder: Path, seed: str) -> None:
        self._path, self._chance = folder / "store", random.Random(seed)  # noqa: S311 a seed, not a secret
        self._drawn = random.Random(f"{seed} disks")  # noqa: S311 a seed, not a secret
        self.fs = SimFs(self._explore)
        self.outcome = Outcome()
        self._store: holdfast.Store | None = None
        self._version = (0, 0, 0)
        self._needed: frozenset[str] | None = frozenset()
        self._later: list[tuple[Known, bool]] = []
        self._runs: dict[str, int] = {}
        self._key: RootKey | None = None
        self._is_sealed = False

    def run(self) -> Outcome:
        """Some acts, each followed by every crash."""
        with (
            small_parts(),
            patch.object(opening, "RealFs", lambda: self.fs),
            patch.object(sys, "unraisablehook", _unless_died),
        ):
            for name in points():
                failpoint.arm(name, self._look)
            failpoint.arm("rekey.written", self._forget)
            try:
                self._live()
            except HoldfastError as error:
                self.outcome.findings.append(f"{type(error).__name__}: {error}")
            finally:
                failpoint.disarm()
                gc.collect()  # What a killed run would do at its end cannot happen later.
        return self.outcome

    def _live(self) -> None:
        self._open()
        self._save()
        for _ in range(self._chance.randrange(3, ACTS_MAX)):
            act = self._chance.choice(self._acts())
            if self._chance.random() < 0.3:
                self.fs.dies_at = self.fs.acts + self._chance.randrange(1, 12)
            try:
                act()
            except Died:
                self._leave()
                self.fs.revive()
                self.outcome.counts["kills"] += 1
                self._open()
            self.fs.dies_at = None
            if self._chance.random() < 0.3:
                self._cut()
        self._cut()
        self._leave()

    def _acts(self) -> list[Callable[[], object]]:
        acts = [
            self._save,
            self._save,
            self._fork,
            self._roll_back,
            self._gc,
            self._gc,
            self._orphan,
        ]
        return [*acts, self._reopen, self._rekey]

    @property
    def _open_store(self) -> holdfast.Store:
        assert self._store is not None
        return self._store

    def _open(self) -> None:
        self._store = holdfast.open(self._path, key=self._key)
        self._look(is_anew=True)
        for known, is_sealed in self._later:
            self._look_at(known, is_sealed=is_sealed)
        self._later.clear()

    def _leave(self) -> None:
        """As a killed process leaves it: nothing more is committed or flushed."""
        self._open_store._after_fork()  # noqa: SLF001 what a child does with its parent's store
        self._store = None

    def _reopen(self) -> None:
        self._open_store.close()
        self._open()

    def _save(self) -> None:
        seed = self._chance.randrange(TEXTS)
        id_ = f"run-{len(self._runs)}"
        self._runs[id_] = seed
        self._open_store.run(saver, seed, self._chance.randrange(2, 9), id=id_)

    def _any(self) -> tuple[str, str] | None:
        """A point of a run, if there is any."""
        points = [
            (run.id, point.id)
            for run in self._open_store.runs()
            for point in self._open_store.checkpoints(run.id)
        ]
        return self._chance.choice(points) if points else None

    def _fork(self) -> None:
        if found := self._any():
            new = f"run-{len(self._runs)}"
            self._runs[new] = self._runs[found[0]]
            self._open_store.fork(found[0], at=found[1], new_id=new)
            self._open_store.restart(new, agent=saver)

    def _roll_back(self) -> None:
        if found := self._any():
            with contextlib.suppress(holdfast.UsageError):
                self._open_store.plan_rollback(found[0], to=found[1]).apply()
            self._open_store.restart(found[0], agent=saver)

    def _gc(self) -> None:
        rules = holdfast.Retention(last=1, runs_last=self._chance.randrange(1, 3))
        self._open_store.gc(rules)

    def _orphan(self) -> None:
        """A writer keeps a value and dies before it is named."""
        kept = text(self._chance.randrange(TEXTS)).encode() * 2
        self._open_store._opened.chunks.keep(kept)  # noqa: SLF001 no public way in

    def _rekey(self) -> None:
        self._open_store.close()
        opened = open_store(self._path, SystemClock(), key=self._key, alone=True)
        try:
            if self._key is None:
                rekey.encrypt(opened, kit.KEY)
            else:
                rekey.rotate(opened, kit.KEY, data=True)
                rekey.clean(opened)
        except Died:
            opened.abandon()
            self._store = None
            with contextlib.suppress(HoldfastError):
                open_store(self._path, SystemClock(), key=kit.KEY, must_exist=True).abandon()
                self._key = kit.KEY
            self.fs.revive()
            self.outcome.counts["kills"] += 1
            self._open()
            return
        self._key, self._is_sealed = kit.KEY, True
        opened.close()
        self._open()

    def _cut(self) -> None:
        """Put one of the disks in place, look at it with the library, and go on with it."""
        disks = list(self.fs.known.disks(self._drawn))
        disk = disks[self._chance.randrange(len(disks))]
        self._leave()
        self.fs.cut_power(disk, self._path / "objects")
        self.outcome.counts["power cuts"] += 1
        self._open()
        store = self._open_store
        found = verify(store._opened, deep=True).findings  # noqa: SLF001 no public way in
        self.outcome.findings += [f"after a power cut {each.where}: {each.why}" for each in found]
        for run in store.runs():
            points = store.checkpoints(run.id, every_turn=True)
            for point in self._chance.sample(points, min(len(points), COMPARED)):
                self._compare(run.id, point.turn, store.restore(point.id)[1])

    def _compare(self, id_: str, turn: int | None, state: dict[str, object]) -> None:
        seed = self._runs[id_]
        self.outcome.counts["states compared"] += 1
        seen = [f"thought {seed} {n}" for n in range((turn or 0) + 1)]
        expected = {"seen": seen, "text": text_of(seed, turn or 0)}
        # Besides, a run that was rolled back is told so in a section of its own.
        if state and {name: state.get(name) for name in expected} != expected:
            self.outcome.findings.append(
                f"{id_} turn {turn} is {str(state)[-80:]}, not {str(expected)[-80:]}"
            )

    def _look(self, *, is_anew: bool = False) -> None:
        """After a commit, other values are needed; then every crash is looked at again."""
        if self._store is None or (self._needed is None and not is_anew):
            return
        opened = self._store._opened  # noqa: SLF001 no public way in
        if opened.records._fault is not None:  # noqa: SLF001 it is being closed
            return
        try:
            ((count,),) = opened.records._reader.execute("PRAGMA data_version")  # noqa: SLF001 the reading connection
        except sqlite3.ProgrammingError:
            return
        tail = opened.records._tail  # noqa: SLF001 what is committed beside the database
        version = count, tail.generation, len(tail.rows())
        if version == self._version and not is_anew:
            return
        self._version, named = version, Named(opened)
        named.read_on()
        needed = frozenset(name.hex() for name in named.names)
        if needed != self._needed:
            self._needed = needed
            self._explore()

    def _forget(self) -> None:
        """What is needed is not known until the store is opened with its new keys."""
        self._needed = None

    def _explore(self) -> None:
        if self._needed is None:
            self._later.append((self.fs.known.copy(), self._is_sealed))
        else:
            self._look_at(self.fs.known, is_sealed=self._is_sealed)

    def _look_at(self, known: Known, *, is_sealed: bool) -> None:
        needed, count = self._needed or frozenset(), 0
        for disk in islice(known.disks(self._drawn), DISKS_MAX):
            count += 1
            if fault := self._fault(disk, needed, is_sealed=is_sealed):
                self.outcome.findings.append(fault)
        self.outcome.counts["disks"] += count

    def _fault(self, disk: Disk, needed: frozenset[str], *, is_sealed: bool) -> str:
        """What is wrong with a disk, in words; mostly nothing."""
        names = {path.name for path in disk.files}
        if not needed <= names:
            return f"{min(needed - names)[:12]} is named by a row and not there"
        if disk.harm:
            for path, file in disk.files.items():
                if disk.harm.get(file, WHOLE) != WHOLE and not path.name.endswith(".part"):
                    return f"{path.name[:12]} is there and torn"
        if is_sealed:
            for path, file in disk.files.items():
                if not says_sealed(self.fs.data[file]):
                    return f"{path.name[:12]} is in clear in an encrypted store"
        return ""


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:
    """A store in memory for each number."""

    def trial(number: int) -> Outcome:
        with tempfile.TemporaryDirectory(dir=memory()) as folder:
            outcome = Simulation(Path(folder), f"{seed} {number}").run()
        outcome.counts["seeds"] += 1
        return outcome

    yield trial


PART = Part(
    id="P1",
    name="simulated",
    what="Disks that a simulated power cut may leave, at every act on files.",
    counted="disks",
    goal=1_000_000,
    trials=trials,
)

if __name__ == "__main__":
    raise SystemExit(main(PART))
