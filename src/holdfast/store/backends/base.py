"""What a backend promises: rows in one transaction at a time, large bytes by their id.

A backend knows names and bytes, not what they mean. Every implementation passes
`testing.contract.RecordsContract` or `ObjectsContract`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

PRUNED = b"\x00"
"""No frame begins with it."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the catalog: `kid` is its keyed id, `head` its branch that goes on.

    `key` is given to `Create` in an encrypted store: the run's own key, wrapped.
    """

    no: int
    kid: bytes
    epoch: int
    head: int
    mac: bytes
    body: bytes
    key: bytes = b""


class BranchRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a run's history, grown from row `at` of `parent` (both 0 for the first)."""

    no: int
    run: int
    parent: int
    at: int
    mac: bytes
    body: bytes


class JournalRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One commit of one run.

    A row out of a sealed pack is open already and says after which hash it stands: `before`.
    A body that begins with `PRUNED` was put in place of another when the row was pruned: `mac` is
    still the hash of what was there, so that the row behind it follows it.
    """

    id: int
    mac: bytes
    body: bytes
    before: bytes | None = None


Name = tuple[int, int, int, int]
"""How many containers a value has, the row and the entry it stands in, and its ordinal there."""


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """The values that a pack of the rows from `first` to `last` holds beside them, decoded.

    `ends` are the hash before its first row and that of its last.
    """

    first: int
    last: int
    ends: tuple[bytes, bytes]
    names: list[Name]
    values: list[Any]


class Create(msgspec.Struct, frozen=True, kw_only=True):
    """Make a run. `build` is given the numbers of run and branch and returns their rows.

    `intents` are indexed with the row in the ledger of run `ledger` (0: of the run itself).
    `notes` are what it relies on: keys, and what `Records.note` has to say of them still.
    """

    kid: bytes
    build: Callable[[int, int], tuple[RunRow, BranchRow, JournalRow]]
    objects: Mapping[bytes, bytes] = {}
    intents: Sequence[bytes] = ()
    ledger: int = 0
    notes: Mapping[str, bytes | None] = {}


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """Add a row to a run while `epoch` is still the run's epoch; else nothing is written.

    The row follows the newest one of its branch; the very row that stands there already is fine.

    `run` replaces the run's row in the same commit (its epoch may be higher: a takeover);
    `intents` are indexed with the row in the ledger of run `ledger` (0: of the run itself); with
    `pack_from` the rows from there to this one may be packed in the same commit. `objects` are
    large values that the row names and that were kept just now; as in every write, they are there
    when the commit is. `is_pruned`: the row stands for one whose content garbage collection removed
    elsewhere, which is noted of its branch. `is_sole`: the writer promises that under this epoch
    nobody else adds to the branch, so that a backend may know where it ends.
    """

    no: int
    epoch: int
    row: JournalRow
    run: RunRow | None = None
    intents: Sequence[bytes] = ()
    pack_from: int = -1
    objects: Mapping[bytes, bytes] = {}
    ledger: int = 0
    is_pruned: bool = False
    is_sole: bool = False


class Grow(msgspec.Struct, frozen=True, kw_only=True):
    """Start a branch while `epoch` is still the run's epoch; `build` is given its number.

    Without a row of the run the head stays where it is: the branch stands beside its history.
    """

    no: int
    epoch: int
    build: Callable[[int], tuple[BranchRow, RunRow | None, JournalRow]]
    intents: Sequence[bytes] = ()
    objects: Mapping[bytes, bytes] = {}
    ledger: int = 0


Write = Create | Append | Grow


class Records(Protocol):
    """Rows of a store. Once `commit` returns, what it wrote survives a power cut."""

    def commit(self, writes: Sequence[Write]) -> list[int]:
        """Do all `writes` in one transaction.

        For each: the run's number (`Create`), the row's id (`Append`, `Grow`), or -1 where the
        epoch has moved on (fenced), the place is another's, the run exists already, the branch
        it is to grow from is gone, or a note is another: that write alone did nothing.
        """

    def run(self, kid: bytes) -> RunRow | None:
        """The run of that keyed id."""

    def runs(self, before: int | None, limit: int) -> list[RunRow]:
        """Up to `limit` runs, newest first, with numbers below `before`."""

    def check_catalog(self, span: tuple[int, int] | None = None) -> None:
        """Raise `Damaged` if a run may look absent though it is there. Cheap after the first time.

        Asked before a run is said to be absent: it would be started anew. With a `span` only of
        the runs with numbers from the one to the other, for lists, at their price.
        """

    def branch(self, no: int) -> BranchRow | None:
        """The branch of that number."""

    def branches(self, run: int) -> list[BranchRow]:
        """Every branch of a run, oldest first."""

    def rows(self, first: int, last: int) -> list[JournalRow]:
        """The journal rows with ids from `first` to `last`, both included, in order."""

    def beside(self, first: int, last: int) -> list[Beside]:
        """Values of rows from `first` to `last` that can be had without the rows, pack by pack.

        A pack that is damaged is passed over: its rows say so when they are read.
        """

    def last(self, branch: int) -> JournalRow | None:
        """The newest journal row of a branch."""

    def end(self, branch: int) -> int:
        """The id of the newest row of a branch (-1: none), known without opening any row."""

    def tail(self, branch: int) -> tuple[int, int]:
        """The id of the first row of a branch that is not packed (-1: none), and their bytes."""

    def intended(self, ledger: int, intent: bytes) -> list[int]:
        """Ids of the rows indexed under this intent in the ledger of a run, in order."""

    def note(self, key: str) -> bytes | None:
        """What is noted under a key about the whole store, beside all runs; None: nothing."""

    def key(self, no: int) -> bytes | None:
        """The wrapped key of a run, or (0) of the store; None where there is none."""

    def revive(self) -> None:
        """After a failed commit: open anew and read what stands. No-op on a sound backend."""

    def close(self) -> None:
        """Let go of everything. Idempotent."""


class Objects(Protocol):
    """Large bytes under an id that is their hash. Once `put` returns they survive a power cut."""

    def put(self, id_: bytes, data: bytes) -> None:
        """Keep `data`; an id that is kept already stays as it is."""

    def uphold(self, id_: bytes, data: bytes) -> None:
        """Keep `data` again if it was taken away since; asked while nobody can take it away."""

    def remove(self, id_: bytes) -> None:
        """Take away what is kept under `id_`; asked while nobody can come to name it."""

    def get(self, id_: bytes) -> bytes | None:
        """The bytes kept under `id_`, or None."""

    def ids(self) -> Iterator[bytes]:
        """Every id that is kept."""
