"""Records in memory: dicts under a lock, the reference for every backend of rows."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from holdfast.errors import StoreClosed
from holdfast.model.ids import branch_of
from holdfast.store.backends.base import (
    Append,
    Beside,
    BranchRow,
    Create,
    Grow,
    JournalRow,
    RunRow,
    Write,
)
from holdfast.store.backends.sweep import pruned_again, pruned_key


class MemoryRecords:
    """Rows of a store that ends with its process; what others keep on a disk, said in dicts."""

    def __init__(self, store_id: bytes = bytes(16)) -> None:
        self.store_id = store_id
        self._lock = threading.Lock()
        self._tables = _Tables()
        self._fault: StoreClosed | None = None

    def commit(self, writes: Sequence[Write]) -> list[int]:
        """Do all `writes` or, when one of them raises, nothing."""
        with self._lock:
            tables = self._open_tables().copy()
            done = [tables.do(write) for write in writes]
            self._tables = tables
        return done

    def note(self, key: str) -> bytes | None:
        """What is noted under a key about the whole store."""
        return self._read().notes.get(key)

    def run(self, kid: bytes) -> RunRow | None:
        """The run of that keyed id."""
        return self._read().find(kid)

    def runs(self, before: int | None, limit: int) -> list[RunRow]:
        """Up to `limit` runs, newest first."""
        runs = self._read().runs
        numbers = sorted((no for no in runs if before is None or no < before), reverse=True)
        return [runs[no] for no in numbers[:limit]]

    def check_catalog(self, span: tuple[int, int] | None = None) -> None:
        """Nothing can be damaged here."""

    def branch(self, no: int) -> BranchRow | None:
        """The branch of that number."""
        return self._read().branches.get(no)

    def branches(self, run: int) -> list[BranchRow]:
        """Every branch of a run, oldest first."""
        branches = self._read().branches
        return [branches[no] for no in sorted(branches) if branches[no].run == run]

    def rows(self, first: int, last: int) -> list[JournalRow]:
        """The journal rows with ids from `first` to `last`, in order."""
        rows = self._read().rows
        return [rows[id_] for id_ in sorted(rows) if first <= id_ <= last]

    def beside(self, first: int, last: int) -> list[Beside]:  # noqa: ARG002 there are no packs
        """Nothing stands beside rows here."""
        return []

    def last(self, branch: int) -> JournalRow | None:
        """The newest journal row of a branch."""
        rows = self._read().rows
        newest = max((id_ for id_ in rows if branch_of(id_) == branch), default=None)
        return None if newest is None else rows[newest]

    def end(self, branch: int) -> int:
        """The id of the newest row of a branch."""
        return max((id_ for id_ in self._read().rows if branch_of(id_) == branch), default=-1)

    def tail(self, branch: int) -> tuple[int, int]:
        """All rows of a branch: nothing is packed here."""
        rows = self._read().rows
        ids = [id_ for id_ in rows if branch_of(id_) == branch]
        return min(ids, default=-1), sum(len(rows[id_].body) for id_ in ids)

    def intended(self, ledger: int, intent: bytes) -> list[int]:
        """Ids of the rows indexed under this intent in the ledger of a run."""
        found = self._read().intents
        return sorted(id_ for no, known, id_ in found if (no, known) == (ledger, intent))

    def key(self, no: int) -> bytes | None:
        """The wrapped key of a run."""
        return self._read().keys.get(no)

    def revive(self) -> None:
        """Nothing to do: a commit here has no unknown outcome."""

    def close(self) -> None:
        """Refuse every call from now on. Idempotent."""
        with self._lock:
            self._fault = StoreClosed("memory", "is closed")

    def _read(self) -> "_Tables":
        """The tables of the newest commit; nobody changes them any more."""
        with self._lock:
            return self._open_tables()

    def _open_tables(self) -> "_Tables":
        if self._fault is not None:
            raise self._fault
        return self._tables


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tables:
    """What one commit left. A commit works on a copy, so that it is seen whole or not at all."""

    runs: dict[int, RunRow] = field(default_factory=dict)
    branches: dict[int, BranchRow] = field(default_factory=dict)
    rows: dict[int, JournalRow] = field(default_factory=dict)
    intents: set[tuple[int, bytes, int]] = field(default_factory=set)
    keys: dict[int, bytes] = field(default_factory=dict)
    notes: dict[str, bytes] = field(default_factory=dict)

    def copy(self) -> "_Tables":
        return _Tables(
            runs=self.runs.copy(),
            branches=self.branches.copy(),
            rows=self.rows.copy(),
            intents=self.intents.copy(),
            keys=self.keys.copy(),
            notes=self.notes.copy(),
        )

    def find(self, kid: bytes) -> RunRow | None:
        return next((run for run in self.runs.values() if run.kid == kid), None)

    def do(self, write: Write) -> int:
        match write:
            case Append():
                return self._append(write)
            case Create():
                return self._create(write)
            case Grow():
                return self._branch_off(write)

    def _append(self, write: Append) -> int:
        row = write.row
        if not self._is_at(write.no, write.epoch):
            return -1
        known = self.rows.get(row.id)
        if row.id - 1 not in self.rows or (known is not None and known.mac != row.mac):
            return -1
        self.rows[row.id] = row
        if write.run is not None:
            self._update(write.run)
        self._index(write.ledger or write.no, write.intents, row.id)
        if write.is_pruned:
            key = pruned_key(branch_of(row.id))
            self.notes[key] = pruned_again(self.notes.get(key))
        return row.id

    def _create(self, write: Create) -> int:
        if self.find(write.kid) is not None:
            return -1
        run, branch, row = write.build(_next(self.runs), _next(self.branches))
        if branch.parent and branch.parent not in self.branches:
            return -1
        if any(self.notes.get(key) != value for key, value in write.notes.items()):
            return -1
        self.runs[run.no] = replace(run, key=b"")
        if run.key:
            self.keys[run.no] = run.key
        self.branches[branch.no] = branch
        self.rows[row.id] = row
        self._index(write.ledger or run.no, write.intents, row.id)
        return run.no

    def _branch_off(self, write: Grow) -> int:
        if not self._is_at(write.no, write.epoch):
            return -1
        branch, run, row = write.build(_next(self.branches))
        self.branches[branch.no] = branch
        if run is not None:
            self._update(run)
        self.rows[row.id] = row
        self._index(write.ledger or write.no, write.intents, row.id)
        return row.id

    def _is_at(self, no: int, epoch: int) -> bool:
        run = self.runs.get(no)
        return run is not None and run.epoch == epoch

    def _update(self, run: RunRow) -> None:
        self.runs[run.no] = replace(run, kid=self.runs[run.no].kid, key=b"")

    def _index(self, ledger: int, intents: Sequence[bytes], row: int) -> None:
        self.intents.update((ledger, intent, row) for intent in intents)


def _next(numbers: dict[int, RunRow] | dict[int, BranchRow]) -> int:
    return max(numbers, default=0) + 1


class MemoryObjects:
    """Large bytes under their id, gone with the process."""

    def __init__(self) -> None:
        self._kept: dict[bytes, bytes] = {}

    def uphold(self, id_: bytes, data: bytes) -> None:
        """Keep `data` again if it was taken away since."""
        self.put(id_, data)

    def remove(self, id_: bytes) -> None:
        """Take away what is kept under `id_`."""
        self._kept.pop(id_, None)

    def put(self, id_: bytes, data: bytes) -> None:
        """Keep `data`; an id that is kept already stays as it is."""
        self._kept.setdefault(id_, data)

    def get(self, id_: bytes) -> bytes | None:
        """The bytes kept under `id_`, or None."""
        return self._kept.get(id_)

    def ids(self) -> Iterator[bytes]:
        """Every id that is kept."""
        yield from sorted(self._kept)
