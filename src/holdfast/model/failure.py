"""What went wrong, as a kind: the word that a recovery is decided by."""

from enum import StrEnum

import msgspec

TEXT_CHARS_MAX = 500
"""A message is kept up to here in a failure; the journal keeps the whole error beside it."""


REPAIRED = "Repaired"
"""The error of a run that a repair stopped: a person is to look first, or nothing is left of it."""


class FailureKind(StrEnum):
    """What kind of failure it is; what follows from each is written in `policy/decide`."""

    TRANSIENT = "transient"
    """Passes by itself: rate limit, network, an overloaded server."""
    TIMEOUT = "timeout"
    """It took longer than it may, or shows no sign of going on."""
    CRASH = "crash"
    """The process or its host is gone, or was told to go."""
    CORRUPTION = "corruption"
    """Stored bytes are not what was written."""
    INVALID = "invalid state"
    """The state breaks a rule that its validators check."""
    PARTIAL = "partial"
    """A part was done and another was not."""
    IN_DOUBT = "in doubt"
    """An effect may or may not have happened."""
    POISON = "poison"
    """The same failure came again from the same point."""
    BUDGET = "budget"
    """Something is used up that only a person can grant: money, quota, disk."""
    BUG = "bug"
    """The program is wrong; trying the same again gives the same."""
    UNKNOWN = "unknown"
    """No rule knows it."""


class Failure(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A failure as it was classified.

    `what` is the error or the end of a process in one line, `why` the rule that named its kind.
    `sign` is what makes two failures the same one: the class of an error, the signal of a process.
    """

    kind: FailureKind
    what: str
    why: str
    sign: str
    retry_after_s: float | None = None


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended: by itself with a status, or by a signal."""

    status: int | None = None
    signal: int | None = None
    is_hung: bool = False

    def __str__(self) -> str:
        if self.is_hung:
            return "the process showed no progress and was killed"
        if self.signal is not None:
            return f"the process was ended by signal {self.signal}"
        return f"the process ended with exit status {self.status}"
