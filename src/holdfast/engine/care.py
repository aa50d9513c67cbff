"""How the failures of a run are judged."""

import random
from collections.abc import Sequence

import msgspec

from holdfast.model.limits import SLA
from holdfast.policy.classify import Rule


class Care(msgspec.Struct, frozen=True, kw_only=True):
    """How failures of a run are judged: its promise, the agent's rules, chance for the waits."""

    sla: SLA | None = None
    rules: Sequence[Rule] = ()
    chance: random.Random = msgspec.field(default_factory=random.SystemRandom)
