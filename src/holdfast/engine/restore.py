"""The state at a point of a run: the newest base before it, and the changes since."""

from collections.abc import Iterable, Iterator

from holdfast.capture.state import State
from holdfast.errors import Damaged
from holdfast.model.ids import branch_of, seq_of
from holdfast.model.journal import Answer, Based, Happened, LoopLeft, Resumed, TurnEnded
from holdfast.store.codec import values
from holdfast.store.reader import Placed, Reader

Point = tuple[int, int]
"""A row id and the index of an entry in it."""


def state_at(reader: Reader, rows: Iterable[Placed], point: Point | None = None) -> State | None:
    """The state at the newest turn's end in `rows`, or right after the `LoopLeft` at `point`.

    `rows` start at the row of the newest base, or at the run's first. None: no turn has ended.
    """
    base: bytes | None = None
    deltas: list[bytes | None] = []
    left: list[bytes | None] = []
    is_any = False
    for placed in rows:
        for index, entry in enumerate(placed.row.entries):
            match entry:
                case Based():
                    base, deltas, left, is_any = entry.state, [], [], True
                case Resumed():
                    left = []  # The new life runs the open turn from its start.
                case LoopLeft():
                    left = [entry.delta]
                    if point == (placed.id, index):
                        return _build(reader, base, [*deltas, *left])
                case TurnEnded():
                    deltas += [*left, entry.delta]
                    left, is_any = [], True
                case _:
                    pass
    return _build(reader, base, deltas) if is_any else None


def rows_to(reader: Reader, head: int, point: Point) -> Iterator[Placed]:
    """The rows that `state_at` needs for a point: from the newest base before it."""
    row, index = point
    placed = reader.row(row)
    base = placed.row.base
    if any(isinstance(entry, Based) for entry in placed.row.entries[index:]):
        base = row_before(reader, head, row).row.base
    return reader.rows(head, base if base >= 0 else reader.first(head), row)


def row_before(reader: Reader, head: int, row: int) -> Placed:
    """The row before `row` on the line of history that ends in `head`."""
    branch = next(each for each in reader.line(head) if each.no == branch_of(row))
    if branch.parent and seq_of(row) == seq_of(branch.at) + 1:
        return reader.row(branch.at)
    return reader.row(row - 1)


def _build(reader: Reader, base: bytes | None, deltas: list[bytes | None]) -> State:
    changes = [delta for delta in deltas if delta is not None]
    start = base if base is not None else State().base()
    return State.restore(start, changes, lambda token: _answer(reader, token))


def _answer(reader: Reader, token: tuple[int, ...]) -> object:
    """The recorded answer a state refers to instead of repeating it."""
    entry = reader.row(token[0]).row.entries[token[1]]
    if not isinstance(entry, Answer | Happened):
        raise Damaged(f"journal row {token[0]:#x}", f"entry {token[1]} is not an answer")
    return values.decode(entry.value)
