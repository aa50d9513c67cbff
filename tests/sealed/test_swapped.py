"""Whoever can write to an encrypted store but has no key can break it, and never change it.

Each object in turn stands in every other's place, is replaced by its open bytes, and stands under
other labels. Whatever is then read is exact, or it is refused.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.errors import HoldfastError
from holdfast.model.ids import branch_of
from holdfast.store.backends.base import JournalRow
from holdfast.store.backends.packs import Around, make
from holdfast.store.backends.sqlite import FILE
from holdfast.store.codec.frame import seal
from holdfast.store.open import open_store
from holdfast.store.seal.packer import SealedPacker
from holdfast.store.seal.sealed import Sealed
from tests.sealed import kit

Change = Callable[[sqlite3.Connection], object]
COLUMNS = {
    "run": ("kid", "epoch", "head", "mac", "body"),
    "branch": ("run", "parent", "at", "mac", "body"),
    "j": ("mac", "body"),
    "pack": ("first", "body"),
    "key": ("body",),
    "effect": ("intent",),
}
NUMBERS = {"run": "no", "branch": "no", "j": "id", "pack": "id", "key": "no"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loose run, a packed one, a branch, a large value."""
    path = tmp_path_factory.mktemp("made") / "store"
    kit.fill(path, runs=1, turns=2)
    with holdfast.open(path, key=kit.KEY) as store:
        store.run(kit.keeper, "planted-argument", turns=24, id="planted-run-long")
    return path


@pytest.fixture(scope="module")
def expected(made: Path) -> dict[str, object]:
    return kit.states(made)


