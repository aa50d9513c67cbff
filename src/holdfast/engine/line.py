"""The agent's own line of code: the thread and, under an event loop, the task that it runs in."""

import sys
import threading
from functools import partial
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
        self.around: BaseException | None = None

    def begin(self) -> None:
        """Say that the agent's own code runs here: in this thread and, if any, this task."""
        self._thread = threading.get_ident()
        self.around = sys.exception()
        self._task = asyncio.current_task() if is_loop_running() else None

    def refuse_exit(self) -> None:
        """While Ctrl-C takes the code down, a call in a `finally` raises that again.

        The run is not over, so what belongs to its end is for the next life. In that one nobody
        would ask for it here.
        """
        error = sys.exception()
        if isinstance(error, KeyboardInterrupt | SystemExit) and error is not self.around:
            raise error

    def is_leaving(self) -> bool:
        """Whether the agent's own task is cancelled, and nothing took that back yet."""
        return self._task is not None and self._task.cancelling() > 0

    def is_side(self) -> bool:
        """Whether a thread or task beside the agent's own asks."""
        if threading.get_ident() != self._thread:
            return True
        if self._task is None:
            return is_loop_running()  # A synchronous agent runs a loop of its own.
        task = asyncio.current_task()
        return task is not self._task and not _waits_for(self._task, task)

    def is_lent(self) -> bool:
        """Whether another task than the agent's own runs here, also one that it waits for."""
        return self._task is not None and asyncio.current_task() is not self._task


def _waits_for(own: "asyncio.Task[Any]", task: "asyncio.Task[Any] | None") -> bool:
    """Whether the agent's own line goes on in `task`: it is in `asyncio.wait_for`.

    That makes a task of what it waits for before Python 3.12, and can be told by what wakes it.
    """
    if sys.version_info >= (3, 12) or task is None:
        return False
    waiter = own._fut_waiter  # type: ignore[attr-defined]  # noqa: SLF001 of a version that changes no more
    return waiter is not None and any(
        isinstance(wakes, partial) and wakes.args == (waiter,)
        for wakes, _ in task._callbacks or ()  # noqa: SLF001 as above
    )
