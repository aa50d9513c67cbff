"""Rows of made-up bytes, for suites that look at backends and not at what rows mean."""

import hashlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn, TypeVar

from holdfast.model.ids import branch_of, row_id, seq_of
from holdfast.store.backends.base import (
    Append,
    BranchRow,
    Create,
    Grow,
    JournalRow,
    Records,
    RunRow,
)

T = TypeVar("T")

THREADS = 6
EVERY_ID = (0, 1 << 62)
"""The range that holds every row."""


def create(kid: bytes, body: bytes = b"run") -> Create:
    """Make a run of made-up bytes."""
    return Create(kid=kid, build=lambda no, branch: first_rows(kid, no, branch, body))


def first_rows(
    kid: bytes, no: int, branch: int, body: bytes = b"run"
) -> tuple[RunRow, BranchRow, JournalRow]:
    """The three rows of a new run."""
    return (
        RunRow(no=no, kid=kid, epoch=1, head=branch, mac=mac("run", no), body=body),
        BranchRow(no=branch, run=no, parent=0, at=0, mac=mac("branch", branch), body=b"branch"),
        journal_row(branch, 0),
    )


def append(
    no: int,
    row: JournalRow,
    *,
    epoch: int = 1,
    run: RunRow | None = None,
    intents: Sequence[bytes] = (),
    pack_from: int = -1,
    is_sole: bool = True,
) -> Append:
    """Add a row to run `no`."""
    return Append(
        no=no,
        epoch=epoch,
        row=row,
        run=run,
        intents=intents,
        pack_from=pack_from,
        is_sole=is_sole,
    )


def grow(
    no: int,
    *,
    at: int,
    head: int,
    epoch: int = 1,
    intents: Sequence[bytes] = (),
    is_aside: bool = False,
) -> Grow:
    """Branch run `no` off after row `at`; the test expects the number `head` for the branch.

    `is_aside` leaves the run's head where it is.
    """

    def build(branch: int) -> tuple[BranchRow, RunRow | None, JournalRow]:
        assert head == branch
        parent, seq = branch_of(at), seq_of(at)
        run = RunRow(no=no, kid=b"a", epoch=epoch, head=branch, mac=mac("grown"), body=b"grown")
        return (
            BranchRow(no=branch, run=no, parent=parent, at=at, mac=mac("b", branch), body=b"b"),
            None if is_aside else run,
            journal_row(branch, seq + 1),
        )

    return Grow(no=no, epoch=epoch, build=build, intents=intents)


class UnbuildableError(Exception):
    """What a write of a test raises while it is built."""


def fail_to_build(*numbers: int) -> NoReturn:
    """A build that raises, or must not be reached."""
    raise UnbuildableError(numbers)


def journal_row(branch: int, seq: int, body: bytes = b"row") -> JournalRow:
    """A row of made-up bytes; equal ones have equal hashes."""
    return JournalRow(id=row_id(branch, seq), mac=mac(branch, seq, body), body=body)


def mac(*parts: object) -> bytes:
    """32 bytes that differ when the parts do."""
    return hashlib.sha256(repr(parts).encode()).digest()


def there(row: T | None) -> T:
    """The row, which must be there."""
    assert row is not None
    return row


def head(records: Records, kid: bytes) -> int:
    """The branch that goes on."""
    run = records.run(kid)
    assert run is not None
    return run.head


def everything(records: Records) -> list[object]:
    """All that is read of a small store, in a fixed order."""
    runs = records.runs(None, 1000)
    branches = [branch for run in runs for branch in records.branches(run.no)]
    intents = [(run.no, records.intended(run.no, b"i")) for run in runs]
    return [runs, branches, intents, records.rows(*EVERY_ID)]


def in_threads(work: Callable[[int], T]) -> list[T]:
    """What `work(0)`, `work(1)`, … give when they all begin at once."""
    gate = threading.Barrier(THREADS)

    def begin(n: int) -> T:
        gate.wait()
        return work(n)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))
