"""Of which branches this process alone adds rows, and with which row each of them ends.

What is known here needs no look into the database: that the epoch is still the run's, and that the
row before stands. It is known of rows that this process wrote itself and was promised to be the
only one to write, for as long as nobody may have fenced it.
"""

from collections.abc import Sequence

from holdfast.model.ids import SEQ_BITS, branch_of
from holdfast.store.backends.base import Append, Write

BRANCHES_MAX = 4096


class Soles:
    """Branch → run, epoch and newest row; true as long as the store's `fence` is the same."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[int, int, int]] = {}
        self._fence = -1

    def are_next(self, writes: Sequence[Write], fence: int) -> bool:
        """Whether all are bare rows that surely follow their branches' newest, unfenced.

        They are taken for written then: whoever does not write them says what was, or forgets.
        """
        if fence != self._fence:
            self.forget()
            return False
        ends = self._ends
        for write in writes:
            # As `is_bare` says it, but this is asked of each row that is written.
            if type(write) is not Append or not write.is_sole or write.run is not None:
                return False
            if write.intents or write.pack_from >= 0 or write.is_pruned:
                return False
            id_, no, epoch = write.row.id, write.no, write.epoch
            branch = id_ >> SEQ_BITS
            if ends.get(branch) != (no, epoch, id_ - 1):
                return False
            ends[branch] = no, epoch, id_
        return True

    def put_back(self, write: Append) -> None:
        """It was not written."""
        id_ = write.row.id
        self._ends[branch_of(id_)] = write.no, write.epoch, id_ - 1

    def learn(self, writes: Sequence[Write], done: Sequence[int], fence: int) -> None:
        """The database has written the rows that are `done`; the others are not known."""
        if fence != self._fence or len(self._ends) >= BRANCHES_MAX:
            self.forget()  # What is not known is looked up once.
        self._fence = fence
        for write, row in zip(writes, done, strict=True):
            if type(write) is Append:
                branch = branch_of(write.row.id)
                if row < 0:
                    self._ends.pop(branch, None)
                else:
                    epoch = write.epoch if write.run is None else write.run.epoch
                    self._ends[branch] = write.no, epoch, row

    def forget(self) -> None:
        """Somebody may have been fenced, or nobody knows what was written."""
        self._ends.clear()


def is_bare(write: Write) -> bool:
    """Whether a write is a row and nothing else."""
    if type(write) is not Append:
        return False
    is_alone = write.run is None and not write.intents and write.pack_from < 0
    return is_alone and not write.is_pruned
