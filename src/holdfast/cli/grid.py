"""A table as data, and as plain text for whoever is no terminal."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.cli.text import line, width
from holdfast.store.codec.veil import redact


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Rows of text under names; `right` names the columns of numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[str] = frozenset()
    has_header: bool = True


def aligned(grid: Grid) -> str:
    """A grid as plain text, one row a line, however wide."""
    rows = [[line(redact(cell)) for cell in row] for row in grid.rows]
    if grid.has_header:
        rows.insert(0, [name.upper() for name in grid.columns])
    widths = [max((width(row[n]) for row in rows), default=0) for n in range(len(grid.columns))]
    return "\n".join(
        "  ".join(
            _filled(cell, most, is_right=name in grid.right)
            for name, cell, most in zip(grid.columns, row, widths, strict=True)
        ).rstrip()
        for row in rows
    )


def _filled(cell: str, columns: int, *, is_right: bool) -> str:
    rest = " " * (columns - width(cell))
    return rest + cell if is_right else cell + rest
