"""Every way to damage a small store, tried: `python -m tests.corruption.matrix`.

All of it takes some 40 minutes of one core; `--share 0.01` draws a hundredth by a seed. Each line
says what was damaged, how often, and what came of it.
"""

import argparse
import hashlib
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path

from holdfast.store.backends import slots
from holdfast.store.backends.tail import NAME as TAIL
from tests.corruption.believed import believed, records
from tests.corruption.glance import Healthy, Look, glance, healthy
from tests.corruption.poke import poked
from tests.corruption.scene import Scene, build
from tests.corruption.trial import Contents, Patient, Tally, Verdict, contents, judge

SECTOR = 512
JUDGED_IN_FULL = 64
"""Of flips that a glance explains, one in so many is read in full all the same."""

Harm = tuple[str, Callable[[], bytes | None]]
"""What was done, and how to get what the file then holds (None: it is gone)."""


def bits(data: bytes) -> Iterator[Harm]:
    """Every bit flipped."""

    def flipped(place: int) -> bytes:
        changed = bytearray(data)
        changed[place >> 3] ^= 1 << (place & 7)
        return bytes(changed)

    for place in range(len(data) * 8):
        yield f"bit {place}", partial(flipped, place)


def cuts(data: bytes) -> Iterator[Harm]:
    """Every length that is too short, and one byte too many."""

    def cut(end: int) -> bytes:
        return data[:end]

    for end in range(len(data)):
        yield f"cut at {end}", partial(cut, end)
    yield "one byte longer", lambda: data + b"\x00"
    yield "removed", lambda: None


def sectors(data: bytes, size: int = SECTOR) -> Iterator[Harm]:
    """Every sector zeroed, written over the next one, or swapped with every other."""
    parts = [data[at : at + size] for at in range(0, len(data), size)]

    def with_parts(changes: dict[int, bytes]) -> bytes:
        return b"".join(changes.get(n, part) for n, part in enumerate(parts))

    for n, part in enumerate(parts):
        yield f"sector {n} zeroed", partial(with_parts, {n: bytes(len(part))})
        if n + 1 < len(parts):
            yield f"sector {n} doubled", partial(with_parts, {n + 1: part})
    for a, b in combinations(range(len(parts)), 2):
        yield f"sectors {a} and {b} swapped", partial(with_parts, {a: parts[b], b: parts[a]})


LOCK = "lock"
FILES: dict[str, tuple[str, str, Callable[[bytes], Iterator[Harm]]]] = {
    "cuts of the database": ("closed", "store.db", cuts),
    "sectors of the database": ("closed", "store.db", sectors),
    "cuts of the log": ("killed", "store.db-wal", cuts),
    "sectors of the log": ("killed", "store.db-wal", sectors),
    "bits of the tail": ("killed", TAIL, bits),
    "cuts of the tail": ("killed", TAIL, cuts),
    "sectors of the tail": ("killed", TAIL, sectors),
    "slots of the tail": ("killed", TAIL, partial(sectors, size=slots.SLOT)),
    "bits of the head note": ("closed", "heads", bits),
    "cuts of the head note": ("closed", "heads", cuts),
    "bits of the beats": ("closed", "beats", bits),
    "bits of the lock": ("killed", LOCK, bits),
}
"""Part of the matrix → store, file, and what is done to it."""
BITS_OF_DATABASE = "bits of the database"
BITS_OF_LOG = "bits of the log"
GENERATION = "generation of the tail"
TABLES = ("run", "branch", "j", "pack", "effect", "meta")


