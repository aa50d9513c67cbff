"""Hashes bind every column of every row to its place and to the row before it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from holdfast.errors import Damaged
from holdfast.store.backends.base import BranchRow, JournalRow, RunRow
from holdfast.store.chain import (
    branch_mac,
    check_branch,
    check_row,
    check_run,
    keyed_id,
    row_mac,
    run_mac,
)
from tests.unit.store.builders import flipped

STORE, BEFORE = b"sixteen bytes id", b"B" * 32


def a_run() -> RunRow:
    kid = keyed_id(STORE, "a")
    row = RunRow(no=3, kid=kid, epoch=2, head=7, mac=b"", body=b"body of a run")
    return replace(row, mac=run_mac(STORE, row))


def a_branch(parent: int = 4) -> BranchRow:
    row = BranchRow(no=7, run=3, parent=parent, at=9, mac=b"", body=b"body of a branch")
    return replace(row, mac=branch_mac(STORE, row, BEFORE if parent else b""))


def a_row() -> JournalRow:
    body = b"body of a journal row"
    return JournalRow(id=7 << 32 | 5, mac=row_mac(STORE, 7 << 32 | 5, BEFORE, body), body=body)


NO_COLUMNS = {"key", "before"}
"""Fields that stand in no row on the disk."""


def others(value: int | bytes) -> Iterator[Any]:
    """What a damaged file may give instead of `value`, of any type that SQLite has."""
    if isinstance(value, bytes):
        yield from flipped(value)
        yield from (b"", value.decode("latin-1"), 7, None)
    else:
        yield from (value ^ 1 << bit for bit in range(63))
        yield from (-1 - value, 1 << 64, float(value), f"{value}", b"7", None)


def spoilt(row: RunRow | BranchRow | JournalRow) -> Iterator[tuple[str, Any]]:
    for column, value in asdict(row).items():
        if column in NO_COLUMNS:
            continue
        for other in others(value):
            # The key of a table is a number in SQLite too; the other columns hold anything.
            if column not in {"id", "no"} or isinstance(other, int):
                yield f"{column}={other!r}", replace(row, **{column: other})


@pytest.mark.parametrize(
    ("row", "check"),
    [
        pytest.param(a_run(), check_run, id="run"),
        pytest.param(a_branch(), lambda s, row: check_branch(s, row, BEFORE), id="branch"),
        pytest.param(a_branch(0), lambda s, row: check_branch(s, row, b""), id="first branch"),
        pytest.param(a_row(), lambda s, row: check_row(s, row, BEFORE), id="journal row"),
    ],
)
def test_a_change_of_any_column_or_byte_of_a_row_is_damage(
    row: RunRow | BranchRow | JournalRow, check: Callable[[bytes, Any], None]
) -> None:
    check(STORE, row)
    accepted = []

    for what, other in spoilt(row):
        try:
            check(STORE, other)
        except Damaged:
            continue
        accepted.append(what)

    assert [] == accepted
    with pytest.raises(Damaged):
        check(b"another store id", row)


def test_a_row_follows_only_the_row_that_it_was_written_after() -> None:
    for other in [*flipped(BEFORE), b""]:
        with pytest.raises(Damaged, match="0x700000005"):
            check_row(STORE, a_row(), other)
        with pytest.raises(Damaged, match="branch 7"):
            check_branch(STORE, a_branch(), other)


def test_a_byte_moved_from_one_column_to_its_neighbour_is_damage() -> None:
    row = a_run()

    for moved in (
        replace(row, kid=row.kid + row.body[:1], body=row.body[1:]),
        replace(row, kid=row.kid[:-1], body=row.kid[-1:] + row.body),
    ):
        with pytest.raises(Damaged, match="run number 3"):
            check_run(STORE, moved)


def test_a_keyed_id_depends_on_store_and_run_and_takes_any_text() -> None:
    names = ["a", "b", "ab", "", "é", "\ud800"]

    ids = {keyed_id(store, name) for store in (STORE, bytes(16)) for name in names}

    assert 12 == len(ids)
    assert {16} == {len(kid) for kid in ids}
