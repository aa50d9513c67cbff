"""Whether a run comes out the same when it is replayed: every turn is lived twice.

Each turn is computed in one life, which dies at its end; the next life replays it from what was
recorded, and must come to the same state without a single new call.
"""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from holdfast import failpoint
from holdfast.capture.diff import diff
from holdfast.capture.tracked import plain
from holdfast.engine import context
from holdfast.model.journal import Call
from holdfast.store.codec import values
from holdfast.testing.lives import KILLED, STOPPED, End, Life, live, why
from holdfast.testing.survive import Part, Stage
from holdfast.testing.verdict import ARGUMENTS, BETWEEN, CHANGES_SHOWN, Fault, shown
from holdfast.testing.witness import die, named

TURNS_MAX = 10_000
CALLED = ("step.called", "effect.called")
TURN_ENDS = "turn.ending"
LIVED, AGAIN = "lived", "lived-again"


class Twice:
    """In a child: replay the turn that the life before computed, compute one more, and die."""

    def __init__(self, life: Life) -> None:
        self._agent, self._place = life.agent, life.place
        self._is_replay = (life.place / LIVED).exists()
        self._calls: list[str] = []

    def watch(self) -> None:
        """Look out for calls, and for the ends of turns and of the agent."""
        for name in CALLED:
            failpoint.watch(name, self._called)
        failpoint.watch(TURN_ENDS, self._ended)
        self._agent.fn = self._watched(self._agent.fn)  # Of this child alone.

    def _watched(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def agent(*args: object, **kwargs: object) -> object:
            result = fn(*args, **kwargs)
            self._ended(result)
            return result

        async def aagent(*args: object, **kwargs: object) -> object:
            result = await fn(*args, **kwargs)
            self._ended(result)
            return result

        return aagent if self._agent.is_async else agent

    def _called(self, call: Call, *_: object) -> None:
        self._calls.append(named(call))

    def _ended(self, *result: object) -> None:
        here = context.frame.get()
        assert here is not None
        session = here.session
        session.sections.capture()
        kept = {"turn": session.turn, "state": plain(session.state.root)}
        if result:
            kept["result"] = plain(result[0])
        if self._is_replay:
            self._is_replay = False
            before = values.decode((self._place / LIVED).read_bytes())
            if self._calls or diff(before, kept):
                (self._place / AGAIN).write_bytes(values.encode({**kept, "calls": self._calls}))
                die()
            return
        (self._place / LIVED).write_bytes(values.encode(kept))
        session.flush()  # What rides along with the next commit is to be replayed too.
        die()


def replay_faults(stage: Stage, part: Part) -> list[Fault]:
    """What comes out different when each turn of a run is replayed, for the first such turn."""
    life = stage.life(part)
    with stage.world.elsewhere(life.place / "world"):
        status, end = KILLED, End()
        for _ in range(TURNS_MAX):
            life = msgspec.structs.replace(
                life, watch=Twice(life).watch, doubt=end.doubt, doubtful=end.doubtful
            )
            status, end = live(life)
            found = _compared(life)
            if found or status not in (KILLED, STOPPED):
                return found or _ended_badly(status, end)
    return [Fault(found=f"it has more than {TURNS_MAX} turns", so="test it with fewer")]


def _compared(life: Life) -> list[Fault]:
    """What the newest replay has in another way than the life that it replayed."""
    again = life.place / AGAIN
    if not again.exists():
        return []
    before = cast("dict[str, Any]", values.decode((life.place / LIVED).read_bytes()))
    after = cast("dict[str, Any]", values.decode(again.read_bytes()))
    turn, calls = after["turn"], after.pop("calls")
    if calls:
        found = f"turn {turn}, replayed, asked for what it had not asked before: {calls[0]}"
        return [Fault(found=found, so=BETWEEN)]
    return [
        Fault(found=f"turn {turn}, replayed, came out different: {shown(change)}", so=BETWEEN)
        for change in diff(before, after)[:CHANGES_SHOWN]
    ]


def _ended_badly(status: int, end: End) -> list[Fault]:
    error = why(status, end)
    so = ARGUMENTS if end.kind == "Diverged" else BETWEEN
    return [Fault(found=f"replayed, it did not go on: {error}", so=so)] if error else []
