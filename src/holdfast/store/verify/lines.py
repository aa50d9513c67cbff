"""What the journal of one run says along its branches, to be held against the catalog."""

import hashlib
from collections.abc import Iterator

from holdfast.model import journal
from holdfast.model.ids import seq_of
from holdfast.store.backends.base import BranchRow

INTENT_BYTES = 16


class Lines:
    """What the branches of one run have said so far."""

    def __init__(self) -> None:
        self.epoch = 1
        self.started: tuple[str, str] | None = None
        self.last: dict[int, journal.Entry] = {}
        self._bases: dict[int, list[int]] = {}
        self._keys: dict[int, dict[str, int]] = {}
        self._parents: dict[int, tuple[int, int]] = {}
        self._baseless: set[int] = set()

    def grow(self, branch: BranchRow) -> bool:
        """A branch begins; False if what it says to have grown from is no branch before it."""
        is_sound = not branch.parent or branch.parent in self._bases
        self._parents[branch.no] = (branch.parent, branch.at) if is_sound else (0, 0)
        self._bases[branch.no], self._keys[branch.no] = [], {}
        return is_sound

    def read(self, branch: BranchRow, id_: int, row: journal.Row) -> Iterator[str]:
        """Take a row in; says what in it does not fit what came before."""
        is_first = not branch.parent and seq_of(id_) == 0
        for entry in row.entries:
            if isinstance(entry, journal.Started) != is_first:
                yield "the start of a run stands in its first row, alone"
                break
        for entry in row.entries:
            if isinstance(entry, journal.Started):
                self.started = (entry.agent, entry.module)
            elif isinstance(entry, journal.Resumed):
                self.epoch = max(self.epoch, entry.epoch)
            elif isinstance(entry, journal.Based):
                self._bases[branch.no].append(id_)
        if row.entries:
            self.last[branch.no] = row.entries[-1]
        else:
            yield "it holds no entries"
        if row.base != self._newest_base(branch.no, id_) and branch.no not in self._baseless:
            self._baseless.add(branch.no)  # One damaged base is one finding, not one for each row.
            yield f"it names {row.base:#x} as its base, which is not the newest before it"

    def _newest_base(self, branch: int, until: int) -> int:
        while branch in self._bases:
            for id_ in reversed(self._bases[branch]):
                if id_ <= until:
                    return id_
            branch, until = self._parents[branch]
        return -1

    def new_intents(self, branch: BranchRow, id_: int, row: journal.Row) -> Iterator[bytes]:
        """The intents that a row records for the first time on its line of history."""
        for entry in row.entries:
            if isinstance(entry, journal.Intended):
                if self._is_known(branch.no, entry.key, id_):
                    continue
                self._keys[branch.no][entry.key] = id_
                text = entry.call.name.encode() + b"\0" + entry.call.digest
                yield hashlib.sha256(text).digest()[:INTENT_BYTES]

    def _is_known(self, branch: int, key: str, until: int) -> bool:
        while branch in self._keys:
            if self._keys[branch].get(key, until + 1) <= until:
                return True
            branch, until = self._parents[branch]
        return False
