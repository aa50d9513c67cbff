"""Lives and deaths of the agent: when each life is to end, and how it did."""

import enum
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.cli.demo.process import Event, Process, Scene
from holdfast.clock import Clock
from holdfast.errors import HoldfastError

TURNS_PER_KILL = 2
TURNS_UNDISTURBED = 6
"""After the last kill, so that the run also ends in a life of its own."""
SILENCE_S_MAX = 60.0


class Moment(enum.Enum):
    """When a life is to be ended, by what is heard of it outside."""

    STARTING = "starting"
    TURN = "turn"
    PAYING = "paying"
    MAILING = "mailing"


REACH_S = {Moment.STARTING: 0.4, Moment.TURN: 0.09, Moment.PAYING: 0.024, Moment.MAILING: 0.016}
"""How long after its moment a kill may come: about as long as what it is to hit takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kill:
    """End a life `delay_s` after its moment has come, in turn `turn` or a later one."""

    turn: int
    moment: Moment
    delay_s: float

    def is_due(self, heard: Event, turn: int) -> bool:
        """Whether the moment has come with what was just heard."""
        return turn >= self.turn and heard.what == self.moment.value


@dataclass(frozen=True, kw_only=True, slots=True)
class Death:
    """How a life was ended: in which turn (-1: before its first), and after what was heard."""

    turn: int
    last: Event
    after_ms: float


class Broken(HoldfastError):
    """A life of the agent ended by itself, and not well."""

    remedy = "run the demo again with `--keep PATH` and look at the store with `holdfast show demo`"

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said

    def __str__(self) -> str:
        return f"the agent's process ended by itself:\n{self.said}\n{self.remedy}"


def plan(seed: int, kills: int) -> list[Kill]:
    """Moments all over the run: any time, while it starts, and inside the windows of effects."""
    chance = random.Random(seed)  # noqa: S311 a seed makes a demo that can be repeated
    moments = list(Moment)
    chosen = [*moments, *chance.choices(moments, weights=(1, 5, 3, 2), k=kills)][:kills]
    chance.shuffle(chosen)
    turns = sorted(chance.randrange(TURNS_PER_KILL * kills) for _ in chosen)
    return [
        Kill(turn=turn, moment=moment, delay_s=chance.uniform(0, REACH_S[moment]))
        for turn, moment in zip(turns, chosen, strict=True)
    ]


def turns_for(kills: int) -> int:
    """How long a run must be so that every kill finds its moment."""
    return TURNS_PER_KILL * kills + TURNS_UNDISTURBED


def live(
    scene: Scene, kill: Kill | None, clock: Clock, hear: Callable[[Event], None]
) -> Death | None:
    """Live one life, killed as planned; None when it brought the run to its end."""
    turn, last, heard_at = -1, Event("starting", ""), clock.monotonic()
    due = heard_at + kill.delay_s if kill and kill.moment is Moment.STARTING else None
    killed_at: float | None = None
    with Process(scene) as process:
        while True:
            wait_s = SILENCE_S_MAX if due is None or killed_at else due - clock.monotonic()
            try:
                event = process.next(wait_s)
            except TimeoutError:
                process.kill()
                killed_at = clock.monotonic()
                continue
            if event is None:
                break
            last, heard_at = event, clock.monotonic()
            if event.what == "turn":
                turn = event.about
            if kill and due is None and kill.is_due(event, turn):
                due = heard_at + kill.delay_s
            hear(event)
        status, said = process.end()
    if last.what == "done":
        return None
    if due is None or status != -signal.SIGKILL:
        raise Broken(said or f"nothing (exit status {status})")
    after_s = max(0.0, (killed_at or heard_at) - heard_at)
    return Death(turn=turn, last=last, after_ms=1000 * after_s)
