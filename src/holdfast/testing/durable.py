"""DurableRecordsContract: what holds besides for rows that outlive the handle that wrote them."""

from pathlib import Path

from msgspec.structs import replace

from holdfast.model.ids import row_id
from holdfast.testing.contract import COMMITS, RecordsContract
from holdfast.testing.rows import (
    EVERY_ID,
    THREADS,
    append,
    create,
    everything,
    grow,
    head,
    in_threads,
    journal_row,
    there,
)


class DurableRecordsContract(RecordsContract):
    """Promises of `Records` across handles: reopened, side by side, in several threads."""

    def test_reopening_keeps_everything(self, tmp_path: Path) -> None:
        """Runs, branches, rows, intents, epochs, and where numbering goes on."""
        records = self.open(tmp_path)
        records.commit([create(b"a"), append(1, journal_row(1, 1), intents=[b"i"])])
        raised = replace(there(records.run(b"a")), epoch=2)
        records.commit([append(1, journal_row(1, 2), run=raised)])
        records.commit([grow(1, at=row_id(1, 1), head=2, epoch=2)])
        before = everything(records)
        records.close()

        records = self.open(tmp_path)

        assert before == everything(records)
        assert [-1] == records.commit([append(1, journal_row(2, 3))])
        assert [2] == records.commit([create(b"b")])
        assert [3] == [branch.no for branch in records.branches(2)]
        records.close()

    def test_two_handles_see_each_others_commits_at_once(self, tmp_path: Path) -> None:
        """And fence each other: the epoch is the store's, not the handle's."""
        one, two = self.open(tmp_path), self.open(tmp_path)
        one.commit([create(b"a")])
        assert [-1] == two.commit([create(b"a")])
        raised = replace(there(two.run(b"a")), epoch=2)
        two.commit([append(1, journal_row(1, 1), run=raised)])

        assert row_id(1, 1) == there(one.last(1)).id
        assert [-1] == one.commit([append(1, journal_row(1, 2))])
        one.close()
        assert [row_id(1, 2)] == two.commit([append(1, journal_row(1, 2), epoch=2)])
        two.close()

    def test_threads_of_two_handles_lose_nothing(self, tmp_path: Path) -> None:
        """Numbers are given once, and every acknowledged row is there."""
        handles = [self.open(tmp_path), self.open(tmp_path)]

        def work(n: int) -> int:
            records = handles[n % 2]
            [no] = records.commit([create(b"run %d" % n)])
            branch = head(records, b"run %d" % n)
            for seq in range(1, COMMITS):
                records.commit([append(no, journal_row(branch, seq))])
            return branch

        branches = in_threads(work)

        assert list(range(1, THREADS + 1)) == sorted(branches)
        for records in handles:
            assert THREADS * COMMITS == len(records.rows(*EVERY_ID))
            records.close()
