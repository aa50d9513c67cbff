"""Where the crash kit kills an agent: the points of a run that a user knows by name.

Each is a failpoint of the engine, named as `effect.called`, or as `effect.called:2` for the second
time it is reached. `turn.begun` is the kit's own: all that the turns before it did is saved, then
the process dies, so that the turn begins in a new one.
"""

import re

from holdfast.errors import UsageError
from holdfast.testing.kill import Failpoint

TURN_BEGUN, TURN_OPENED = "turn.begun", "turn.opened"
EFFECT_CALLED = "effect.called"

POINTS = {
    "run.created": "right after the run was recorded as begun",
    "step.called": "after {what} ran, before its answer was recorded",
    "step.recorded": "right after the answer of {what} was recorded",
    "effect.intending": "before it was recorded that {what} is about to be done",
    "effect.intended": "after it was recorded that {what} is about to be done, before it was",
    "effect.called": "after {what} was done, before its outcome was recorded",
    "effect.declined": "right after it was recorded that an effect did not happen",
    "effect.recorded": "right after the outcome of {what} was recorded",
    "stream.recorded": "right after a part of a stream was recorded",
    "stream.ended": "right after the end of a stream was recorded",
    "child.begun": "right after a child was made",
    "child.recorded": "right after the end of a child was recorded",
    "checkpoint.saving": "before the checkpoint that the agent asked for was saved",
    "checkpoint.saved": "right after the checkpoint that the agent asked for was saved",
    "critical.saving": "before a critical section was recorded as begun",
    "critical.saved": "right after a critical section was recorded as begun",
    "critical.aborting": "before it was recorded that a critical section is taken back",
    "critical.aborted": "right after it was recorded that a critical section is taken back",
    "ledger.writing": "before the ledger was written",
    "ledger.written": "right after the ledger was written",
    "turn.opened": "when the turn began, before the end of the turn before it was saved",
    "turn.ended": "when the turn ended, before that was saved",
    TURN_BEGUN: "when the turn began, after all before it was saved",
    "run.ending": "before the result was recorded",
    "run.ended": "right after the result was recorded",
    "arun.ending": "before the result was recorded",
    "arun.ended": "right after the result was recorded",
}
"""What is true at each point; `{what}` is the call that it is about."""

_NAMED = re.compile(r"([a-z.]+)(?::([1-9]\d*))?")


def point(text: str) -> Failpoint:
    """The point that a text such as `effect.called:2` names; `UsageError` if there is none."""
    named = _NAMED.fullmatch(text)
    if named is None or named[1] not in POINTS:
        known = ", ".join(POINTS)
        msg = (
            f"there is no crash point {text!r}; write one of {known}, or one such as step.called:2"
        )
        raise UsageError(msg)
    return Failpoint(name=named[1], nth=int(named[2] or "1"))
