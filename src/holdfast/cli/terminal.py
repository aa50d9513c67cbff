"""Tables, live views and progress bars on a terminal, by rich."""

import signal
import sys
from collections.abc import Callable, Sequence

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
        console.print(_rendered(grid))


def watch(grids: Callable[[], Sequence[Grid | str]], clock: Clock) -> None:
    """Show the newest state again and again until Ctrl-C, or SIGTERM; the cursor comes back."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    with Live(console=_console(), auto_refresh=False, transient=False) as live:
        while True:
            live.update(Group(*map(_rendered, grids())), refresh=True)
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


def _rendered(grid: Grid | str) -> RenderableType:
    if isinstance(grid, str):
        return Text(harmless(redact(grid)))
    table = Table(box=None, show_header=grid.has_header, header_style="bold", pad_edge=False)
    for number, name in enumerate(grid.columns):
        is_last = number == len(grid.columns) - 1
        table.add_column(
            name.upper(),
            justify="right" if name in grid.right else "left",
            no_wrap=not is_last,
            overflow="fold" if is_last else "ellipsis",
        )
    for row in grid.rows:
        table.add_row(*(Text(line(redact(cell)), style=STYLES.get(cell, "")) for cell in row))
    return table
