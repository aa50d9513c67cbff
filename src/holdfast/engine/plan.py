"""The plan of a rollback: what it would lose and take back, for people and for programs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from holdfast.capture.diff import Change
from holdfast.engine.hold import PAUSE_S, patience_s
from holdfast.model.rollback import Rolled, Taken

CHANGES_SHOWN = 20
WAYS = {
    "undo": "will be undone",
    "offset": "will be offset, not undone",
    "ask": "in doubt: its probe is asked, and it is undone if it happened",
    "impossible": "cannot be undone",
    "unknown": "unknown",
    "kept": "stays",
    "undone": "is undone",
    "cancelled": "is cancelled: it did not happen",
}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What is said when a plan is carried out; `pause_s`: how long its holder may take to stop."""

    is_free: bool
    reason: str | None
    pause_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class RollbackPlan:
    """What a rollback would lose and take back; `apply()` does it.

    `effects` are in the order in which they are taken back. What is not known is None: how long the
    handlers take, and what they cost. `children` were begun after the target; roll one back itself
    to have its effects undone. `forks` have effects in their history that are undone here.
    """

    run: str
    to: str
    turn: int | None
    turns_lost: int
    seconds_lost: float | None
    tokens_in: int | None
    tokens_out: int | None
    only: list[str] | None
    changes: list[Change]
    effects: list[Taken]
    is_unfinished: bool
    children: list[str] = field(default_factory=list)
    forks: list[str] = field(default_factory=list)
    seconds: float | None = None
    cost_usd: float | None = None
    _apply: "Apply" = field(repr=False, compare=False)

    def apply(
        self,
        *,
        fork_effects: bool = False,
        reason: str | None = None,
        pause: bool = False,
        wait: float | str = PAUSE_S,
    ) -> Rolled:
        """Do it. The present stays on the old branch; the run can then go on from the target.

        `fork_effects` lets the new line of history do again what still stands. A run that a
        process works on is refused with `RunHeld`, unless `pause` asks that process to let it go:
        then what was done until it did is taken back too, and `NotPaused` says that it did not
        within `wait`. A supervised or watched run then goes on by itself.
        """
        pause_s = patience_s(wait) if pause else None
        return self._apply(self, Said(is_free=fork_effects, reason=reason, pause_s=pause_s))

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain values, for JSON."""
        return {name: value for name, value in vars(self).items() if name != "_apply"}

    def __str__(self) -> str:
        return "\n".join(_told(self))


Apply = Callable[[RollbackPlan, Said], Rolled]
"""How a plan is carried out."""


def unfinished(
    run: str, to: str, effects: list[Taken], apply: Apply, *, at: tuple[int, list[str] | None]
) -> RollbackPlan:
    """The plan of what was cut off: what is left of it; nothing more is lost.

    `at` are the turn it goes to (-1: none) and the sections that go back, if not all.
    """
    turn, only = at
    return RollbackPlan(
        run=run,
        to=to,
        turn=turn if turn >= 0 else None,
        turns_lost=0,
        seconds_lost=None,
        tokens_in=None,
        tokens_out=None,
        only=only,
        changes=[],
        effects=effects,
        is_unfinished=True,
        _apply=apply,
    )


def _told(plan: RollbackPlan) -> Iterator[str]:
    """A plan in words."""
    what = "goes on with the rollback of" if plan.is_unfinished else "rolls back"
    yield f"{what} run {plan.run} to {plan.to}"
    if plan.only is not None:
        yield f"- only {', '.join(plan.only)}; everything else stays as it is"
    elif not plan.is_unfinished:
        lost = "1 turn after it leaves" if plan.turns_lost == 1 else "{} turns after it leave"
        yield f"- {lost.format(plan.turns_lost)} the head; the old branch keeps what was there"
    if plan.seconds_lost is not None:
        tokens = f"{_known(plan.tokens_in)} tokens in, {_known(plan.tokens_out)} out"
        yield f"- work of {plan.seconds_lost:.1f} s, {tokens}"
    for change in plan.changes[:CHANGES_SHOWN]:
        yield f"- state: {change.path} {change.kind}"
    if len(plan.changes) > CHANGES_SHOWN:
        yield f"- state: {len(plan.changes) - CHANGES_SHOWN} more changes"
    names = {each.key: each.effect for each in plan.effects}
    for each in plan.effects:
        why = f" ({each.why})" if each.why else ""
        after = ", ".join(names[key] for key in each.after if key in names)
        then = f", after {after}, which stands on it" if after else ""
        yield f"- effect {each.effect}, key {each.key}: {WAYS.get(each.how, each.how)}{then}{why}"
    for each_child in plan.children:
        yield f"- child {each_child} stays as it is; what it did is not done again, nor undone"
    for fork in plan.forks:
        yield f"- fork {fork} has in its history what is undone, and goes on as if that stood"
    if plan.effects:
        yield "- how long the undos take, and what they cost, is not known"


def _known(count: int | None) -> str:
    return "?" if count is None else str(count)
