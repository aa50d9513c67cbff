"""Reading checks everything: what does not match is named and never used."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.clock import SystemClock
from holdfast.errors import Damaged
from holdfast.model.ids import Range, row_id
from holdfast.model.journal import Redone
from holdfast.store.backends.sqlite import SqliteRecords
from holdfast.store.chain import branch_mac, row_mac
from holdfast.store.codec.frame import seal
from holdfast.store.writer import make_run
from tests.unit.store.builders import (
    Bench,
    add,
    based,
    bench,
    body_of,
    entry,
    flipped,
    memory_bench,
    tampering,
)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Bench]:
    """Run a: five rows, a base in the fourth, a branch from the third. Run b: three rows."""
    records = SqliteRecords(tmp_path, SystemClock())
    small = bench(records, records.store_id)
    writer = small.start("a", rows=2)
    add(writer, based(2, [Range(row_id(1, 0), row_id(1, 0))]))
    add(writer, entry(3))
    small.start("b", rows=2)
    yield small
    records.close()


def branch_off(small: Bench, run: str = "a") -> None:
    """Give the run a new head, grown from its third row, with two rows."""
    writer = small.take_up(run)
    at = next(iter(small.reader.rows(1, row_id(1, 2), row_id(1, 2))))
    writer.grow(at, [Redone(1.0, 0, None)], [b"intent"])
    add(writer, entry(9))


def read_all(small: Bench) -> None:
    """Everything a restart, a list and a timeline would read."""
    for run in small.reader.runs():
        small.reader.find(run.body.id)
        small.reader.history(run)
        for branch in small.reader.branches(run):
            first, last = small.reader.first(branch.no), small.reader.end(branch.no)
            assert [] != list(small.reader.rows(branch.no, first, last))


def test_a_run_is_found_by_its_id_and_an_unknown_one_is_not(small: Bench) -> None:
    assert "a" == small.find("a").body.id
    assert small.reader.find("c") is None


def test_runs_are_listed_newest_first_across_pages() -> None:
    many = memory_bench()
    names = [f"run {n}" for n in range(70)]
    for name in names:
        many.start(name)

    assert names[::-1] == [run.body.id for run in many.reader.runs()]
    assert names[9::-1] == [run.body.id for run in many.reader.runs(before=11)]


def test_a_history_begins_with_the_newest_base_and_brings_what_it_points_to(small: Bench) -> None:
    history = small.reader.history(small.find("a"))

    assert [row_id(1, 3), row_id(1, 4)] == [placed.id for placed in history.rows]
    assert [row_id(1, 0)] == [placed.id for placed in history.outside]
    assert row_id(1, 4) == history.last.id


def test_a_history_without_a_base_is_the_whole_line(small: Bench) -> None:
    history = small.reader.history(small.find("b"))

    assert [row_id(2, n) for n in range(3)] == [placed.id for placed in history.rows]
    assert [] == history.outside


def test_a_branch_continues_the_rows_that_it_grew_from(small: Bench) -> None:
    branch_off(small)
    run = small.find("a")
    ids = [placed.id for placed in small.reader.history(run).rows]

    assert [row_id(1, 0), row_id(1, 1), row_id(1, 2), row_id(3, 3), row_id(3, 4)] == ids
    assert [1, 3] == [branch.no for branch in small.reader.branches(run)]
    assert [row_id(3, 3), row_id(3, 4)] == [
        placed.id for placed in small.reader.rows(3, row_id(3, 0), row_id(3, 4))
    ]


def test_an_intent_counts_on_the_line_where_it_was_recorded() -> None:
    small = memory_bench()
    writer = small.start("a")
    add(writer, entry(1), intents=(b"pay",))
    at = small.reader.row(row_id(1, 1))
    add(writer, entry(2), intents=(b"pay",))

    writer.grow(at, [Redone(1.0, 0, None)], [])
    add(writer, entry(3), intents=(b"pay", b"mail"))

    reader = small.reader
    assert 2 == len(reader.on_line(reader.intended(1, b"pay"), 1))
    assert 2 == len(reader.on_line(reader.intended(1, b"pay"), 2))
    assert 1 == len(reader.on_line(reader.intended(1, b"mail"), 2))
    assert [] == reader.on_line(reader.intended(1, b"mail"), 1)


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("run", ["no", "kid", "epoch", "head", "mac", "body"]),
        ("branch", ["no", "run", "parent", "at", "mac", "body"]),
        ("j", ["id", "mac", "body"]),
    ],
)
@pytest.mark.parametrize("is_branched", [False, True], ids=["one branch", "two branches"])
def test_whatever_is_changed_in_the_file_is_found_and_named(
    small: Bench, tmp_path: Path, table: str, columns: list[str], is_branched: bool
) -> None:
    key = columns[0]
    if is_branched:
        branch_off(small)
    read_all(small)
    accepted, tried = [], 0

    with tampering(tmp_path) as link:
        rows = link.execute(f"SELECT {key}, {', '.join(columns)} FROM {table}").fetchall()
        for no, *values in rows:
            for column, value in zip(columns, values, strict=True):
                for other in _others(value, is_key=column == key):
                    place = no if column != key else other
                    update = f"UPDATE {table} SET {column}=? WHERE {key}=?"
                    link.execute(update, (other, no))
                    tried += 1
                    if _is_readable(small):
                        accepted.append((table, no, column, other))
                    link.execute(update, (value, place))

    read_all(small)
    assert [] == accepted
    assert tried > 50


def _others(value: int | bytes, *, is_key: bool) -> Iterator[Any]:
    if is_key:
        yield value + 100  # type: ignore[operator]
    elif isinstance(value, int):
        yield from (value + 1, value + 100, -1, 0 if value else 1, value + 0.5, "text", b"blob")
    else:
        yield from list(flipped(value))[::5]
        yield from ("text", 7, b"")


def _is_readable(small: Bench) -> bool:
    try:
        read_all(small)
    except Damaged:
        return False
    return True


@pytest.mark.parametrize("row", [(1, 0), (1, 3), (2, 1)])
def test_a_missing_row_is_named(small: Bench, tmp_path: Path, row: tuple[int, int]) -> None:
    with tampering(tmp_path) as link:
        link.execute("DELETE FROM j WHERE id=?", (row_id(*row),))

    with pytest.raises(Damaged, match=f"{row_id(*row):#x}"):
        read_all(small)


def test_a_gap_in_the_middle_of_a_run_is_named(small: Bench, tmp_path: Path) -> None:
    small.start("c", rows=6)
    small.settle()
    with tampering(tmp_path) as link:
        link.execute("DELETE FROM j WHERE id=?", (row_id(3, 3),))

    with pytest.raises(Damaged, match=f"{row_id(3, 3):#x} is damaged: it is missing"):
        small.reader.history(small.find("c"))


def test_a_row_that_a_base_points_to_and_is_gone_is_named(small: Bench, tmp_path: Path) -> None:
    with tampering(tmp_path) as link:
        link.execute("DELETE FROM j WHERE id=?", (row_id(1, 0),))

    with pytest.raises(Damaged, match=f"{row_id(1, 0):#x} is damaged: it is missing"):
        small.reader.history(small.find("a"))


@pytest.mark.parametrize(("one", "two"), [((1, 1), (1, 2)), ((1, 1), (2, 1))])
def test_swapped_rows_are_found(
    small: Bench, tmp_path: Path, one: tuple[int, int], two: tuple[int, int]
) -> None:
    swaps = [(row_id(*one), 5), (row_id(*two), row_id(*one)), (5, row_id(*two))]
    with tampering(tmp_path) as link:
        for now, then in swaps:
            link.execute("UPDATE j SET id=? WHERE id=?", (then, now))

    with pytest.raises(Damaged, match="its hash does not match its bytes or its place"):
        read_all(small)


def test_a_row_with_a_true_hash_that_follows_another_row_is_found(
    small: Bench, tmp_path: Path
) -> None:
    not_the_newest = small.reader.history(small.find("a")).rows[0]
    plant_row(small, tmp_path, row_id(1, 5), not_the_newest.mac, seal(b"anything"))

    with pytest.raises(Damaged, match="0x100000005"):
        small.reader.history(small.find("a"))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"no row",
        msgspec.msgpack.encode([-1, -1, [[99, 1.0]]]),
        msgspec.msgpack.encode([-1, -1, []])[:-1].replace(b"\x93", b"\x94", 1)
        + b"\x90"
        + b"\x91" * 100_000,
    ],
    ids=["empty", "text", "unknown entry", "deeply nested"],
)
def test_a_body_with_a_true_hash_that_is_no_row_is_named(
    small: Bench, tmp_path: Path, payload: bytes
) -> None:
    newest = small.reader.history(small.find("b")).last
    plant_row(small, tmp_path, row_id(2, 3), newest.mac, seal(payload))

    with pytest.raises(Damaged, match=r"journal row 0x200000003 .* cannot be decoded"):
        small.reader.history(small.find("b"))


def plant_row(small: Bench, directory: Path, id_: int, before: bytes, body: bytes) -> None:
    forged = row_mac(small.reader.store_id, id_, before, body)
    with tampering(directory) as link:
        link.execute("INSERT INTO j VALUES (?,?,?)", (id_, forged, body))


def test_a_branch_that_is_named_but_gone_is_damage(small: Bench, tmp_path: Path) -> None:
    branch_off(small)
    with tampering(tmp_path) as link:
        link.execute("DELETE FROM branch WHERE no=1")

    with pytest.raises(Damaged, match=r"branch 1 .* named but not there"):
        small.reader.history(small.find("a"))


def test_a_branch_without_rows_is_damage(small: Bench, tmp_path: Path) -> None:
    run = small.find("b")
    small.settle()
    with tampering(tmp_path) as link:
        link.execute("DELETE FROM j WHERE id >= ?", (row_id(2, 0),))

    with pytest.raises(Damaged, match=r"branch 2 .* holds no rows"):
        small.reader.history(run)
    with pytest.raises(Damaged, match=r"branch 2 .* holds no rows"):
        small.reader.end(2)


def test_a_run_that_is_filed_under_the_name_of_another_is_damage(
    small: Bench, tmp_path: Path
) -> None:
    seals, row = small.reader.seals, small.find("a").row
    moved = make_run(seals.of(row.no), replace(row, kid=seals.kid("c")), body_of("a"))
    with tampering(tmp_path) as link:
        link.execute("UPDATE run SET kid=?, mac=? WHERE no=1", (moved.kid, moved.mac))
        link.execute("UPDATE run SET body=? WHERE no=1", (moved.body,))

    with pytest.raises(Damaged, match="filed as c but says a"):
        small.reader.find("c")


def test_chosen_rows_are_read_each_checked(small: Bench, tmp_path: Path) -> None:
    small.start("c", rows=300)
    wanted = {row_id(1, 4), row_id(2, 0), row_id(3, 1), row_id(3, 2), row_id(3, 290)}

    read = [placed.id for placed in small.reader.some([*wanted, row_id(3, 2)])]

    assert read == sorted(set(read))
    assert wanted <= set(read)
    assert [] == list(small.reader.some([]))
    small.settle()
    with tampering(tmp_path) as link:
        link.execute("UPDATE j SET body=x'00' WHERE id=?", (row_id(3, 290),))
    with pytest.raises(Damaged, match=f"{row_id(3, 290):#x}"):
        list(small.reader.some(wanted))


def test_a_branch_that_grows_from_a_later_one_is_damage(small: Bench, tmp_path: Path) -> None:
    loop = replace(small.reader.line(1)[0], parent=2, at=row_id(2, 1))
    before = small.reader.row(row_id(2, 1)).mac
    with tampering(tmp_path) as link:
        link.execute(
            "UPDATE branch SET parent=?, at=?, mac=? WHERE no=1",
            (loop.parent, loop.at, branch_mac(small.reader.store_id, loop, before)),
        )

    with pytest.raises(Damaged, match=r"branch 1 .* came later"):
        small.reader.line(1)


def test_one_row_is_read_and_checked_by_itself(small: Bench) -> None:
    assert [entry(0)] == small.reader.row(row_id(1, 1)).row.entries
    for missing in (row_id(1, 9), row_id(9, 0)):
        with pytest.raises(Damaged):
            small.reader.row(missing)


def test_some_rows_are_read_together_and_checked_each() -> None:
    bench = memory_bench()
    bench.start("run", rows=100)
    first = bench.reader.first(bench.find("run").row.head)

    near = [first + n for n in (3, 5, 9)]
    far = [first + 90]

    found = {placed.id: placed for placed in bench.reader.some([*far, *near, *near])}
    assert [*range(near[0], near[-1] + 1), *far] == list(found)
    assert found[far[0]] == bench.reader.row(far[0])
    assert [] == list(bench.reader.some([]))
