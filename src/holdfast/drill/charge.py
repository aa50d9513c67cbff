"""What a forked process is told besides its errand: which fault strikes it, and where it lives."""

import msgspec


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """One life in a drill.

    The fault strikes at the `nth` moment of the kind that it strikes at, or so many seconds after
    the run began; a life without one has none. `ledger` and `folder` are the run's own; `scale` is
    what pauses are multiplied by.
    """

    life: int
    ledger: str
    folder: str
    case: int
    seed: str
    scale: float
    fault: str | None = None
    nth: float = 0
