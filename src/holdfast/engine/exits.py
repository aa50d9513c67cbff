"""Calls on the way out: asked while a cancellation takes code down, in a `finally` say.

Nobody can tell a timeout from the end of the life while it is on its way. So they are remembered
until the agent's own code goes on; if the life ends first, the next one need not ask them there.
"""

import sys
from typing import TYPE_CHECKING

from holdfast.engine.faults import is_cancelled
from holdfast.engine.reading import Key, key_of
from holdfast.model.journal import Call

if TYPE_CHECKING:
    from holdfast.engine.line import Line


class Exits:
    """What a life asked on its way out, if that is what it was."""

    def __init__(self, line: "Line") -> None:
        self._line = line
        self._error: BaseException | None = None
        self._asked: list[Key] = []

    def take(self, call: Call) -> None:
        """A call was asked: on the way out, or by code that goes on."""
        error = sys.exception()
        if error is self._line.around or (error is not None and not is_cancelled(error)):
            error = None
        is_side = call.is_side or self._line.is_lent()
        if not is_side:
            if error is None or not self._is_of(error):
                self._asked.clear()
            self._error = error
        is_out = error is not None or (is_side and self._line.is_leaving())
        if is_out and isinstance(call.scope, int):
            self._asked.append(key_of(call))

    def of(self, why: BaseException) -> list[Key]:
        """What was asked on the way out with `why`, which ended the life."""
        return self._asked if self._is_of(why) else []

    def _is_of(self, error: BaseException) -> bool:
        """Whether it is the way out that is known; the code may be cancelled once more on it."""
        one: BaseException | None = error
        while one is not None and not isinstance(one, Exception):
            if one is self._error:
                return True
            one = one.__context__
        return self._error is None
