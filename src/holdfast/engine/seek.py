"""Finding a turn in a long run by halving: a look at a few rows, not at all of them.

Along a line of history the turn that a row was written in never falls; rows outside turns say -1.
"""

from collections.abc import Iterator

from holdfast.model.ids import row_id, seq_of
from holdfast.store.reader import Placed, Reader


def rows_from_turn(reader: Reader, head: int, turn: int) -> Iterator[Placed]:
    """The rows of the line that ends in `head`, read one by one, from before `turn` ended.

    The first is the newest that was written in an earlier turn, or the run's first.
    """
    line = _Line(reader, head)
    for seq in range(_newest_before(line, turn), line.end + 1):
        yield line.row(seq)


def _newest_before(line: "_Line", turn: int) -> int:
    """The sequence of the newest row that was written in a turn before `turn`; else 0."""
    found, low, high = 0, 1, line.end
    while low <= high:
        middle = (low + high) // 2
        at = middle
        while at >= low and line.row(at).row.turn < 0:
            at -= 1
        if at < low:
            low = middle + 1  # Nothing here says which turn it was.
        elif line.row(at).row.turn < turn:
            found, low = at, middle + 1
        else:
            high = at - 1
    return found


class _Line:
    """The rows of a line of history by their sequence, which has no gap through its branches."""

    def __init__(self, reader: Reader, head: int) -> None:
        self._reader = reader
        self._branches = reader.line(head)[::-1]
        self.end = seq_of(reader.end(head))

    def row(self, seq: int) -> Placed:
        """The row of that sequence."""
        after = None
        for branch in self._branches:
            if not branch.parent or seq > seq_of(branch.at):
                return self._reader.kept(self._reader.row(row_id(branch.no, seq)), after)
            after = branch
        raise AssertionError("a line of history begins with a branch that has no parent")
