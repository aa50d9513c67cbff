"""The same result as a table, as JSON or as JSON lines on stdout; messages go to stderr."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.cli.text import harmless, line
from holdfast.cli.values import to_json

SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Grid:
    """Rows of text under names; `right` names the columns of numbers, `last` may be broken."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[str] = frozenset()
    has_header: bool = True


def emit(
    how: str,
    *,
    document: Mapping[str, object],
    lines: Iterable[Mapping[str, object]],
    grids: Sequence[Grid | str],
) -> None:
    """Print a result: `document` as json, `lines` as jsonl, `grids` as a table."""
    match how:
        case "json":
            put(to_json({"schema_version": SCHEMA_VERSION, **document}))
        case "jsonl":
            for each in lines:
                put(to_json({"schema_version": SCHEMA_VERSION, **each}, indent=None))
        case _:
            show(grids)


def show(grids: Sequence[Grid | str]) -> None:
    """Print tables and lines of text."""
    if is_terminal():
        from holdfast.cli import terminal  # noqa: PLC0415 rich is slow to load

        terminal.show(grids)
    else:
        for grid in grids:
            put(grid if isinstance(grid, str) else aligned(grid))


def aligned(grid: Grid) -> str:
    """A grid as plain text, one row a line, however wide."""
    rows = [[line(cell) for cell in row] for row in grid.rows]
    if grid.has_header:
        rows.insert(0, [name.upper() for name in grid.columns])
    widths = [max((len(row[n]) for row in rows), default=0) for n in range(len(grid.columns))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if name in grid.right else cell.ljust(width)
            for name, cell, width in zip(grid.columns, row, widths, strict=True)
        ).rstrip()
        for row in rows
    )


def put(text: str) -> None:
    """A line of the result, on stdout."""
    sys.stdout.write(text + "\n")


def tell(text: str) -> None:
    """A message for people, on stderr."""
    sys.stdout.flush()
    sys.stderr.write(harmless(text) + "\n")
    sys.stderr.flush()


def is_terminal() -> bool:
    """Whether results go to a person's terminal."""
    return sys.stdout.isatty()


def can_ask() -> bool:
    """Whether a person sits there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> bool:
    """Ask a person; only an explicit yes is one."""
    sys.stderr.write(f"{harmless(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