class Matrix:
    """One damaged copy after the other; `part` of them are tried, chosen by `chance`."""

    def __init__(self, scene: Scene, place: Path) -> None:
        self._scene, self._place = scene, place
        self._known: dict[str, tuple[Patient, Contents, Healthy]] = {}
        self._seen: dict[bytes, Verdict] = {}

    def parts(self) -> list[str]:
        """The names of what can be tried."""
        return [BITS_OF_DATABASE, BITS_OF_LOG, *FILES, GENERATION, "objects", "rows"]

    def run(self, part: str, share: float, seed: str) -> Tally:
        """Try a share of one part."""
        chance = random.Random(f"{seed} {part}")  # noqa: S311 a seed, not a secret
        tally = Tally()
        if part == "rows":
            self._rows(tally, share, chance)
        elif part == BITS_OF_DATABASE:
            self._database_bits(tally, share, chance)
        elif part == BITS_OF_LOG:
            self._log_bits(tally, share, chance)
        elif part == GENERATION:
            self._generations(tally, share, chance)
        elif part == "objects":
            self._objects(tally, share, chance)
        else:
            which, name, harms = FILES[part]
            patient = self.store(which)[0]
            for how, harmed in harms(patient.data(name)):
                if chance.random() < share:
                    verdict = self._look(which, name, harmed(), chance)
                    tally.add(f"{part}, {how}", verdict)
        return tally

    def _database_bits(self, tally: Tally, share: float, chance: random.Random) -> None:
        """Most flips are seen through on one open connection, a thousand in a second."""
        patient, expected, known = self.store("closed")
        data = patient.data("store.db")
        with poked(data, self._place / "poked.db", known) as held:
            for bit, (how, harmed) in enumerate(bits(data)):
                if chance.random() >= share:
                    continue
                look = held.looks(bit)
                if look is Look.UNCLEAR or chance.random() * JUDGED_IN_FULL <= 1:
                    patient.harm("store.db", harmed())
                    verdict = judge(patient.path, expected)
                    patient.heal()
                else:
                    verdict = Verdict(loud=["glance"] if look is Look.LOUD else [])
                tally.add(f"{BITS_OF_DATABASE}, {how}", verdict)

    def _log_bits(self, tally: Tally, share: float, chance: random.Random) -> None:
        """Flips after which SQLite believes the same part of the log are one store."""
        patient, expected, _ = self.store("killed")
        data = patient.data("store.db-wal")
        seen: dict[bytes, Verdict] = {}
        with believed(self._place / "log", patient.data("store.db"), data) as held:
            for bit, (how, harmed) in enumerate(bits(data)):
                if chance.random() >= share:
                    continue
                pages = held.after(bit)
                if pages not in seen:
                    patient.harm("store.db-wal", harmed())
                    seen[pages] = judge(patient.path, expected)
                    patient.heal()
                tally.add(f"{BITS_OF_LOG}, {how}", seen[pages])

    def _look(self, which: str, name: str, harmed: bytes | None, chance: random.Random) -> Verdict:
        patient, expected, known = self.store(which)
        if which == "killed":
            told = self._told(patient, name, harmed)
            if told not in self._seen or chance.random() * JUDGED_IN_FULL <= 1:
                patient.harm(name, harmed)
                self._seen[told] = judge(patient.path, expected)
                patient.heal()
            return self._seen[told]
        patient.harm(name, harmed)
        if name == "store.db" and harmed is not None:
            look = glance(patient.path / name, known)
            if look is not Look.UNCLEAR and chance.random() * JUDGED_IN_FULL > 1:
                patient.put_back(name)
                return Verdict(loud=["glance"] if look is Look.LOUD else [])
        verdict = judge(patient.path, expected)
        patient.heal()
        return verdict

    def _told(self, patient: Patient, name: str, harmed: bytes | None) -> bytes:
        """What makes a store the same: a log only chooses pages, and a tail is its records."""
        if name == LOCK:
            return harmed or b""
        if name == TAIL:
            known = self.store("killed")[2]
            return records(harmed or b"", known.store_id, known.generation)
        patient.harm(name, harmed)
        pages = _pages(patient.path)
        patient.put_back("store.db", "store.db-wal")
        return pages

    def _generations(self, tally: Tally, share: float, chance: random.Random) -> None:
        """What the database says of the tail, damaged: it must hide no row and bring none back."""
        patient, expected, known = self.store("killed")
        for how, harmed in (*bits(known.tail), *cuts(known.tail)):
            if chance.random() < share:
                value, key = harmed(), ("tail",)
                statement: Statement = ("DELETE FROM meta WHERE key=?", key)
                if value is not None:
                    statement = ("UPDATE meta SET value=? WHERE key=?", (value, *key))
                patient.harm("store.db", self._changed(patient.path / "store.db", [statement]))
                patient.harm("store.db-wal", None)
                tally.add(f"{GENERATION}, {how}", judge(patient.path, expected))
                patient.heal()

    def _objects(self, tally: Tally, share: float, chance: random.Random) -> None:
        patient, expected, _ = self.store("closed")
        names = patient.names("objects/")
        for name in names:
            others: list[Harm] = [
                (f"holds {other}", partial(patient.data, other)) for other in names if other != name
            ]
            for harms in (bits(patient.data(name)), cuts(patient.data(name)), iter(others)):
                for how, harmed in harms:
                    if chance.random() < share:
                        patient.harm(name, harmed())
                        tally.add(f"{name}, {how}", judge(patient.path, expected))
                        patient.heal()

    def _rows(self, tally: Tally, share: float, chance: random.Random) -> None:
        patient, expected, _ = self.store("closed")
        for how, statements in row_harms(patient.path / "store.db"):
            if chance.random() < share:
                try:
                    changed = self._changed(patient.path / "store.db", statements)
                except sqlite3.IntegrityError:
                    continue  # Two rows alike: SQLite itself does not let anybody do that.
                patient.harm("store.db", changed)
                tally.add(how, judge(patient.path, expected))
                patient.heal()

    def _changed(self, file: Path, statements: "list[Statement]") -> bytes:
        """The database after these statements, made beside it: nobody has that file open."""
        with tempfile.TemporaryDirectory(dir=self._place) as folder:
            copy = Path(shutil.copy(file, folder))
            if (log := file.with_name(f"{file.name}-wal")).exists():
                shutil.copy(log, folder)
            with closing(sqlite3.connect(copy)) as link, link:
                for sql, values in statements:
                    link.execute(sql, values)
            return copy.read_bytes()

    def store(self, which: str) -> tuple[Patient, Contents, Healthy]:
        """A copy of a store to be damaged, and what it tells while it is healthy."""
        if which not in self._known:
            source = self._scene.closed if which == "closed" else self._scene.killed
            patient = Patient(source, self._place / which)
            expected = contents(patient.path)
            patient.heal()
            known = healthy(patient.path / "store.db")
            patient.heal()
            self._known[which] = patient, expected, known
        return self._known[which]


