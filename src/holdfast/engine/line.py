"""The agent's own line of code: the thread and, under an event loop, the task that it runs in."""

import sys
import threading
from typing import TYPE_CHECKING, Any

from holdfast.ondemand import OnDemand

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")


def is_loop_running() -> bool:
    """Whether an event loop runs in this thread; asks without loading asyncio."""
    loaded = sys.modules.get("asyncio.events")
    return loaded is not None and loaded._get_running_loop() is not None  # noqa: SLF001 as asyncio itself


def present() -> object:
    """The task or, without an event loop, the thread that runs here."""
    return asyncio.current_task() if is_loop_running() else threading.get_ident()


class Line:
    """Tells the agent's own line from what runs beside it."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._task: asyncio.Task[Any] | None = None

    def begin(self) -> None:
        """Say that the agent's own code runs here: in this thread and, if any, this task."""
        self._thread = threading.get_ident()
        self._task = asyncio.current_task() if is_loop_running() else None

    def is_side(self) -> bool:
        """Whether a thread or task beside the agent's own asks."""
        if threading.get_ident() != self._thread:
            return True
        if self._task is None:
            return is_loop_running()  # A synchronous agent runs a loop of its own.
        return asyncio.current_task() is not self._task
