"""What is asked of a run, and what beginning it gave."""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.engine.agents import Agent
from holdfast.engine.pulse import Pulse
from holdfast.engine.session import Session
from holdfast.model.cadence import Pace
from holdfast.model.ids import Point
from holdfast.model.journal import Decided
from holdfast.model.run import Origin


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What `store.run` or `store.restart` asks for.

    `is_restart` tries a failed run again with its recorded arguments; `back` is a turn's end to go
    on from instead of the newest one. `decided` is why: recorded once the run is ours;
    `pulse` is a supervisor's ear. `pace` is what is said of saving this run alone,
    `origin` whose child it is. One that `must_exist` is not begun anew where it was removed; one
    that nobody named has an id made by chance, which is not looked for before it is taken.
    """

    agent: Agent[..., Any]
    run: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    is_restart: bool = False
    is_redo: bool = False
    is_revived: bool = False
    reason: str | None = None
    back: Point | None = None
    decided: Decided | None = None
    pulse: Pulse = msgspec.field(default_factory=Pulse)
    pace: Pace = Pace()
    origin: Origin | None = None
    must_exist: bool = False
    is_named: bool = True


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The run had finished before: its recorded result."""

    value: object


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """A life that begins: the session, and the arguments to call the agent with."""

    session: Session
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
