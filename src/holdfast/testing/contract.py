"""RecordsContract: what every backend of rows is held to.

A backend joins by a class of three lines:

    class TestMyRecords(RecordsContract):
        def open(self, place: Path) -> Records:
            return MyRecords(place)

`testing.durable` adds what holds for a backend whose rows outlive its handle.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.errors import StoreClosed
from holdfast.model.ids import row_id
from holdfast.store.backends.base import Create, Grow, Records, Write
from holdfast.testing.rows import (
    EVERY_ID,
    THREADS,
    UnbuildableError,
    append,
    create,
    fail_to_build,
    first_rows,
    grow,
    head,
    in_threads,
    journal_row,
    mac,
    there,
)

COMMITS = 15


class RecordsContract:
    """Promises of `Records`: order, fencing, one transaction, ranges, indexes, the end."""

    def open(self, place: Path) -> Records:
        """A handle on the records kept at `place`; the subclass makes it."""
        raise AssertionError(f"{type(self).__name__} says how to open {place}")

    @pytest.fixture
    def records(self, tmp_path: Path) -> Iterator[Records]:
        """An empty backend, closed afterwards."""
        records = self.open(tmp_path)
        yield records
        records.close()

    def test_a_created_run_is_found_with_its_branch_and_its_first_row(
        self, records: Records
    ) -> None:
        """The three rows that `build` returned are what is read."""
        assert [1] == records.commit([create(b"kid of a")])

        run, branch, row = first_rows(b"kid of a", 1, 1)
        assert run == records.run(b"kid of a")
        assert branch == records.branch(1)
        assert [branch] == records.branches(1)
        assert [row] == records.rows(row.id, row.id)
        assert row == records.last(1)

    def test_what_was_never_written_is_not_there(self, records: Records) -> None:
        """An empty backend answers every question with nothing."""
        assert records.run(b"kid") is None
        assert [] == records.runs(None, 10)
        assert records.branch(1) is None
        assert [] == records.branches(1)
        assert [] == records.rows(*EVERY_ID)
        assert [] == records.beside(*EVERY_ID)
        assert records.last(1) is None
        assert [] == records.intended(1, b"intent")

    def test_runs_and_branches_are_numbered_from_one_upwards(self, records: Records) -> None:
        """A branch that is grown takes the next number, so later runs have other branches."""
        assert [1, 2] == records.commit([create(b"a"), create(b"b")])
        records.commit([grow(1, at=row_id(1, 0), head=3)])
        assert [3] == records.commit([create(b"c")])

        assert [4] == [branch.no for branch in records.branches(3)]

    def test_a_run_under_a_used_id_is_refused_and_the_first_one_stays(
        self, records: Records
    ) -> None:
        """Across commits and within one; nothing is built for the second."""
        assert [1, -1] == records.commit([create(b"a"), create(b"a", body=b"second")])
        assert [-1] == records.commit([Create(kid=b"a", build=fail_to_build)])

        assert b"run" == there(records.run(b"a")).body
        assert 1 == len(records.runs(None, 10))
        assert 1 == len(records.rows(*EVERY_ID))

    def test_rows_come_back_in_the_order_of_their_ids(self, records: Records) -> None:
        """Whatever the bytes, and however many rows one commit takes."""
        records.commit([create(b"a")])
        bodies = [b"", b"\x00", bytes(range(256)), b"x" * 100_000, b"last"]
        rows = [journal_row(1, seq, body) for seq, body in enumerate(bodies, start=1)]

        assert [row.id for row in rows] == records.commit([append(1, row) for row in rows])

        assert rows == records.rows(row_id(1, 1), row_id(1, 5))

    def test_an_empty_commit_does_nothing(self, records: Records) -> None:
        """No writes, no results."""
        assert [] == records.commit([])

    def test_an_append_under_another_epoch_does_nothing(self, records: Records) -> None:
        """Neither row nor catalog nor index, whether the epoch is older, newer or of no run."""
        records.commit([create(b"a")])
        changed = replace(there(records.run(b"a")), body=b"changed")
        row = journal_row(1, 1)

        for no, epoch in [(1, 0), (1, 2), (9, 1)]:
            full = append(no, row, epoch=epoch, run=changed, intents=[b"i"])
            assert [-1] == records.commit([full])
            assert [-1] == records.commit([append(no, row, epoch=epoch)])

        assert [] == records.rows(row.id, row.id)
        assert b"run" == there(records.run(b"a")).body
        assert [] == records.intended(1, b"i")

    def test_a_fenced_append_fails_alone_in_its_batch(self, records: Records) -> None:
        """Its neighbours, of the same run and of others, are written."""
        records.commit([create(b"a"), create(b"b")])
        a, fenced, b = journal_row(1, 1), journal_row(1, 2), journal_row(2, 1)

        done = records.commit([append(1, a), append(1, fenced, epoch=7), append(2, b)])

        assert [a.id, -1, b.id] == done
        assert [a] == records.rows(a.id, fenced.id)
        assert [b] == records.rows(b.id, b.id)

    def test_a_takeover_fences_every_later_write_of_the_old_epoch(self, records: Records) -> None:
        """Also within one commit: each write sees those before it."""
        records.commit([create(b"a")])
        raised = replace(there(records.run(b"a")), epoch=2, mac=mac("raised"), body=b"epoch 2")
        takeover = append(1, journal_row(1, 1), run=raised)

        done = records.commit([takeover, append(1, journal_row(1, 2))])

        assert [row_id(1, 1), -1] == done
        assert [-1] == records.commit([append(1, journal_row(1, 2))])
        assert [-1] == records.commit([grow(1, at=row_id(1, 1), head=2)])
        assert raised == records.run(b"a")
        assert [row_id(1, 2)] == records.commit([append(1, journal_row(1, 2), epoch=2)])

    def test_the_same_row_again_is_recognised(self, records: Records) -> None:
        """Alone and with its index: a commit whose outcome was unknown may be tried again."""
        records.commit([create(b"a")])
        plain = append(1, journal_row(1, 1))
        indexed = append(1, journal_row(1, 2), intents=[b"i"])

        for _ in range(2):
            assert [row_id(1, 1)] == records.commit([plain])
            assert [row_id(1, 2)] == records.commit([indexed])

        assert [plain.row, indexed.row] == records.rows(row_id(1, 1), row_id(1, 9))
        assert [row_id(1, 2)] == records.intended(1, b"i")

    def test_another_row_in_a_used_place_is_refused(self, records: Records) -> None:
        """The first one stays, and nothing that came with the second is kept."""
        records.commit([create(b"a")])
        first, second = journal_row(1, 1, b"first"), journal_row(1, 1, b"second")
        changed = replace(there(records.run(b"a")), body=b"changed")
        records.commit([append(1, first)])

        assert [-1] == records.commit([append(1, second)])
        assert [-1] == records.commit([append(1, second, run=changed, intents=[b"i"])])

        assert [first] == records.rows(first.id, first.id)
        assert b"run" == there(records.run(b"a")).body
        assert [] == records.intended(1, b"i")

    def test_a_row_whose_forerunner_is_missing_is_refused(self, records: Records) -> None:
        """A journal never has a gap, whatever became of the commit before."""
        records.commit([create(b"a"), create(b"b")])

        assert [-1] == records.commit([append(1, journal_row(1, 2))])
        assert [row_id(1, 1), -1] == records.commit(
            [append(1, journal_row(1, 1)), append(1, journal_row(1, 3), intents=[b"i"])]
        )

        assert row_id(1, 1) == there(records.last(1)).id
        assert [] == records.intended(1, b"i")

    def test_a_grown_branch_becomes_the_head_in_one_commit(self, records: Records) -> None:
        """Branch, first row, catalog and index are written together; the old branch stays."""
        records.commit([create(b"a"), append(1, journal_row(1, 1)), append(1, journal_row(1, 2))])
        write = grow(1, at=row_id(1, 1), head=2, intents=[b"i"])

        assert [row_id(2, 2)] == records.commit([write])

        branch, run, row = write.build(2)
        assert branch == records.branch(2)
        assert [1, 2] == [each.no for each in records.branches(1)]
        assert run == records.run(b"a")
        assert row == records.last(2)
        assert [row_id(2, 2)] == records.intended(1, b"i")
        assert row_id(1, 2) == there(records.last(1)).id

    def test_a_branch_beside_the_history_leaves_the_run_as_it_is(self, records: Records) -> None:
        """It grows like any other; the run's row keeps its head and its body."""
        records.commit([create(b"a")])
        before = records.run(b"a")

        done = records.commit([grow(1, at=row_id(1, 0), head=2, is_aside=True)])

        assert [row_id(2, 1)] == done
        assert before == records.run(b"a")
        assert [1, 2] == [each.no for each in records.branches(1)]

    def test_a_fenced_branch_is_not_grown(self, records: Records) -> None:
        """Under another epoch, or for a run that does not exist, nothing is even built."""
        records.commit([create(b"a")])

        for no, epoch in [(1, 2), (1, 0), (9, 1)]:
            fenced = Grow(no=no, epoch=epoch, build=fail_to_build)
            assert [-1] == records.commit([fenced])

        assert [1] == [each.no for each in records.branches(1)]
        assert 1 == head(records, b"a")

    def test_an_error_in_the_middle_leaves_nothing_of_the_batch(self, records: Records) -> None:
        """One transaction: what stands before the failing write is undone with it."""
        records.commit([create(b"a")])
        writes: list[Write] = [append(1, journal_row(1, 1)), create(b"b")]
        writes += [grow(1, at=row_id(1, 1), head=3), Create(kid=b"c", build=fail_to_build)]

        with pytest.raises(UnbuildableError):
            records.commit(writes)

        assert [b"a"] == [run.kid for run in records.runs(None, 10)]
        assert row_id(1, 0) == there(records.last(1)).id
        assert 1 == head(records, b"a")
        assert [row_id(1, 1)] == records.commit([append(1, journal_row(1, 1))])

    def test_a_range_holds_both_its_ends_and_no_row_outside(self, records: Records) -> None:
        """Ranges may begin and end where no row is; an inverted one is empty."""
        records.commit([create(b"a"), create(b"b")])
        records.commit([append(1, journal_row(1, seq)) for seq in range(1, 5)])

        def seqs(first: int, last: int) -> list[int]:
            return [row.id - row_id(1, 0) for row in records.rows(first, last)]

        assert [1, 2, 3] == seqs(row_id(1, 1), row_id(1, 3))
        assert [2] == seqs(row_id(1, 2), row_id(1, 2))
        assert [4] == seqs(row_id(1, 4), row_id(1, 99))
        assert [0, 1, 2, 3, 4] == seqs(0, row_id(2, 0) - 1)
        assert [] == seqs(row_id(1, 5), row_id(1, 99))
        assert [] == seqs(row_id(1, 3), row_id(1, 2))

    def test_the_last_row_is_that_of_its_branch(self, records: Records) -> None:
        """Neighbouring branches do not show through."""
        records.commit([create(b"a"), create(b"b"), create(b"c")])
        records.commit([append(2, journal_row(2, 1)), append(3, journal_row(3, 1))])
        records.commit([append(3, journal_row(3, 2))])

        assert row_id(1, 0) == there(records.last(1)).id
        assert row_id(2, 1) == there(records.last(2)).id
        assert row_id(3, 2) == there(records.last(3)).id
        assert records.last(0) is None
        assert records.last(4) is None
        assert [-1, row_id(1, 0), row_id(2, 1), row_id(3, 2), -1] == [*map(records.end, range(5))]

    def test_runs_are_listed_newest_first_and_by_pages(self, records: Records) -> None:
        """`before` starts below a number; `limit` bounds the page."""
        records.commit([create(b"run %d" % n) for n in range(1, 8)])

        def numbers(before: int | None, limit: int) -> list[int]:
            return [run.no for run in records.runs(before, limit)]

        assert [7, 6, 5, 4, 3, 2, 1] == numbers(None, 100)
        assert [7, 6, 5] == numbers(None, 3)
        assert [4, 3, 2] == numbers(5, 3)
        assert [] == numbers(1, 3)
        assert [] == numbers(0, 3)

    def test_packing_rows_changes_nothing_that_is_read(self, records: Records) -> None:
        """A pack begins with the first unpacked row and ends with the row that asks for it."""
        records.commit([create(b"a"), create(b"b")])
        rows = [journal_row(1, seq, b"body %d" % seq * 50) for seq in range(1, 10)]
        for row in rows:
            packed = {row_id(1, 3): row_id(1, 0), row_id(1, 7): row_id(1, 4)}.get(row.id, -1)
            write = append(1, row, intents=[b"i"], pack_from=packed)
            assert [row.id] == records.commit([write])
            assert row == records.last(1)

        assert rows == records.rows(row_id(1, 1), row_id(1, 9))
        assert rows[3:6] == records.rows(row_id(1, 4), row_id(1, 6))
        assert [rows[1]] == records.rows(row_id(1, 2), row_id(1, 2))
        assert [row.id for row in rows] == records.intended(1, b"i")
        assert [journal_row(1, 0), *rows, journal_row(2, 0)] == records.rows(*EVERY_ID)

    def test_a_packed_row_keeps_its_place(self, records: Records) -> None:
        """The same one is recognised, another one refused, the next one follows it."""
        records.commit([create(b"a")])
        one, two, other = journal_row(1, 1), journal_row(1, 2), journal_row(1, 1, b"other")
        writes = [append(1, one), append(1, two, pack_from=row_id(1, 0))]
        assert [one.id, two.id] == records.commit(writes)

        assert [-1] == records.commit([append(1, other)])
        assert [one.id, two.id] == records.commit(writes)
        assert [one.id] == records.commit([writes[0]])
        assert [row_id(1, 3)] == records.commit([append(1, journal_row(1, 3))])

        assert [one, two, journal_row(1, 3)] == records.rows(row_id(1, 1), row_id(1, 9))

    def test_the_tail_is_what_is_not_packed(self, records: Records) -> None:
        """A backend that packs nothing has a tail of all rows."""
        records.commit([create(b"a"), append(1, journal_row(1, 1, b"12345"))])
        size = len(journal_row(1, 0).body) + 5
        assert (row_id(1, 0), size) == records.tail(1)
        assert (-1, 0) == records.tail(2)

        packing = append(1, journal_row(1, 2, b"123"), pack_from=row_id(1, 0))
        records.commit([packing])

        assert records.tail(1) in ((-1, 0), (row_id(1, 0), size + 3))

    def test_intents_are_found_by_run_and_in_order(self, records: Records) -> None:
        """A row may record several; an equal intent of another run is another's."""
        records.commit([create(b"a"), create(b"b")])
        records.commit(
            [
                append(1, journal_row(1, 1), intents=[b"x", b"y", b"x"]),
                append(2, journal_row(2, 1), intents=[b"x"]),
                append(1, journal_row(1, 2), intents=[b"x"]),
            ]
        )

        assert [row_id(1, 1), row_id(1, 2)] == records.intended(1, b"x")
        assert [row_id(1, 1)] == records.intended(1, b"y")
        assert [row_id(2, 1)] == records.intended(2, b"x")
        assert [] == records.intended(2, b"y")

    def test_commits_of_many_threads_are_all_kept(self, records: Records) -> None:
        """Each thread writes its own run; each finds every row of it, in order."""

        def work(n: int) -> list[int]:
            [no] = records.commit([create(b"run %d" % n)])
            branch = head(records, b"run %d" % n)
            for seq in range(1, COMMITS):
                row = journal_row(branch, seq)
                assert [row.id] == records.commit([append(no, row)])
                assert row == records.last(branch)
            return [row.id for row in records.rows(row_id(branch, 0), row_id(branch, COMMITS))]

        found = in_threads(work)

        assert all(COMMITS == len(ids) and ids == sorted(ids) for ids in found)
        assert THREADS * COMMITS == len({id_ for ids in found for id_ in ids})
        assert list(range(THREADS, 0, -1)) == [run.no for run in records.runs(None, 100)]

    def test_of_many_threads_that_write_one_place_one_wins(self, records: Records) -> None:
        """The others are told so, and the winner's row is what stands."""
        records.commit([create(b"a")])

        def work(n: int) -> int:
            return records.commit([append(1, journal_row(1, 1, b"by %d" % n))])[0]

        results = in_threads(work)

        assert [row_id(1, 1)] == [done for done in results if done >= 0]
        winner = results.index(row_id(1, 1))
        assert b"by %d" % winner == there(records.last(1)).body

    def test_reviving_a_sound_backend_changes_nothing(self, records: Records) -> None:
        """It may be asked at any time."""
        records.commit([create(b"a")])

        records.revive()

        assert [row_id(1, 1)] == records.commit([append(1, journal_row(1, 1))])

    def test_a_closed_store_refuses_every_call(self, records: Records) -> None:
        """Closing twice is fine; reviving does not open it again."""
        records.commit([create(b"a")])
        records.close()
        records.close()
        records.revive()
        calls: list[Callable[[], object]] = [
            lambda: records.commit([create(b"b")]),
            lambda: records.run(b"a"),
            lambda: records.note("a"),
            lambda: records.runs(None, 1),
            lambda: records.branch(1),
            lambda: records.branches(1),
            lambda: records.rows(0, 1),
            lambda: records.last(1),
            lambda: records.tail(1),
            lambda: records.intended(1, b"i"),
        ]

        for call in calls:
            with pytest.raises(StoreClosed):
                call()
