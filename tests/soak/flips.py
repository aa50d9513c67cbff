"""P10: every bit of a database, its log, its tail and a large value, flipped: `... soak.flips`.

A trial is the 4,096 bits of one sector. What a quick look explains is counted; what it does not
explain, and one in `JUDGED_IN_FULL` of the rest, is opened, restored point by point and verified.
"""

import contextlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import Damaged
from holdfast.store.backends.tail import NAME as TAIL
from holdfast.store.chain import Hashed
from holdfast.store.chunks import CHUNK_BYTES_MIN, Chunks
from tests.corruption.believed import believed, records
from tests.corruption.glance import Healthy, Look, healthy
from tests.corruption.poke import poked
from tests.corruption.scene import Scene, build
from tests.corruption.trial import Contents, Patient, Verdict, contents, judge
from tests.soak.part import Outcome, Part, Trial, main, memory

SECTOR = 512
JUDGED_IN_FULL = 512
"""Of flips that a quick look explains, one in so many is read in full all the same."""


class Store:
    """A copy of a store that is damaged and healed, and what it tells while it is healthy."""

    def __init__(self, source: Path, place: Path) -> None:
        self.patient = Patient(source, place)
        self.contents: Contents = contents(self.patient.path)
        self.patient.heal()
        self.known: Healthy = healthy(self.patient.path / "store.db")
        self.patient.heal()

    def judge(self, name: str, data: bytes) -> Verdict:
        """The store with this file in it, read in full."""
        self.patient.harm(name, data)
        verdict = judge(self.patient.path, self.contents)
        self.patient.heal()
        return verdict


class Database:
    """Bits of the database file."""

    def __init__(self, scene: Scene, folder: Path, seed: str, stack: contextlib.ExitStack) -> None:
        self._store, self._seed = Store(scene.closed, folder / "closed"), seed
        self.data = self._store.patient.data("store.db")
        self._poked = stack.enter_context(poked(self.data, folder / "poked.db", self._store.known))

    def sector(self, number: int) -> Outcome:
        """Every bit of one sector."""
        found = Outcome()
        chance = random.Random(f"{self._seed} database {number}")  # noqa: S311 a seed, not a secret
        for bit in _bits(self.data, number):
            look = self._poked.looks(bit)
            if look is Look.UNCLEAR or not chance.randrange(JUDGED_IN_FULL):
                verdict = self._store.judge("store.db", _flipped(self.data, bit))
                _add(found, "database", bit, verdict)
            else:
                found.counts["bits"] += 1
                found.counts["detected" if look is Look.LOUD else "unaffected"] += 1
        return found


class Log:
    """Bits of the write-ahead log. A log only chooses which pages count: same pages, same store."""

    def __init__(self, scene: Scene, folder: Path, stack: contextlib.ExitStack) -> None:
        self._store = Store(scene.killed, folder / "killed")
        patient = self._store.patient
        self.data = patient.data("store.db-wal")
        self._seen: dict[bytes, Verdict] = {}
        self._believed = stack.enter_context(
            believed(folder / "log", patient.data("store.db"), self.data)
        )

    def sector(self, number: int) -> Outcome:
        """Every bit of one sector."""
        found = Outcome()
        for bit in _bits(self.data, number):
            pages = self._believed.after(bit)
            if pages not in self._seen:
                judged = self._store.judge("store.db-wal", _flipped(self.data, bit))
                self._seen[pages] = judged
                found.counts["read in full"] += 1
            _add(found, "log", bit, self._seen[pages], is_full=False)
        return found


