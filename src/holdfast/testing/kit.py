"""`crash_at`, `crash_everywhere`, `assert_replays_exactly`: what a test of an agent calls."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

from holdfast.engine.agents import Agent
from holdfast.errors import UsageError
from holdfast.testing.kill import Failpoint
from holdfast.testing.points import TURN_BEGUN, TURN_OPENED, point
from holdfast.testing.replay import replay_faults
from holdfast.testing.survive import Part, Played, Stage
from holdfast.testing.verdict import Fault, Reference, faults, reference

FAILURES_SHOWN = 3
ASKS = "say what a person answers: a fixture `crash_person` that gives a function of the question"


class Survived(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that came to the same end in spite of every kill.

    `kills` are the points where it was killed, `doubts` the effects that a person would have been
    asked about, `store` is the directory of the last run's store.
    """

    result: Any
    state: dict[str, Any]
    kills: tuple[str, ...]
    doubts: tuple[str, ...]
    store: Path


class CrashAt:
    """`crash_at("effect.called:2")(agent, ...)`: one run, killed there, continued, compared.

    Several points are several deaths of the one run, one after the other.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __call__(self, first: str, *more: str) -> "Killing":
        """What runs an agent and kills it at these points."""
        return Killing(self._stage, [point(each) for each in (first, *more)])


class Killing:
    """Runs an agent that dies at given points."""

    def __init__(self, stage: Stage, deaths: Sequence[Failpoint]) -> None:
        self._stage, self._deaths = stage, deaths

    def __call__(self, agent: Agent[..., Any], /, *args: Any, **kwargs: Any) -> Survived:  # noqa: ANN401 the agent's own
        """Run `agent` as `store.run` would; fail the test if the kills change anything."""
        part = Part(agent=agent, args=args, kwargs=kwargs)
        expected = undisturbed(self._stage, part)
        played = self._stage.play(part, self._deaths)
        if played.ends is not None and len(played.died_at) < len(self._deaths):
            raise UsageError(_not_reached(self._deaths[len(played.died_at)], played))
        found = faults(expected, played)
        if found:
            _fail(part, [_told(part, played, found)], 1)
        return _survived([played])


class CrashEverywhere:
    """`crash_everywhere(agent, ...)`: a run for each point that the agent comes to, killed there.

    Before and after every step, effect and save, and at the start of every turn; `kills_max`
    bounds the runs: beyond it, points are left out evenly.
    """

    def __init__(self, stage: Stage, kills_max: int) -> None:
        self._stage, self._kills_max = stage, kills_max

    def __call__(self, agent: Agent[..., Any], /, *args: Any, **kwargs: Any) -> Survived:  # noqa: ANN401 the agent's own
        """Run `agent` as `store.run` would, over and over; fail the test if a kill changes it."""
        part = Part(agent=agent, args=args, kwargs=kwargs)
        expected = undisturbed(self._stage, part)
        played, failures = [], []
        for death in spread(deaths(expected.played), self._kills_max):
            played.append(self._stage.play(part, [death]))
            found = faults(expected, played[-1])
            if found:
                failures.append(_told(part, played[-1], found))
            if len(failures) == FAILURES_SHOWN:
                break
        if failures:
            _fail(part, failures, len(played))
        return _survived(played)


class ReplaysExactly:
    """`assert_replays_exactly(agent, ...)`: every turn is computed, lost, and replayed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __call__(self, agent: Agent[..., Any], /, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 the agent's own
        """Fail the test if a replay asks anything anew, or comes to another state or result."""
        part = Part(agent=agent, args=args, kwargs=kwargs)
        found = replay_faults(self._stage, part)
        if found:
            lines = [line for fault in found for line in _lines(fault)]
            pytest.fail(
                "\n".join([f"{_name(part)} does not replay exactly.", *lines]), pytrace=False
            )


def undisturbed(stage: Stage, part: Part) -> Reference:
    """Two runs that nobody kills, to compare with; the test fails if there is no end to compare."""
    one, two = stage.play(part), stage.play(part)
    for played in (one, two):
        if played.ends is None:
            lines = [f"{_name(part)} did not come to an end, and nobody killed it."]
            lines += [f"  found   {played.error}"]
            lines += [f"  so      {ASKS}"] if played.kind == "Waiting" else []
            lines += [f"  output  {played.place / 'output'}"]
            pytest.fail("\n".join(lines), pytrace=False)
    return reference(one, two)


def deaths(played: Played) -> list[Failpoint]:
    """The start of every turn after the first, then every point that a run came to, in order."""
    begun = [
        Failpoint(name=TURN_BEGUN, nth=each.nth)
        for each in played.reached
        if each.point == TURN_OPENED and each.nth > 1
    ]
    return [*begun, *(Failpoint(name=each.point, nth=each.nth) for each in played.reached)]


def spread(points: list[Failpoint], count: int) -> list[Failpoint]:
    """At most so many of the points, evenly over all of them, first and last among them."""
    if len(points) <= count:
        return points
    chosen = {round(n * (len(points) - 1) / max(1, count - 1)) for n in range(count)}
    return [points[n] for n in sorted(chosen)]


def _survived(played: Sequence[Played]) -> Survived:
    ends = played[-1].ends
    assert ends is not None
    return Survived(
        result=ends["result"],
        state=ends["state"],
        kills=tuple(each.name for one in played for each in one.died_at),
        doubts=tuple(itertools.chain.from_iterable(one.doubts for one in played)),
        store=played[-1].store,
    )


def _told(part: Part, played: Played, found: list[Fault]) -> list[str]:
    names = ", ".join(f'"{each.name}"' for each in played.died_at)
    return [
        *(f"  killed  {each}" for each in played.died_at),
        *(line for fault in found for line in _lines(fault)),
        f"  repeat  crash_at({names}){part}",
        f"  kept    {played.place}",
    ]


def _lines(fault: Fault) -> list[str]:
    return [f"  found   {fault.found}", f"  so      {fault.so}"]


def _fail(part: Part, failures: list[list[str]], kills: int) -> NoReturn:
    first = f"{_name(part)} does not survive every crash: {len(failures)} of {kills} kills tried"
    pytest.fail(
        "\n\n".join([f"{first} changed what it does.", *map("\n".join, failures)]), pytrace=False
    )


def _name(part: Part) -> str:
    return f"agent {part.agent.__name__}"


def _not_reached(missing: Failpoint, played: Played) -> str:
    times = sum(each.point == missing.name for each in played.reached)
    return f"the run ended before it reached {missing}; it came to {missing.name} {times} times"
