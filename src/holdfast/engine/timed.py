"""A call with a time limit, in a thread or under an event loop.

Python cannot stop a thread. A synchronous call that passes its limit is given up: the agent gets
`CallTimedOut`, the call goes on in its own thread, what it returns is dropped, and what it would
still record is refused. An asynchronous call is cancelled, so nothing of it goes on here.
"""

import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from holdfast.errors import CallTimedOut
from holdfast.ondemand import OnDemand

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = OnDemand("asyncio")


class Limit:
    """How long a call may take; once it is over, nothing inside the call is recorded."""

    __slots__ = ("function", "is_over", "limit_s")

    def __init__(self, function: str, limit_s: float) -> None:
        self.function, self.limit_s, self.is_over = function, limit_s, False

    def refuse_if_over(self) -> None:
        """Raise in a call that was given up."""
        if self.is_over:
            raise self.passed()

    def passed(self) -> CallTimedOut:
        """The error that says so."""
        return CallTimedOut(self.function, self.limit_s)


def within(limit: Limit, work: Callable[[], Any]) -> Any:  # noqa: ANN401 the user's own type
    """Do `work` in a thread of its own and wait for it, but no longer than the limit."""
    ended = threading.Event()
    answer: list[Any] = []
    raised: list[BaseException] = []
    context = contextvars.copy_context()

    def do() -> None:
        try:
            answer.append(context.run(work))
        except BaseException as error:  # noqa: BLE001 raised again where it is waited for
            raised.append(error)
        ended.set()

    threading.Thread(target=do, name=f"holdfast-{limit.function}", daemon=True).start()
    try:
        if not ended.wait(limit.limit_s):
            raise limit.passed()
    finally:
        limit.is_over = not ended.is_set()
    if raised:
        raise raised[0]
    return answer[0]


async def awithin(limit: Limit, work: Awaitable[Any]) -> Any:  # noqa: ANN401 the user's own type
    """Wait for `work`, but no longer than the limit: then it is cancelled."""
    try:
        async with asyncio.timeout(limit.limit_s) as waiting:
            return await work
    except TimeoutError as error:
        if waiting.expired():
            limit.is_over = True
            raise limit.passed() from error
        raise
