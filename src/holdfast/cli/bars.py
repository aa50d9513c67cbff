"""A progress bar for whatever takes longer than a second, where a person watches."""

import contextlib
import sys
from collections.abc import Iterator

from holdfast.clock import SystemClock
from holdfast.store.verify import Progress


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """A bar on the terminal that is told how far `what` is; None where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from holdfast.cli.terminal import SlowBar  # noqa: PLC0415 rich is slow to load

    bar = SlowBar(what, SystemClock())
    try:
        yield bar
    finally:
        bar.close()
