"""What a cancellation left half done: a critical section, or a step beside the agent's own code.

Nobody can tell a timeout from the end of the process while it is on its way. So nothing is decided
yet: where the life ends with it, the restart goes on inside or asks again; where the code goes on,
a section is taken back, and of a step it is noted that the code went past it.
"""

import sys
from typing import Protocol

from holdfast.engine.faults import is_cancelled
from holdfast.engine.line import present
from holdfast.engine.owed import is_uncancelled


class Half(Protocol):
    """What was left so (`critical`, `call`); `owner` is the task or thread that was inside."""

    owner: object

    def abort(self) -> None:
        """The code went on without the rest."""


def go_past(halves: list[Half], *, is_side: bool) -> None:
    """Code of the run goes on: the agent's own past all of them, other code past its own.

    Not while the cancellation is on its way still, through a `finally` that asks something.
    """
    error = sys.exception()
    if error is not None and is_cancelled(error) and not is_uncancelled():
        return
    for half in list(halves):
        if not is_side or half.owner == present():
            halves.remove(half)
            half.abort()
