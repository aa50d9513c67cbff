"""What to do about an effect that may or may not have happened."""

from enum import Enum

TAKEN_BACK = ("undone", "offset", "cancelled")
"""What a rollback may have done about an effect so that it stands no more."""

UNKNOWN = "unknown"
"""What became of an effect that may have been taken back, or not."""


class Move(Enum):
    """The next rung of the ladder for an effect in doubt."""

    PROBE = "ask its probe whether it happened"
    REPEAT = "do it again under the same idempotency key"
    STOP = "stop the run and list it as in doubt"


def next_move(*, has_probe: bool, is_idempotent: bool, is_repeated: bool) -> Move:
    """Ask the world if it can be asked, repeat only what says it may be, else stop.

    `is_repeated` says that this life of the run has repeated the effect once already.
    """
    if has_probe:
        return Move.PROBE
    if is_idempotent and not is_repeated:
        return Move.REPEAT
    return Move.STOP
