"""What is decided about a failure: the action, its reason, and the numbers behind it."""

from enum import StrEnum

import msgspec


class Action(StrEnum):
    """What to do about a failure."""

    RETRY = "retry"
    """Ask the same call again, in place."""
    RESTART = "restart"
    """Continue the run from its newest point."""
    ROLLBACK = "rollback"
    """Go back to an older checkpoint, on a new branch."""
    ESCALATE = "escalate"
    """Leave it as it is and ask a person."""
    GIVE_UP = "give up"
    """End the run as failed; only where `SLA(on_exhausted="fail")` says so."""


class Decision(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What to do about a failure, and why.

    `wait_s` is waited first; `to` is the point a rollback goes to, `turns_lost` what that drops.
    `time_s` is how long it will take and `p_success` how likely it is to help, both estimated from
    what this store has seen; `cost_usd` and `stake_usd` are known where prices were given. `off`
    names the rules that did not judge, and what they would need. `down_left_s` is what this
    recovery leaves of the downtime that the promised availability allows the run; less than
    nothing: the promise is broken all the same.
    """

    action: Action
    reason: str
    wait_s: float = 0.0
    to: str | None = None
    turns_lost: int = 0
    time_s: float | None = None
    p_success: float | None = None
    cost_usd: float | None = None
    stake_usd: float | None = None
    off: list[str] = msgspec.field(default_factory=list)
    down_left_s: float | None = None
