"""A case for the advisor: the work, what goes wrong with it, ways to save it, and what they cost.

Seconds, US dollars and bytes throughout. A unit is what one save covers: a turn, or a step where
turns are long.
"""

import math
from enum import StrEnum

import msgspec


class Scope(StrEnum):
    """How far a failure reaches: what is lost with it."""

    IN_PLACE = "in_place"
    """The call alone: it is asked again."""
    PROCESS = "process"
    """The process: its disk is still there."""
    HOST = "host"
    """The machine with its disk: only what lies elsewhere is left."""
    ROLLBACK = "rollback"
    """The state is wrong: an older checkpoint is needed."""
    POISON = "poison"
    """Nothing here helps; a person must."""


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work: `upfront` is the share of its price that is paid as it begins.

    `tokens` is how many a model words in it, where that is known.
    """

    seconds: float
    usd: float = 0.0
    upfront: float = 0.5
    bytes: float = 0.0
    is_effect: bool = False
    tokens: float = 0.0


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of failure: how often (per second of work), how soon noticed, how surely mended.

    A rollback goes `generations` checkpoints further back than the newest.
    """

    name: str
    scope: Scope
    per_second: float
    detect_s: float
    p_recovered: float
    generations: int = 1


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """One way to save: a journal (none, local or remote), and checkpoints every so many units.

    `_s` of a save is how long it blocks the agent; `replay_s` is the time to go through a recorded
    unit again. A checkpoint of `checkpoint_bytes` adds the share `stored` of them; it may be a
    snapshot of some sections. Where it `is_streamed`, tokens are recorded as they arrive.
    """

    name: str
    journal: str = "none"
    journal_s: float = 0.0
    local_every: int = 0
    local_s: float = 0.0
    remote_every: int = 0
    remote_s: float = 0.0
    restore_local_s: float = 0.0
    restore_remote_s: float = 0.0
    replay_s: float = 0.0
    checkpoint_bytes: float = 0.0
    stored: float = 1.0
    is_snapshot: bool = False
    is_streamed: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether it saves nothing at all."""
        return self.journal == "none" and not self.local_every and not self.remote_every


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """What storing, waiting and asking a person cost; None is not known, and is not made up."""

    gb_month_usd: float | None = None
    put_usd: float | None = None
    get_usd: float | None = None
    months: float = 1.0
    second_usd: float | None = None
    person_usd: float | None = None


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """What is promised: None is not promised, and does not bind."""

    availability: float | None = None
    max_recovery_s: float | None = None
    clock: str = "catch_up"
    breach_usd_per_hour: float | None = None
    recovery_usd: float | None = None
    overhead: float | None = 0.15
    bytes_per_task: float | None = None
    breach_rate: float | None = None

    @property
    def breach_s(self) -> float | None:
        """From when on a recovery is a breach; without a time promised, one that never comes."""
        is_asked = self.breach_rate is not None or self.breach_usd_per_hour is not None
        return math.inf if self.max_recovery_s is None and is_asked else self.max_recovery_s


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """What saving costs here: how long each kind blocks the agent; None is not to be had.

    `bare_` restores are those of a run of which nothing was saved: starting it anew. A restore
    from a snapshot takes `snapshot_restore_s`, with what it does not hold made again. `continues`
    says that a provider goes on from the tokens recorded, one record every `tokens_every`.
    """

    journal_local_s: float | None = None
    journal_remote_s: float | None = None
    checkpoint_local_s: float | None = None
    checkpoint_remote_s: float | None = None
    restore_local_s: float = 0.0
    restore_remote_s: float = 0.0
    bare_local_s: float | None = None
    bare_remote_s: float | None = None
    replay_s: float = 0.005
    checkpoint_bytes: float = 0.0
    stored: float = 1.0
    snapshot_local_s: float | None = None
    snapshot_remote_s: float | None = None
    snapshot_restore_s: float | None = None
    snapshot_bytes: float = 0.0
    continues: bool = False
    tokens_every: float = 1000.0


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How work is saved at present: a journal (none, local, remote), checkpoints every n units."""

    journal: str = "none"
    local_every: int = 0
    remote_every: int = 0
    is_snapshot: bool = False
    is_streamed: bool = False


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the advisor is asked about; `unit` is what people call one of the units."""

    name: str
    units: list[Unit]
    causes: list[Cause]
    saving: Saving
    promise: Promise = Promise()
    prices: Prices = Prices()
    current: Policy | None = None
    unit: str = "step"
    notes: list[str] = []

    @property
    def work_s(self) -> float:
        """How long the work takes if nothing fails and nothing is saved."""
        return math.fsum(unit.seconds for unit in self.units)

    @property
    def per_second(self) -> float:
        """Failures of any kind per second of work."""
        return math.fsum(cause.per_second for cause in self.causes)
