"""`holdfast watch`: recover every run whose process is gone, as a service."""

import signal
import threading
from types import FrameType
from typing import Annotated

import typer

from holdfast.cli import apps
from holdfast.cli.carry import EXIT_INTERRUPTED, EXIT_TERMINATED, warn_on_stderr
from holdfast.cli.options import Apps, AsJson, Output, StorePath, closing, settings
from holdfast.cli.output import SCHEMA_VERSION, put, tell
from holdfast.cli.values import to_json
from holdfast.clock import SystemClock
from holdfast.engine.handle import open as open_store
from holdfast.errors import UnknownAgent
from holdfast.report.event import when

CLOSING = closing(
    (
        "holdfast watch --app shop",
        "holdfast watch --app shop --app billing --workers 8 --stall 5m",
        "holdfast watch --app shop --once -o jsonl",
    ),
    (0, 1, 2, 3, 5, 7, 130, 143),
)
EXIT_UNSUCCESSFUL = 5


def watch(
    *,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=256, metavar="N", help="Runs at a time.")
    ] = 4,
    once: Annotated[
        bool, typer.Option("--once", help="Recover those that are interrupted now, then end.")
    ] = False,
    stall: Annotated[
        str | None,
        typer.Option("--stall", metavar="TIME", help="So long without a record is a hang."),
    ] = None,
    app: Apps = None,
    store: StorePath = None,
    output: Output = None,
    as_json: AsJson = False,
) -> int:
    """Recover every run of the store whose process is gone, each in a process of its own.

    What to do about each is decided as for `run --supervise`: what only a person can judge is
    recorded and left alone. Agents are looked up only in modules that you name. Goes on until
    Ctrl-C or SIGTERM, which stop its processes cleanly. Prints what it does: a line each, as JSON
    unless the output is a table.
    """
    config = settings(store, output, app, as_json=as_json)
    warn_on_stderr()
    modules = apps.load(config.app)
    if not modules:
        raise UnknownAgent("of any run", "no module was named")
    teller, stop = _Teller(is_table=config.output == "table"), _Stop()
    with open_store(config.store, must_exist=True, **config.saving) as opened, stop:
        try:
            ended = opened.watch(
                apps=modules,
                workers=workers,
                once=once,
                stall=stall,
                stopped=stop.is_set,
                happening=teller.tell,
            )
        except KeyboardInterrupt:
            tell("stopped; what its runs have recorded is kept")
            return stop.status
    return 0 if set(ended.values()) <= {"finished", "held"} else EXIT_UNSUCCESSFUL


class _Teller:
    """Prints what happens, a line at a time, whoever tells it."""

    def __init__(self, *, is_table: bool) -> None:
        self._is_table, self._lock, self._clock = is_table, threading.Lock(), SystemClock()

    def tell(self, event: str, facts: dict[str, object]) -> None:
        """One line."""
        at = when(self._clock.now())
        with self._lock:
            if self._is_table:
                said = "  ".join(f"{name}={value}" for name, value in facts.items() if value)
                put(f"{at:%H:%M:%S}  {event:<14}  {said}", is_flushed=True)
            else:
                document = {"schema_version": SCHEMA_VERSION, "at": at, "event": event, **facts}
                put(to_json(document, indent=None), is_flushed=True)


class _Stop:
    """Whether a signal asked to stop, and the exit status that says which."""

    def __init__(self) -> None:
        self.status = EXIT_INTERRUPTED
        self._is_set = False

    def is_set(self) -> bool:
        """Whether to stop."""
        return self._is_set

    def __enter__(self) -> None:
        self._before = [
            (number, signal.signal(number, self._on)) for number in (signal.SIGINT, signal.SIGTERM)
        ]

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)

    def _on(self, number: int, _frame: FrameType | None) -> None:
        self._is_set = True
        self.status = EXIT_TERMINATED if number == signal.SIGTERM else EXIT_INTERRUPTED