def _pages(path: Path) -> bytes:
    """What SQLite makes of the database and its log."""
    try:
        with closing(sqlite3.connect(path / "store.db")) as link:
            return hashlib.sha256(link.serialize()).digest()
    except sqlite3.Error as error:
        return str(error).encode()


Statement = tuple[str, tuple[object, ...]]


def row_harms(file: Path) -> Iterator[tuple[str, list[Statement]]]:
    """Every row deleted, and swapped with every other of its table: by what it holds."""
    with closing(sqlite3.connect(file)) as link:
        tables = {name: link.execute(f"SELECT * FROM {name}").fetchall() for name in TABLES}
        columns = {
            name: [each[1] for each in link.execute(f"PRAGMA table_info({name})")]
            for name in TABLES
        }
    for table, rows in tables.items():
        names = columns[table]
        where = " AND ".join(f"{name}=?" for name in names)
        insert = f"INSERT INTO {table} VALUES ({','.join('?' * len(names))})"
        for row in rows:
            delete: Statement = (f"DELETE FROM {table} WHERE {where}", row)
            yield f"{table} {row[0]} deleted", [delete]
        for a, b in combinations(rows, 2):
            gone = [(f"DELETE FROM {table} WHERE {where}", row) for row in (a, b)]
            for from_ in range(1, len(names)):
                swapped = [(*a[:from_], *b[from_:]), (*b[:from_], *a[from_:])]
                yield (
                    f"{table} {a[0]!r} and {b[0]!r} swapped from {names[from_]} on",
                    [*gone, *((insert, row) for row in swapped)],
                )


def main() -> int:
    """Try all parts, or those that are named; the exit status says whether any was wrong."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--share", type=float, default=1.0, help="which share of each to try")
    arguments.add_argument("--seed", default="kelp")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("names", nargs="*", help="parts of the matrix; all of them by default")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        scene = build(Path(folder))
        names = asked.names or Matrix(scene, Path(folder)).parts()
        whole = Tally()
        with get_context("spawn").Pool(asked.jobs) as pool:
            orders = [
                (scene, Path(folder, f"{n}"), name, asked.share, asked.seed)
                for n, name in enumerate(names)
            ]
            for name, tally in pool.imap_unordered(_one, orders):
                sys.stdout.write(f"{name}: {tally}\n")
                sys.stdout.write("".join(f"  {each}\n" for each in tally.wrong[:20]))
                sys.stdout.flush()
                whole.merge(tally)
    sys.stdout.write(f"all: {whole}\n")
    return 1 if whole.wrong else 0


def _one(order: tuple[Scene, Path, str, float, str]) -> tuple[str, Tally]:
    scene, place, name, share, seed = order
    return name, Matrix(scene, place).run(name, share, seed)


def memory() -> Path | None:
    """Where files cost no disk, if this machine has such a place."""
    place = Path("/dev/shm")  # noqa: S108 files are made there under names of their own
    return place if place.is_dir() else None


if __name__ == "__main__":
    raise SystemExit(main())
