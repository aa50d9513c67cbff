"""Names of things: run ids, row ids and checkpoint ids."""

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec

MAIN = "__main__"
SCRIPT = "__holdfast_script__"
"""How a child process calls the script of its supervisor, which is `__main__` to that."""
RUN_ID_CHARS_MAX = 200
SEQ_BITS = 32
SEQ_MAX = (1 << SEQ_BITS) - 1

Point: TypeAlias = tuple[int, int]
"""A row id and the index of an entry in it."""

_POINT = re.compile(r"(?P<run>.+)@(?P<branch>\d{1,9})\.(?P<seq>\d{1,10})\.(?P<index>\d{1,9})")


def module_of(thing: object) -> str:
    """The module that a function or class is of, as it is recorded: a script is `__main__`."""
    module = getattr(thing, "__module__", None) or MAIN
    return MAIN if module == SCRIPT else module


def check_run_id(text: str) -> str:
    """Return `text` if it can name a run; raise `ValueError` saying why it cannot."""
    if not text:
        msg = "a run id is a non-empty string"
        raise ValueError(msg)
    if len(text) > RUN_ID_CHARS_MAX:
        msg = f"a run id has at most {RUN_ID_CHARS_MAX} characters, this one has {len(text)}"
        raise ValueError(msg)
    if not text.isprintable() or text != text.strip():
        msg = f"a run id is printable text without spaces around it, not {text!r}"
        raise ValueError(msg)
    return text


def row_id(branch: int, seq: int) -> int:
    """The id of a journal row: its branch and its place in it, in one ordered integer."""
    assert 0 <= seq <= SEQ_MAX
    return branch << SEQ_BITS | seq


def branch_of(row: int) -> int:
    """The branch a row id belongs to."""
    return row >> SEQ_BITS


def seq_of(row: int) -> int:
    """The place of a row in its branch."""
    return row & SEQ_MAX


def point_id(run: str, point: Point) -> str:
    """How people name a point of a run: `run-42@1.17.0` is branch 1, row 17, entry 0."""
    row, index = point
    return f"{run}@{branch_of(row)}.{seq_of(row)}.{index}"


def parse_point(text: str) -> tuple[str, Point] | None:
    """The run and the point that `point_id` named, or None; a run's id may hold an @ too."""
    found = _POINT.fullmatch(text)
    if found is None or int(found["seq"]) > SEQ_MAX:
        return None
    return found["run"], (row_id(int(found["branch"]), int(found["seq"])), int(found["index"]))


class Range(msgspec.Struct, frozen=True, array_like=True):
    """Row ids from `first` to `last`, both included, on one branch."""

    first: int
    last: int


def ranges(rows: Iterator[int]) -> list[Range]:
    """Join ascending row ids into the fewest ranges."""
    joined: list[Range] = []
    for row in rows:
        if joined and row == joined[-1].last + 1:
            joined[-1] = Range(joined[-1].first, row)
        elif not joined or row > joined[-1].last:
            joined.append(Range(row, row))
    return joined


def spans(ids: Iterable[int], gap: int) -> Iterator[Range]:
    """Ranges that cover sorted row ids, each on one branch, with at most `gap` rows to the next."""
    first = last = -1
    for id_ in ids:
        if first >= 0 and id_ - last > gap:  # As those of two branches always are.
            yield Range(first, last)
            first = -1
        first, last = first if first >= 0 else id_, id_
    if first >= 0:
        yield Range(first, last)
