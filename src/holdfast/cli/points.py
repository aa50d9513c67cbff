"""Points of runs as people type and see them: by turn, by id, by the start of a run's id."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.grid import Grid
from holdfast.cli.stores import find_run
from holdfast.cli.text import duration, moment, short, size
from holdfast.store.reader import Reader

if TYPE_CHECKING:
    from holdfast.engine.checkpoint import Checkpoint

COLUMNS = ("checkpoint", "kind", "turn", "step", "time", "added", "blocked", "tokens", "label")


def full_name(reader: Reader, text: str, path: Path) -> str:
    """The name of a point with the id of its run in full; only that may be cut short."""
    run, at, place = text.rpartition("@")
    if not at or reader.find(text) is not None:
        return find_run(reader, text, path).body.id
    return f"{find_run(reader, run, path).body.id}@{place}"


def point_grid(points: "Sequence[Checkpoint]") -> Grid:
    """The points, one row each."""
    rows = [
        (
            point.id,
            point.kind,
            "" if point.turn is None else str(point.turn),
            str(point.step),
            moment(point.at),
            size(point.bytes),
            "" if point.blocked_ms is None else duration(point.blocked_ms / 1000),
            _tokens(point.tokens_in, point.tokens_out),
            short(point.label or ""),
        )
        for point in points
    ]
    return Grid(columns=COLUMNS, rows=rows, right=frozenset({"turn", "step", "added", "blocked"}))


def _tokens(tokens_in: int | None, tokens_out: int | None) -> str:
    known = ["?" if count is None else str(count) for count in (tokens_in, tokens_out)]
    return "" if known == ["?", "?"] else f"{known[0]} in, {known[1]} out"
