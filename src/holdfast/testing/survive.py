"""An agent killed and continued until it is done, beside one that nobody disturbed."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.engine.agents import Agent
from holdfast.errors import UsageError
from holdfast.store.codec import values
from holdfast.testing.kill import Failpoint
from holdfast.testing.lives import (
    KILLED,
    OUTPUT,
    REACHED,
    STOPPED,
    STORE,
    End,
    Life,
    Person,
    live,
    why,
)
from holdfast.testing.witness import Reached, Witness, seen
from holdfast.testing.world import Deed, World

LIVES_MAX = 20


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one run, through all of its lives."""

    place: Path
    lives: int
    reached: list[Reached]
    deeds: list[Deed]
    doubts: list[str]
    ends: dict[str, Any] | None
    """The result and the state, by these names; None if it did not come to an end."""
    error: str = ""
    kind: str = ""
    died_at: tuple[Reached, ...] = ()

    @property
    def store(self) -> Path:
        """The directory of its store."""
        return self.place / STORE

    @property
    def output(self) -> str:
        """What it printed, all lives together."""
        file = self.place / OUTPUT
        return file.read_text(encoding="utf-8") if file.exists() else ""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The agent under test and what it is called with."""

    agent: Agent[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __str__(self) -> str:
        given = [*map(repr, self.args), *(f"{name}={each!r}" for name, each in self.kwargs.items())]
        return f"({', '.join([self.agent.__name__, *given])})"


class Stage:
    """Where an agent is run over and over, each time in a new store and a new world."""

    def __init__(self, folder: Path, world: World, person: Person | None) -> None:
        self._folder, self.world, self._person = folder, world, person
        self._number = itertools.count(1)

    def life(self, part: Part) -> Life:
        """A life to begin with, in a place of its own."""
        if not isinstance(part.agent, Agent):
            kind = type(part.agent).__name__
            msg = f"the crash kit takes an agent, not {kind}; decorate it with @holdfast.agent"
            raise UsageError(msg)
        place = self._folder / f"run-{next(self._number)}"
        place.mkdir(parents=True)
        return Life(
            agent=part.agent,
            args=part.args,
            kwargs=part.kwargs,
            place=place,
            watch=Witness(place / REACHED, None).watch,
            person=self._person,
        )

    def play(self, part: Part, deaths: Sequence[Failpoint] = ()) -> Played:
        """A new run that dies at each of `deaths` in turn, then goes on to its end."""
        life = self.life(part)
        with self.world.elsewhere(life.place / "world"):
            return self._live_on(life, list(deaths))

    def _live_on(self, life: Life, deaths: list[Failpoint]) -> Played:
        file = life.place / REACHED
        doubts: list[str] = []
        died_at: list[Reached] = []
        status, end, lives = KILLED, End(), 0
        while status in (KILLED, STOPPED) and lives < LIVES_MAX:
            witness = Witness(file, deaths[0] if deaths else None)
            life = msgspec.structs.replace(
                life, watch=witness.watch, doubt=end.doubt, doubtful=end.doubtful
            )
            lives, (status, end) = lives + 1, live(life)
            if status == KILLED:
                died_at.append(seen(file)[-1])
                deaths = deaths[1:]
            elif end.doubt:
                doubts.append(end.effect.rpartition("<locals>.")[2])
        return Played(
            place=life.place,
            lives=lives,
            reached=seen(file),
            deeds=self.world.deeds(),
            doubts=doubts,
            ends=cast("dict[str, Any]", values.decode(end.value)) if end.value else None,
            error=why(status, end),
            kind=end.kind,
            died_at=tuple(died_at),
        )
