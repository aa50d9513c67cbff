"""SIGTERM on the road of Ctrl-C, which an event loop knows too: in this process alone."""

import os
import signal
from collections.abc import Callable
from types import FrameType


def on_sigterm(noting: Callable[[], None]) -> Callable[[], None]:
    """Let SIGTERM do what Ctrl-C does, after `noting`; returns what takes that back.

    A process that the agent forks inherits it and ends as ever. An exception at any place of a
    worker would leave locks of its pool taken, and one that ignores Ctrl-C would not end at all.
    """
    own = os.getpid()

    def on_term(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != own:
            take_back()
            signal.raise_signal(number)
            return
        noting()
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL, None):
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    def take_back() -> None:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)

    before = signal.signal(signal.SIGTERM, on_term)
    return take_back