class Tail:
    """Bits of the tail. A tail only holds rows: the same records, same store."""

    def __init__(self, scene: Scene, folder: Path, seed: str) -> None:
        self._store, self._seed = Store(scene.killed, folder / "tail"), seed
        self.data = self._store.patient.data(TAIL)
        self._seen: dict[bytes, Verdict] = {}

    def sector(self, number: int) -> Outcome:
        """Every bit of one sector."""
        found, known = Outcome(), self._store.known
        chance = random.Random(f"{self._seed} tail {number}")  # noqa: S311 a seed, not a secret
        for bit in _bits(self.data, number):
            flipped = _flipped(self.data, bit)
            told = records(flipped, known.store_id, known.generation)
            is_full = told not in self._seen or not chance.randrange(JUDGED_IN_FULL)
            if is_full:
                self._seen[told] = self._store.judge(TAIL, flipped)
            _add(found, "tail", bit, self._seen[told], is_full=is_full)
        return found


class Held:
    """Large values in memory, one of which is damaged."""

    def __init__(self) -> None:
        self.data = bytearray()

    def put(self, id_: bytes, data: bytes) -> None:  # noqa: ARG002 there is one
        """Keep `data`."""
        self.data = bytearray(data)

    def get(self, id_: bytes) -> bytes | None:  # noqa: ARG002 there is one
        """The bytes as they are now, if there are any yet."""
        return bytes(self.data) or None


class Value:
    """Bits of a large value that does not compress, read as the library reads it."""

    def __init__(self, seed: str) -> None:
        self._held = Held()
        self._chunks = Chunks(self._held, Hashed(bytes(16)))  # type: ignore[arg-type]  # two of its methods are asked
        self._plain = random.Random(seed).randbytes(CHUNK_BYTES_MIN)  # noqa: S311 a seed, not a secret
        self._reference = self._chunks.keep(self._plain)
        self.data = bytes(self._held.data)

    def sector(self, number: int) -> Outcome:
        """Every bit of one sector."""
        found = Outcome()
        for bit in _bits(self.data, number):
            self._held.data[bit >> 3] ^= 1 << (bit & 7)
            verdict = Verdict()
            try:
                self._chunks.fetch(self._reference)
                verdict.wrong.append("it was read as if nothing had happened")
            except Damaged:
                verdict.loud.append("fetch")
            except Exception as error:  # noqa: BLE001 a foreign error is a finding
                verdict.wrong.append(f"{type(error).__name__}: {error}")
            self._held.data[bit >> 3] ^= 1 << (bit & 7)
            _add(found, "value", bit, verdict, is_full=False)
        return found


def _bits(data: bytes, number: int) -> range:
    return range(number * SECTOR * 8, min(len(data), (number + 1) * SECTOR) * 8)


def _flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit >> 3] ^= 1 << (bit & 7)
    return bytes(changed)


def _add(found: Outcome, file: str, bit: int, verdict: Verdict, *, is_full: bool = True) -> None:
    found.counts["bits"] += 1
    found.counts["read in full"] += is_full
    found.counts["detected" if verdict.loud else "unaffected"] += 1
    found.findings += [f"bit {bit} of the {file}: {each}" for each in verdict.wrong]


@contextlib.contextmanager
def trials(seed: str) -> Iterator[Trial]:
    """The sectors of the four files, one after the other."""
    with tempfile.TemporaryDirectory(dir=memory()) as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        scene = build(folder)
        files: list[Database | Log | Tail | Value] = [
            Value(seed),
            Tail(scene, folder, seed),
            Log(scene, folder, stack),
            Database(scene, folder, seed, stack),
        ]
        sectors = [(file, n) for file in files for n in range(-(-len(file.data) // SECTOR))]
        # In an order of chance, so that a few are a sample of all.
        random.Random(seed).shuffle(sectors)  # noqa: S311 a seed, not a secret

        def trial(number: int) -> Outcome | None:
            if number >= len(sectors):
                return None
            file, sector = sectors[number]
            return file.sector(sector)

        yield trial


PART = Part(
    id="P10",
    name="flips",
    what="Every bit of a database, its log, its tail, a large value: an error or no effect.",
    counted="bits",
    goal=1_900_000,
    trials=trials,
)

if __name__ == "__main__":
    raise SystemExit(main(PART))
