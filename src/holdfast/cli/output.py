"""The same result as a table, as JSON or as JSON lines on stdout; messages go to stderr."""

import sys
from collections.abc import Iterable, Mapping, Sequence

from holdfast.cli.grid import Grid, aligned
from holdfast.cli.text import harmless
from holdfast.cli.values import to_json
from holdfast.store.codec.veil import redact

__all__ = [
    "Grid",
    "aligned",
    "ask",
    "can_ask",
    "emit",
    "is_terminal",
    "print_result",
    "put",
    "show",
    "tell",
]

SCHEMA_VERSION = 1


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


def print_result(how: str, run: str, result: object) -> None:
    """A run's result: bare JSON for people, with its run for programs."""
    document = {"run": run, "status": "finished", "result": result}
    emit(how, document=document, lines=[document], grids=[to_json(result)])


def show(grids: Sequence[Grid | str]) -> None:
    """Print tables and lines of text."""
    if is_terminal():
        from holdfast.cli import terminal  # noqa: PLC0415 rich is slow to load

        terminal.show(grids)
    else:
        for grid in grids:
            put(grid if isinstance(grid, str) else aligned(grid))


def put(text: str, *, is_flushed: bool = False) -> None:
    """A line of the result, on stdout; flushed where somebody waits for it."""
    sys.stdout.write(redact(text) + "\n")
    if is_flushed:
        sys.stdout.flush()


def tell(text: str) -> None:
    """A message for people, on stderr."""
    sys.stdout.flush()
    sys.stderr.write(harmless(redact(text)) + "\n")
    sys.stderr.flush()


def is_terminal() -> bool:
    """Whether results go to a person's terminal."""
    return sys.stdout.isatty()


def can_ask() -> bool:
    """Whether a person sits there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> bool:
    """Ask a person; only an explicit yes is one."""
    sys.stderr.write(f"{harmless(redact(question))} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
