"""What a journal says of its branches: forks, rollbacks, and what people allow on them."""

import msgspec

from holdfast.model.rollback import Take
from holdfast.model.run import Holder


class Forked(msgspec.Struct, frozen=True, array_like=True, tag=18):
    """A fork began: the run and the row it grew from, and what a person changed in its state."""

    at: float
    run: str
    of: int
    turn: int
    delta: bytes | None
    holder: Holder
    reason: str | None


class Allowed(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """A person lets an effect through that the fence stopped: the one with this key, once."""

    key: str
    at: float
    reason: str | None


class RolledBack(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """The head moved to this branch, which grew from entry `index` of row `to`.

    `of` is the last row of the old branch; `takes` are the effects to be taken back, in order;
    `only` names the sections that go back, to what they are at `source`, where the others stay as
    they are. A line that `is_free` may do again what stands on those before it.
    """

    at: float
    of: int
    to: int
    index: int
    turn: int
    only: list[str] | None
    takes: list[Take]
    is_free: bool
    holder: Holder
    reason: str | None
    source: int = -1
    source_index: int = -1


class Undoing(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """An effect is about to be taken back, by its `undo` or its `offset`."""

    key: str
    how: str
    at: float


class Settled(msgspec.Struct, frozen=True, array_like=True, tag=23):
    """A rollback is over; `note` is what the agent is told, `delta` puts it into the state."""

    at: float
    turn: int
    delta: bytes | None
    note: bytes


class Returned(msgspec.Struct, frozen=True, array_like=True, tag=24):
    """A rollback was taken back: the head is this branch again; `of` ends the one that was left."""

    at: float
    of: int
    reason: str | None


class Retaking(msgspec.Struct, frozen=True, array_like=True, tag=58):
    """Effects that a rollback could not take back are tried again; `takes` are in order.

    `status`, `ended` and `error` are how the run stands, and will again. `is_by_hand`: a person
    took them back, and says so.
    """

    at: float
    takes: list[Take]
    status: str
    ended: float | None
    error: str | None
    is_by_hand: bool = False


class Retaken(msgspec.Struct, frozen=True, array_like=True, tag=59):
    """What was tried again is over; the run stands as it stood before."""

    at: float
