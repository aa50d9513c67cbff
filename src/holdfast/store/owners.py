"""Whose rows are missing, as far as a damaged store can tell."""

import contextlib
from collections.abc import Iterable

from holdfast.errors import Damaged
from holdfast.model.ids import branch_of
from holdfast.store.reader import Reader

NAMED_MAX = 5


def owner(reader: Reader, row: int) -> str | None:
    """The id of the run that a row belongs to, whether or not the row is there."""
    with contextlib.suppress(Damaged, TypeError, ValueError):
        return reader.owner(branch_of(row)).body.id
    return None


def named(reader: Reader, rows: Iterable[int]) -> str:
    """The runs of these rows for people; empty where none can be told."""
    runs = sorted({run for row in rows if (run := owner(reader, row)) is not None})
    shown = ", ".join(runs[:NAMED_MAX])
    return f"{shown}, …" if len(runs) > NAMED_MAX else shown
