"""How the failures of a run are judged."""

import random
from collections.abc import Sequence

import msgspec

from holdfast.engine.pulse import Pulse
from holdfast.model.limits import SLA
from holdfast.policy.classify import Rule


class Care(msgspec.Struct, frozen=True, kw_only=True):
    """How failures of a run are judged: its promise, the agent's rules, chance for the waits.

    `pulse` tells a supervisor how long what goes on may take and, of a child, that it goes on.
    """

    sla: SLA | None = None
    rules: Sequence[Rule] = ()
    chance: random.Random = msgspec.field(default_factory=random.SystemRandom)
    pulse: Pulse = msgspec.field(default_factory=Pulse)
    is_child: bool = False
