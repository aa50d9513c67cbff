"""What a run's journal holds: rows of entries, in the order in which they became true.

A row is everything one run added in one commit. Values inside entries are encoded bytes
(`store/codec/values`), so that a timeline can be read without knowing any user's class.
"""

from typing import TypeAlias

import msgspec

from holdfast.model.branches import (
    Allowed,
    Forked,
    Retaken,
    Retaking,
    Returned,
    RolledBack,
    Settled,
    Undoing,
)
from holdfast.model.cadence import Cadence, Pace
from holdfast.model.decision import Decision
from holdfast.model.failure import Failure
from holdfast.model.ids import Range
from holdfast.model.ledger import Notified, Opened, Said, Spent
from holdfast.model.limits import SLA
from holdfast.model.parts import Asked as Asked
from holdfast.model.parts import Call as Call
from holdfast.model.parts import Error as Error
from holdfast.model.parts import Facts as Facts
from holdfast.model.parts import Mark as Mark
from holdfast.model.parts import Scalar as Scalar
from holdfast.model.parts import Scope as Scope
from holdfast.model.parts import Usage as Usage
from holdfast.model.run import Holder
from holdfast.model.secrets import Exposed, Incomplete, Redacted
from holdfast.model.sections import Declared, Degraded


class Started(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """The run began: event 0, with the agent and its arguments.

    `pace` is how it is saved; `told` the part of that which was said of this run alone; `parent`
    the run it is a child of.
    """

    at: float
    agent: str
    module: str
    version: str | None
    args: bytes
    digest: bytes
    asked: list[Asked]
    cadence: Cadence | None
    sla: SLA | None
    holder: Holder
    facts: Facts
    pace: Pace | None = None
    told: Pace | None = None
    parent: str | None = None


class Resumed(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A process took the run up again under a new epoch; a person's word brings no `facts`.

    `pace` is how it is saved from here on, where that is not as it was when it started.
    """

    at: float
    epoch: int
    holder: Holder
    version: str | None
    facts: Facts | None = None
    pace: Pace | None = None


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A step answered."""

    call: Call
    value: bytes
    at: float
    took_s: float
    usage: Usage | None


class Raised(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A step raised; a replay raises it again if the run went on after it."""

    call: Call
    error: Error
    at: float
    took_s: float
    attempt: int


class Noted(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=4):
    """A reading of clock, chance or a new id; it rides along with the next commit."""

    call: Call
    value: bytes


class Intended(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """An effect is about to be done, for the `nth` time with this intent in its ledger.

    `module` is the tool's: two functions of one name are two tools.
    """

    call: Call
    key: str
    about: bytes
    nth: int
    args: bytes
    at: float
    epoch: int
    module: str = ""


class Happened(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=6):
    """An effect's outcome. `how`: known by call, probe, repeat, ledger, or person (`by` whom)."""

    call: Call
    key: str
    value: bytes
    at: float
    took_s: float
    how: str
    usage: Usage | None
    by: str | None = None


class Declined(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """An effect surely did not happen; a replay raises the error again.

    Without an error (a probe or a person said so after a crash) the call is made anew.
    """

    call: Call
    key: str
    error: Error | None
    at: float
    took_s: float
    how: str
    by: str | None = None


class TurnEnded(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=8):
    """A turn's end: what it changed in the state.

    The cadence marks it as a checkpoint; the loop is over when the agent has gone on to another
    one; `used` is the run's usage so far, `steps` the answers it has received.
    """

    turn: int
    loop: int
    at: float
    delta: bytes | None
    mark: Mark | None
    is_loop_over: bool
    used: Usage
    steps: int


class LoopLeft(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """The loop was left inside a turn; what follows belongs to that turn."""

    turn: int
    loop: int
    delta: bytes | None


class Based(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """The whole state at a turn's end, so that a restart need not read what came before.

    `outside` are the rows before this one whose entries a replay outside turns still needs.
    """

    turn: int
    loop: int
    state: bytes
    outside: list[Range]


class Saved(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """A checkpoint the agent asked for in the middle of a turn: of the state, or sections `only`.

    `delta` is what was changed since the save before. Where another thread or task asked, or a
    section that was not asked for cannot be stored, `state` is all that was asked for instead.
    `used` and `steps` are as in `TurnEnded`.
    """

    call: Call
    turn: int
    at: float
    mark: Mark
    only: list[str] | None
    state: bytes | None
    used: Usage
    steps: int
    delta: bytes | None = None


class Kept(msgspec.Struct, frozen=True, array_like=True, tag=50):
    """A checkpoint that the cadence asked for in the middle of a turn; `why` says which rule.

    `delta` is what the turn has changed since its start, or since the save before; of a snapshot
    `state` may hold the sections `only` instead. `used` and `steps` are as in `TurnEnded`.
    """

    turn: int
    at: float
    mark: Mark
    why: str
    delta: bytes | None
    used: Usage
    steps: int
    only: list[str] | None = None
    state: bytes | None = None


class Finished(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """The agent returned."""

    at: float
    value: bytes
    delta: bytes | None


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """The agent raised, or the run cannot go on by itself (`status` says which)."""

    at: float
    status: str
    error: Error


class Redone(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """The unfinished turn is run anew on this branch; `of` is the last row of the old one.

    The entries that follow in the same row are the effects of that turn, which stand.
    """

    at: float
    of: int
    reason: str | None


class Undone(msgspec.Struct, frozen=True, array_like=True, tag=19):
    """What became of an effect that a rollback took back: undone or offset, it stands no more.

    It still stands where that was impossible, or is unknown; `error` says why.
    """

    key: str
    how: str
    at: float
    took_s: float
    error: Error | None


class Retried(msgspec.Struct, frozen=True, array_like=True, tag=26):
    """A call failed and is asked again in place; it is no answer, and no replay asks for it."""

    call: Call
    at: float
    took_s: float
    attempt: int
    failure: Failure
    decision: Decision


class Decided(msgspec.Struct, frozen=True, array_like=True, tag=27):
    """What was decided about a failure that ended a life of the run.

    `turn` and `steps` (answers received) are where it came from; `by`: run, supervise or watch.
    """

    at: float
    by: str
    turn: int
    steps: int
    failure: Failure
    decision: Decision


class Interrupted(msgspec.Struct, frozen=True, array_like=True, tag=28):
    """The process was told to stop, by Ctrl-C or SIGTERM; nothing failed.

    `exits` are the calls that were asked on the way out, by scope, name, digest and ordinal.
    """

    at: float
    why: str
    exits: list[tuple[Scope, str, bytes, int]] = msgspec.field(default_factory=list)


class Questioned(msgspec.Struct, frozen=True, array_like=True, tag=33):
    """The run asks a person and waits; `kind` is question, or approval of an effect.

    `id` names it for people; `expires` is when its time runs out, and `default` what then counts
    as the answer; `args` are the arguments of the effect to be approved.
    """

    call: Call
    id: str
    kind: str
    text: str
    options: list[str]
    at: float
    expires: float | None
    default: bytes | None
    args: bytes | None


class Aborted(msgspec.Struct, frozen=True, array_like=True, tag=38):
    """A critical section was left by an error: what it did is taken back, as far as that goes.

    `call` is that of the checkpoint before it; `keys` are the effects that it did, in order.
    """

    call: Call
    name: str
    error: Error
    keys: list[str]
    at: float


class Answered(msgspec.Struct, frozen=True, array_like=True, tag=34):
    """The answer reached the run, or none is needed any more.

    `how` is answered, approved, rejected, default, expired or withdrawn.
    """

    call: Call
    id: str
    how: str
    value: bytes | None
    by: str | None
    note: str | None
    at: float


ENDED, LEFT = "ended", "left"
"""How a stream is over: by itself, or because the agent went on without the rest."""


class Streamed(msgspec.Struct, frozen=True, array_like=True, tag=51):
    """Items of a stream as they arrived: the `part`-th record of the `attempt`-th call of it.

    `how` is empty while it goes on, ended, or left by the agent before its end; the answer is final
    only then. A higher `attempt` begins anew: what was recorded before it is no part of the answer.
    """

    call: Call
    at: float
    attempt: int
    part: int
    items: bytes
    count: int
    tokens: int
    how: str = ""
    took_s: float = 0.0


class Spawned(msgspec.Struct, frozen=True, array_like=True, tag=52):
    """A child of the run is about to begin, under that id; its answer or error follows."""

    call: Call
    id: str
    at: float


class Pruned(msgspec.Struct, frozen=True, array_like=True, tag=40):
    """What the row held was removed: no point that is kept needs it. Its hash stays."""

    at: float


Entry: TypeAlias = (
    Started | Resumed | Answer | Raised | Noted | Intended | Happened | Declined
    | TurnEnded | LoopLeft | Based | Saved | Kept | Finished | Failed | Redone | Forked
    | Undone | Allowed | RolledBack | Undoing | Settled | Returned | Retaking | Retaken
    | Opened | Aborted | Questioned | Answered | Said | Spent | Notified
    | Declared | Degraded | Pruned | Streamed | Spawned
    | Retried | Decided | Interrupted
    | Redacted | Incomplete | Exposed
)  # fmt: skip


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One commit of one run.

    `base` is the row with the newest `Based` at or before this one, or -1; `turn` is the turn
    that was open when the row was made, or -1.
    """

    base: int
    turn: int
    entries: list[Entry]
