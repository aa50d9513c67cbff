"""A task cancelled while an answer is recorded gets the answer, and the cancellation after it.

What is on its way to the disk counts: a replay answers with it. So the code that asked must not go
on without it either, or the next life would go another way than this one.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from holdfast.engine.line import is_loop_running
from holdfast.ondemand import OnDemand

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")


async def to_the_end(work: Callable[[], Awaitable[None]]) -> None:
    """Wait for `work`, begun anew after every cancellation, which is delivered at the next wait."""
    task = asyncio.current_task()
    handled = 0 if task is None else task.cancelling()
    cut: asyncio.CancelledError | None = None
    try:
        while True:
            try:
                return await work()
            except asyncio.CancelledError as error:
                if task is None:
                    raise
                handled = min(handled, task.cancelling() - 1)
                cut = error
    finally:
        if task is not None and cut is not None:
            task.get_loop().call_soon(_deliver, task, handled, cut.args)


def _deliver(task: "asyncio.Task[Any]", handled: int, args: tuple[Any, ...]) -> None:
    """The task waits again: cancel it, unless the timeout was left in time and took that back."""
    if task.cancelling() > handled:
        task.uncancel()
        task.cancel(*args)


async def collect() -> None:
    """Be cancelled here if that is owed: calls that wait for nothing else would put it off."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        await asyncio.sleep(0)


def is_uncancelled() -> bool:
    """Whether a task runs here that nobody cancels any more: a timeout takes that back."""
    task = asyncio.current_task() if is_loop_running() else None
    return task is not None and not task.cancelling()
