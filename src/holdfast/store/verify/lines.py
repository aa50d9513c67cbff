"""What the journal of one run says along its branches, to be held against the catalog."""

from collections.abc import Iterator

from holdfast.model import branches, journal
from holdfast.model.ids import Point, seq_of
from holdfast.model.run import RunBody, Status
from holdfast.store.backends.base import RunRow
from holdfast.store.marks import marks_of
from holdfast.store.reader import ALL, Branch


class Lines:
    """What the branches of one run have said so far."""

    def __init__(self) -> None:
        self.epoch = 1
        self.started: tuple[str, str] | None = None
        self.last: dict[int, journal.Entry] = {}
        self.rolling: set[int] = set()
        self._bases: dict[int, list[Point]] = {}
        self._keys: dict[int, dict[str, Point]] = {}
        self._parents: dict[int, tuple[int, Point]] = {}
        self._inherited: dict[int, int] = {}
        self._baseless: set[int] = set()
        self._pruned: set[int] = set()  # rows that may have held a base

    def grow(self, branch: Branch, inherited: int | None = None) -> bool:
        """A branch begins; False if what it says to have grown from is no branch before it.

        `inherited` is the newest base at the point of another run from which a fork grew.
        """
        is_own = branch.parent in self._bases
        if inherited is not None:
            self._inherited[branch.no] = inherited
        self._parents[branch.no] = (branch.parent, branch.grown_from) if is_own else (0, (0, 0))
        self._bases[branch.no], self._keys[branch.no] = [], {}
        return is_own or not branch.parent or inherited is not None

    def knows(self, branch: int) -> bool:
        """Whether a branch of the run has begun."""
        return branch in self._bases

    def read(self, branch: Branch, id_: int, row: journal.Row) -> Iterator[str]:
        """Take a row in; says what in it does not fit what came before."""
        is_first = not branch.parent and seq_of(id_) == 0
        for entry in row.entries:
            if isinstance(entry, journal.Started) != is_first:
                yield "the start of a run stands in its first row, alone"
                break
        for index, entry in enumerate(row.entries):
            if isinstance(entry, journal.Started):
                self.started = (entry.agent, entry.module)
            elif isinstance(entry, journal.Resumed):
                self.epoch = max(self.epoch, entry.epoch)
            elif isinstance(entry, journal.Based):
                self._bases[branch.no].append((id_, index))
            elif isinstance(entry, journal.Pruned):
                self._pruned.add(id_)
        self._roll(branch.no, row)
        if row.entries:
            self.last[branch.no] = row.entries[-1]
        else:
            yield "it holds no entries"
        if not self._fits(branch.no, id_, row) and branch.no not in self._baseless:
            self._baseless.add(branch.no)  # One damaged base is one finding, not one for each row.
            yield f"it names {row.base:#x} as its base, which is not the newest before it"

    def compare(self, row: RunRow, body: RunBody) -> Iterator[str]:
        """Say where the catalog tells of the run something else than its journal."""
        if row.epoch != self.epoch:
            yield f"its epoch is {row.epoch}, its journal goes up to {self.epoch}"
        recorded = self._status(row.head)
        if recorded is not None and recorded is not body.status:
            yield f"its status is {body.status}, its journal says {recorded}"
        if self.started is not None and self.started != (body.agent, body.module):
            yield "its agent is not the one its journal was started with"

    def _status(self, head: int) -> Status | None:
        last = self.last.get(head)
        if last is None:
            return None
        if isinstance(last, journal.Finished):
            return Status.FINISHED
        if head in self.rolling:
            return Status.ROLLING_BACK
        if isinstance(last, journal.Failed):
            return next((each for each in Status if each == last.status), Status.FAILED)
        return Status.RUNNING

    def _roll(self, branch: int, row: journal.Row) -> None:
        """Whether a rollback that began on a branch is over."""
        for entry in row.entries:
            if isinstance(entry, branches.RolledBack | branches.Retaking):
                self.rolling.add(branch)
            elif isinstance(entry, branches.Settled | branches.Retaken):
                self.rolling.discard(branch)

    def _fits(self, branch: int, id_: int, row: journal.Row) -> bool:
        """Whether a row names the newest base before it, as far as that can still be known."""
        if id_ in self._pruned or row.base in self._pruned:
            return True
        return row.base == self._newest_base(branch, (id_, ALL))

    def _newest_base(self, branch: int, until: Point) -> int:
        inherited = -1
        while branch in self._bases:
            for at in reversed(self._bases[branch]):
                if at < until:
                    return at[0]
            inherited = self._inherited.get(branch, -1)
            branch, until = self._parents[branch]
        return inherited

    def new_intents(self, branch: Branch, id_: int, row: journal.Row) -> Iterator[bytes]:
        """What a row is indexed under; an intent, where it is the first on its line of history.

        Others are found by that one, and need not be indexed.
        """
        for index, entry in enumerate(row.entries):
            if isinstance(entry, journal.Intended):
                if self._is_known(branch.no, entry.key, (id_, index)):
                    continue
                self._keys[branch.no][entry.key] = (id_, index)
            yield from marks_of(entry)

    def _is_known(self, branch: int, key: str, until: Point) -> bool:
        while branch in self._keys:
            if self._keys[branch].get(key, until) < until:
                return True
            branch, until = self._parents[branch]
        return False
