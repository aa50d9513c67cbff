"""A run: its status, who holds it, and what the store's catalog says of it."""

from enum import StrEnum

import msgspec


class Status(StrEnum):
    """Where a run stands. `RUNNING` without a living holder is a run to restart."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    IN_DOUBT = "in doubt"
    DIVERGED = "diverged"
    WAITING = "waiting"
    BLOCKED = "blocked"
    ROLLING_BACK = "rolling back"
    CANCELLED = "cancelled"


_GOES_ON = frozenset({Status.RUNNING, Status.ROLLING_BACK})

NEXT: dict[Status, frozenset[Status]] = {
    **dict.fromkeys(Status, _GOES_ON),
    Status.RUNNING: frozenset(Status),
    Status.FINISHED: frozenset({Status.ROLLING_BACK}),
    Status.ROLLING_BACK: frozenset(Status) - {Status.CANCELLED},
}
"""Which status may follow which; a finished run stays finished unless it is rolled back."""


class Holder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The process that may write a run, as told to whoever asks."""

    pid: int
    host: str
    since: float

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a fork comes from: the run and the point it grew from.

    Of a child (`is_child`) it is the run and the entry that began it: then it shares the ledger
    only, and its keys are made by its own id.

    `root` is the id of the run whose ledger it shares, by which its idempotency keys are made, and
    `ledger` that run's number (0 once the fork was carried to another store: it has its own).
    """

    run: str
    point: str
    root: str
    ledger: int = 0
    is_child: bool = False


class RunBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the catalog keeps of a run; sealed as one body so that it can be encrypted whole.

    `undos_left` counts effects that rollbacks were to take back and could not.
    """

    id: str
    agent: str
    module: str
    version: str | None = None
    status: Status = Status.RUNNING
    created: float
    ended: float | None = None
    holder: Holder
    error: str | None = None
    origin: Origin | None = None
    undos_left: int = 0


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A run as `store.get` and `store.runs` show it."""

    id: str
    agent: str
    module: str
    version: str | None
    status: Status
    is_held: bool
    created: float
    ended: float | None
    holder: Holder
    epoch: int
    branch: int
    error: str | None
    origin: Origin | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether the run was left unfinished by a process that is gone."""
        return self.status is Status.RUNNING and not self.is_held
