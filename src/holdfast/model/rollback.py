"""A rollback as values: what it takes back, what it loses, and what became of it."""

from collections.abc import Sequence

import msgspec

RUNTIME, ROLLBACKS = "runtime", "rollbacks"
"""Where in the state an agent finds what it is told of rollbacks."""


class Take(msgspec.Struct, frozen=True, array_like=True):
    """An effect that a rollback takes back: its key, where its intent stands, and the way.

    `move` is undo, offset, ask (it is in doubt: its probe says whether there is anything to take
    back), impossible or unknown. `after` are the keys of those that stand on it: while one of them
    stands, this one stays.
    """

    key: str
    row: int
    index: int
    move: str
    after: list[str] = msgspec.field(default_factory=list)


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """An effect after the target of a rollback, as people read it; `why` says what stands against.

    In a plan `how` is undo, offset, ask, impossible or unknown; afterwards it is undone, offset,
    cancelled, impossible or unknown. One that is kept was done by another run. `after` are the
    keys of those that stand on it, by `after=` of their effects, and are taken back before it.
    """

    key: str
    effect: str
    turn: int | None
    how: str
    why: str = ""
    after: Sequence[str] = ()


class Rolled(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollback did. `safety` is the point that was the newest before it, kept for good."""

    run: str
    to: str
    branch: int
    safety: str | None
    effects: Sequence[Taken]

    def of(self, how: str) -> list[Taken]:
        """The effects that came to this: undone, offset, impossible, unknown or cancelled."""
        return [each for each in self.effects if each.how == how]
