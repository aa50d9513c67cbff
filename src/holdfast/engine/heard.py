"""What has heard of a stream: the code that was given its items, and what that has begun since.

Tasks, `asyncio.to_thread` and `run.wrap` take the context of the code that begins them along. So
those know of a partial answer, and those that were at work before do not.
"""

import weakref
from contextvars import ContextVar

_heard: ContextVar[tuple[weakref.ref[object], ...]] = ContextVar("holdfast_heard", default=())


def listen(stream: object) -> None:
    """The present code is given an item of the stream."""
    if not is_of(stream):
        known = (each for each in _heard.get() if each() is not None)
        _heard.set((*known, weakref.ref(stream)))


def is_of(stream: object) -> bool:
    """Whether the present code may act on what the stream has given so far."""
    return any(each() is stream for each in _heard.get())
