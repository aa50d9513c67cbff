"""What an undisturbed run of a case comes to: its end, its effects, its moments."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.capture.diff import diff
from holdfast.drill.ledger import Line
from holdfast.model.rollback import ROLLBACKS, RUNTIME

PATHS_SHOWN = 3
TOLD = (RUNTIME, ROLLBACKS)
"""Where a rollback tells the agent of itself; a run without one has nothing there."""


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """One case: `counts` are its moments, `did` its effects by what they were about.

    `called` are the functions that it called, by name.
    """

    result: Any
    state: dict[Any, Any]
    did: dict[str, int]
    counts: dict[str, float]
    called: frozenset[str] = frozenset()

    def wrong(self, result: object, state: Mapping[Any, Any], ignore: Iterable[str]) -> list[str]:
        """Where another end differs from this one, at most a few places."""
        left_out = set(ignore)
        found = [] if result == self.result else ["result"]
        mine = {name: each for name, each in self.state.items() if name not in left_out}
        other = {name: each for name, each in _untold(state).items() if name not in left_out}
        found += [str(change.path) for change in diff(mine, other)]
        return found[:PATHS_SHOWN]


def _untold(state: Mapping[Any, Any]) -> dict[Any, Any]:
    """A state without what a rollback told the agent."""
    section, name = TOLD
    told = state.get(section)
    if not isinstance(told, Mapping) or name not in told:
        return dict(state)
    rest = {key: value for key, value in told.items() if key != name}
    return {key: value for key, value in state.items() if key != section} | (
        {section: rest} if rest else {}
    )


def done(lines: Sequence[Line], undone: Iterable[str] = ()) -> dict[str, int]:
    """How often each effect was really done, by what it was about; what was undone is not.

    An idempotent one that was asked for twice under one key was done once.
    """
    did = [line for line in lines if line.what == "did"]
    keys = Counter(line.key for line in did)
    keys.subtract(undone)
    found: Counter[str] = Counter()
    for line in {line.key: line for line in did}.values():
        count = min(keys[line.key], 1) if line.is_idempotent else keys[line.key]
        found[f"{line.name} {line.about}"] += max(0, count)
    return {what: count for what, count in found.items() if count}