class Attack:
    """Changes to copies of one store, and what came of each."""

    def __init__(self, made: Path, expected: dict[str, object], place: Path) -> None:
        self._made, self._expected, self.place = made, expected, place
        self.refused, self.accepted = 0, list[str]()

    def try_(self, what: str, change: Change) -> None:
        """One change to a copy: `accepted` if verification and reading find nothing wrong."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self._made, self.place)
        with contextlib.closing(sqlite3.connect(self.place / FILE, isolation_level=None)) as link:
            change(link)
        if self._is_noticed(what):
            self.refused += 1
        else:
            self.accepted.append(what)

    def _is_noticed(self, what: str) -> bool:
        """Whether `verify` finds it; whatever else is read is exact, or refused by name."""
        with contextlib.suppress(HoldfastError):
            for point, state in kit.states(self.place).items():
                assert self._expected[point] == state, what
        try:
            return bool(kit.findings(self.place))
        except HoldfastError:
            return True


@pytest.fixture
def attack(made: Path, expected: dict[str, object], tmp_path: Path) -> Attack:
    return Attack(made, expected, tmp_path / "copy")


def objects(made: Path) -> Iterator[tuple[str, int]]:
    """A seeded part of all rows that hold a body; every table, the first and last of each."""
    with contextlib.closing(sqlite3.connect(made / FILE)) as link:
        for table, number in NUMBERS.items():
            found = [no for (no,) in link.execute(f"SELECT {number} FROM {table} ORDER BY 1")]
            for no in sorted({found[0], found[len(found) // 2], found[-1]}):
                yield table, no


def test_every_pair_of_sealed_objects_swapped_is_noticed(made: Path, attack: Attack) -> None:
    pairs = list(combinations(objects(made), 2))

    for (table, no), (other, number) in pairs:
        attack.try_(f"{table} {no} with {other} {number}", _swap((table, no), (other, number)))

    assert [] == attack.accepted
    assert len(pairs) == attack.refused > 50


def test_every_object_as_its_open_bytes_is_noticed(made: Path, attack: Attack) -> None:
    plain = list(_opened(made))

    for table, no, body in plain:
        attack.try_(f"{table} {no} in clear", _put(table, no, body))

    assert [] == attack.accepted
    assert len(plain) == attack.refused > 10


def test_every_changed_label_is_noticed(attack: Attack) -> None:
    tried = 0
    for table, columns in COLUMNS.items():
        for column in columns:
            for sql in _changes(table, column):
                attack.try_(sql, lambda link, s=sql: link.execute(s))  # type: ignore[misc]
                tried += 1

    assert [] == attack.accepted
    assert tried == attack.refused


def test_every_file_swapped_with_another_or_in_clear_is_noticed(
    made: Path, attack: Attack, tmp_path: Path
) -> None:
    names = [each.relative_to(made) for each in (made / "objects").glob("??/*")]
    for what, data in (
        ("in clear", seal(kit.LARGE.encode())),
        ("bare", kit.LARGE.encode()),
        ("empty", b""),
        ("of another store", _other_file(tmp_path / "other")),
        ("another of this store", (made / names[1]).read_bytes()),
    ):
        attack.try_(what, lambda _, d=data: (attack.place / names[0]).write_bytes(d))  # type: ignore[misc]

    assert [] == attack.accepted


def _put(table: str, no: int, body: bytes) -> Change:
    sql = f"UPDATE {table} SET body=? WHERE {NUMBERS[table]}=?"
    return lambda link: link.execute(sql, (body, no))


def _swap(one: tuple[str, int], two: tuple[str, int]) -> Change:
    def change(link: sqlite3.Connection) -> None:
        found = [_read(link, *each) for each in (one, two)]
        for (table, no), values in zip((one, two), reversed(found), strict=True):
            sets = ", ".join(f"{column}=:{column}" for column in values if column in COLUMNS[table])
            link.execute(
                f"UPDATE {table} SET {sets} WHERE {NUMBERS[table]}=:number",
                {**values, "number": no},
            )

    return change


def _read(link: sqlite3.Connection, table: str, no: int) -> dict[str, bytes]:
    columns = [column for column in ("mac", "body") if column in COLUMNS[table]]
    sql = f"SELECT {', '.join(columns)} FROM {table} WHERE {NUMBERS[table]}=?"
    return dict(zip(columns, link.execute(sql, (no,)).fetchone(), strict=True))


def _changes(table: str, column: str) -> Iterator[str]:
    """The column of one row changed to another's, and to nothing."""
    where = f"rowid=(SELECT min(rowid) FROM {table})"
    if table == "effect":
        one = "(SELECT run, intent, id FROM effect LIMIT 1)"
        yield f"UPDATE effect SET intent=randomblob(16) WHERE (run, intent, id)={one}"
        return
    if column in {"kid", "mac", "body"}:
        yield f"UPDATE {table} SET {column}=randomblob(length({column})) WHERE {where}"
        yield f"UPDATE {table} SET {column}=x'' WHERE {where}"
    else:
        yield f"UPDATE {table} SET {column}={column}+1 WHERE {where}"


def _opened(made: Path) -> Iterator[tuple[str, int, bytes]]:
    """Each sealed row with its open frame, as somebody with the key would leave it."""
    found = open_store(made, SystemClock(), key=kit.KEY, must_exist=True)
    try:
        seals = found.reader.seals
        assert isinstance(seals, Sealed)
        for run in found.reader.runs():
            yield "run", run.row.no, seal(seals.of(run.row.no).open_run(run.row))
            for branch in found.reader.branches(run):
                yield "branch", branch.no, seal(b"")
        with contextlib.closing(sqlite3.connect(made / FILE)) as link:
            packer = SealedPacker(seals)
            for last, first, body in link.execute("SELECT id, first, body FROM pack"):
                rows = packer.unpack(first, last, body, Around(link, first))
                yield "pack", last, make(rows)
            for id_, mac, body in link.execute("SELECT id, mac, body FROM j LIMIT 8").fetchall():
                row = JournalRow(id=id_, mac=mac, body=body)
                run_no = link.execute(
                    "SELECT run FROM branch WHERE no=?", (branch_of(id_),)
                ).fetchone()[0]
                before = Around(link, id_).before(lambda pack: pack[36:64])
                yield "j", id_, seals.of(run_no).bare(row, before).body
    finally:
        found.close()


def _other_file(path: Path) -> bytes:
    kit.fill(path)
    return next((path / "objects").glob("??/*")).read_bytes()
