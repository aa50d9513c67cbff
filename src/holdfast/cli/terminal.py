"""Tables, live views and progress bars on a terminal, by rich."""

import signal
import sys
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from holdfast.cli.grid import Grid
from holdfast.cli.text import harmless, line
from holdfast.clock import Clock
from holdfast.store.codec.veil import redact

SLOW_S = 1.0
"""What takes longer gets a progress bar."""
WATCH_S = 1.0
EXIT_TERMINATED = 143
TEXT_CHARS = 40
"""A column that is wider holds text, which may be wrapped; a key or a time may not."""
WRAPPED_CHARS = 14
"""What is left of a text at least; where there is less room, rows stand under each other."""
PADDING = 2

STYLES = {
    "finished": "green",
    "running": "cyan",
    "interrupted": "yellow",
    "in doubt": "bold yellow",
    "failed": "bold red",
    "diverged": "bold red",
    "damaged": "bold red",
    "bad": "bold red",
    "note": "yellow",
    "ok": "green",
}


def show(grids: Sequence[Grid | str]) -> None:
    """Print tables and lines of text."""
    console = _console()
    for grid in grids:
        console.print(_rendered(grid, console.width))


def watch(grids: Callable[[], Sequence[Grid | str]], clock: Clock) -> None:
    """Show the newest state again and again until Ctrl-C, or SIGTERM; the cursor comes back."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    console = _console()
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while True:
            live.update(Group(*(_rendered(g, console.width) for g in grids())), refresh=True)
            clock.sleep(WATCH_S)


class SlowBar:
    """A progress bar on stderr that appears once the work proves to be slow."""

    def __init__(self, label: str, clock: Clock) -> None:
        self._label, self._clock, self._began = label, clock, clock.monotonic()
        self._bar: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        """Say how far the work is."""
        if self._bar is None:
            if self._clock.monotonic() - self._began < SLOW_S:
                return
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.add_task(self._label)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, total=max(total, done))

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def _console() -> Console:
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def _rendered(grid: Grid | str, width: int) -> RenderableType:
    if isinstance(grid, str):
        return Text(harmless(redact(grid)))
    cells = [[line(redact(cell)) for cell in row] for row in grid.rows]
    shown = fitting(grid, cells, width)
    if shown is None:
        return _records(grid, cells)
    table = Table(box=None, show_header=grid.has_header, header_style="bold", pad_edge=False)
    for name, is_wrapped in shown.items():
        table.add_column(
            name.upper(),
            justify="right" if name in grid.right else "left",
            no_wrap=not is_wrapped,
            overflow="fold",
        )
    for row in cells:
        named = dict(zip(grid.columns, row, strict=True))
        table.add_row(*(_styled(named[name]) for name in shown))
    return table


def fitting(grid: Grid, cells: Sequence[Sequence[str]], width: int) -> dict[str, bool] | None:
    """The columns of a table that fits, and whether each is wrapped; None if none does.

    Nothing is cut, since people copy ids and keys from here: long texts are wrapped, and columns
    that say nothing left out, where the whole is too wide.
    """
    turned = zip(*cells, strict=True) if cells else [()] * len(grid.columns)
    columns = dict(zip(grid.columns, turned, strict=True))
    widths = {name: max(map(cell_len, (name, *column))) for name, column in columns.items()}
    said = [name for name, column in columns.items() if any(column)]
    wrapped = {name for name in grid.columns if widths[name] > TEXT_CHARS} | {grid.columns[-1]}
    for names in (list(grid.columns), said):
        least = [min(widths[n], WRAPPED_CHARS) if n in wrapped else widths[n] for n in names]
        if sum(least) + PADDING * (len(names) - 1) <= width or not grid.has_header:
            return {name: name in wrapped for name in names}
    return None


def _records(grid: Grid, cells: Sequence[Sequence[str]]) -> RenderableType:
    """Each row under the other, as names and what stands under them."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for number, row in enumerate(cells):
        if number:
            table.add_row("", "")
        for name, cell in zip(grid.columns, row, strict=True):
            if cell:
                table.add_row(Text(name.upper(), style="bold"), _styled(cell))
    return table


def _styled(cell: str) -> Text:
    return Text(cell, style=STYLES.get(cell, ""))
