"""SealsContract: what every way of binding bytes to their place is held to.

A way joins by a class of three lines:

    class TestMySeals(SealsContract):
        def make(self) -> Seals:
            return MySeals()
"""

import hashlib
from collections.abc import Callable, Iterator
from itertools import permutations

import pytest
from msgspec.structs import replace

from holdfast.errors import Damaged
from holdfast.model.ids import row_id
from holdfast.store.backends.base import BranchRow, JournalRow, RunRow
from holdfast.store.codec.frame import seal
from holdfast.store.seal.base import RunSeals, Seals

PAYLOADS = (b"", b"payload", bytes(9000), b"another payload")


class SealsContract:
    """What was bound opens in its place as it was given, and nowhere else, and no other way."""

    def make(self) -> Seals:
        """The seals under test; the subclass makes them. Each call: those of another store."""
        raise AssertionError(f"{type(self).__name__} says how its seals are made")

    @pytest.fixture
    def seals(self) -> Seals:
        """The seals of one store."""
        return self.make()

    def test_what_was_bound_opens_as_it_was_given(self, seals: Seals) -> None:
        """Runs, branches, rows and large values, of any size."""
        run = seals.new(1)
        for payload in PAYLOADS:
            before = run.branch(a_branch(), b"").mac
            row = run.row(row_id(1, 0), before, payload)
            digest = hashlib.sha256(payload).digest()
            chunk = seals.seal_chunk(digest, seal(payload))

            assert payload == run.open_run(run.run(a_run(), payload))
            assert payload == run.open_row(row, before)
            assert seal(payload) == seals.open_chunk(digest, chunk, "chunk")
            assert payload == run.open_branch(run.branch(a_branch(), b"", payload), b"")

    def test_the_same_in_the_same_place_is_the_same_bytes(self, seals: Seals) -> None:
        """So a write whose outcome was unknown is recognised when it is written again."""
        run = seals.new(1)

        assert run.row(5, b"before", b"x") == run.row(5, b"before", b"x")
        assert run.run(a_run(), b"x") == run.run(a_run(), b"x")

    def test_every_row_in_every_other_rows_place_is_refused(self, seals: Seals) -> None:
        """Swapped rows of one run, of two runs, of two stores, of two kinds."""
        placed = [
            each for store in (seals, self.make()) for no in (1, 2) for each in rows(store, no)
        ]
        accepted = []

        for mine, other in permutations(placed, 2):
            if mine.is_accepted(other.mac, other.body):
                accepted.append((mine.name, other.name))

        assert [] == accepted
        assert all(each.is_accepted(each.mac, each.body) for each in placed)

    def test_every_change_of_a_column_is_refused(self, seals: Seals) -> None:
        """Every number that a row stands under is bound to it."""
        run = seals.new(1)
        whole, branch = run.run(a_run(), b"x"), run.branch(a_branch(parent=1, at=7), b"before")
        row = run.row(5, b"before", b"x")

        changed: list[Callable[[], object]] = [
            *(lambda n=n: run.open_run(replace(whole, **{n: 9})) for n in ("no", "epoch", "head")),
            lambda: run.open_run(replace(whole, kid=b"another kid here")),
            *(
                lambda n=n: run.open_branch(replace(branch, **{n: 9}), b"before")
                for n in ("no", "run", "parent", "at")
            ),
            lambda: run.open_branch(branch, b"after"),
            lambda: run.open_row(replace(row, id=6), b"before"),
            lambda: run.open_row(row, b"after"),
        ]

        for act in changed:
            with pytest.raises(Damaged):
                act()

    def test_every_bit_of_a_row_counts(self, seals: Seals) -> None:
        """A bit flipped in the hash or in the body is damage."""
        run = seals.new(1)
        row = run.row(5, b"before", b"some payload")

        for column in ("mac", "body"):
            data = getattr(row, column)
            for bit in range(len(data) * 8):
                flipped = bytearray(data)
                flipped[bit // 8] ^= 1 << bit % 8
                with pytest.raises(Damaged):
                    run.open_row(replace(row, **{column: bytes(flipped)}), b"before")

    def test_names_depend_on_the_store_and_on_nothing_else(self, seals: Seals) -> None:
        """The same run has the same name each time, and another in another store."""
        assert seals.kid("run-1") == seals.kid("run-1")
        assert len({seals.kid("run-1"), seals.kid("run-2"), self.make().kid("run-1")}) == 3  # noqa: PLR2004 all differ


class Placed:
    """A row in its place, and whether other bytes would be taken for it there."""

    def __init__(
        self, name: str, mac: bytes, body: bytes, check: Callable[[bytes, bytes], object]
    ) -> None:
        self.name, self.mac, self.body, self._check = name, mac, body, check

    def is_accepted(self, mac: bytes, body: bytes) -> bool:
        """Whether these bytes open here."""
        try:
            self._check(mac, body)
        except Damaged:
            return False
        return True


def rows(seals: Seals, no: int) -> Iterator[Placed]:
    """A run's catalog row, two branches and four journal rows, which hold nearly the same."""
    run = seals.new(no)
    whole = run.run(a_run(no), b"x")
    yield Placed(
        f"run {no}", whole.mac, whole.body, lambda m, b: run.open_run(replace(whole, mac=m, body=b))
    )
    for branch_no, parent in ((no * 10, 0), (no * 10 + 1, no * 10)):
        grown = run.branch(a_branch(branch_no, no, parent, parent << 32), b"before"[:parent])
        yield Placed(f"branch {branch_no}", grown.mac, grown.body, _checked(run, grown, parent))
        before = grown.mac
        for seq in range(2):
            row = run.row(row_id(branch_no, seq), before, b"x")
            yield Placed(f"row {row.id:#x}", row.mac, row.body, _opened(run, row, before))
            before = row.mac


def _checked(run: RunSeals, row: BranchRow, parent: int) -> Callable[[bytes, bytes], object]:
    before = b"before"[:parent]
    return lambda m, b: run.open_branch(replace(row, mac=m, body=b), before)


def _opened(run: RunSeals, row: JournalRow, before: bytes) -> Callable[[bytes, bytes], object]:
    return lambda m, b: run.open_row(replace(row, mac=m, body=b), before)


def a_run(no: int = 1) -> RunRow:
    """A run that is not bound yet."""
    return RunRow(no=no, kid=b"sixteen bytes id", epoch=1, head=1, mac=b"", body=b"")


def a_branch(no: int = 1, run: int = 1, parent: int = 0, at: int = 0) -> BranchRow:
    """A branch that is not bound yet."""
    return BranchRow(no=no, run=run, parent=parent, at=at, mac=b"", body=b"")
