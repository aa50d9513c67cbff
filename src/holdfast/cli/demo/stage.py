"""The whole demo: the run that is killed, its undisturbed twin, and the numbers of both."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.cli.demo import proof
from holdfast.cli.demo.killer import Broken, live, plan, turns_for
from holdfast.cli.demo.process import Event, Scene
from holdfast.cli.demo.proof import Look, Proof, look
from holdfast.cli.demo.view import View
from holdfast.clock import Clock
from holdfast.store.open import open_store

TWIN_PACE = 0.0
"""The twin does not wait: it is there for its result and for what a turn costs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """How a run went: its result, and what stood after each of its lives."""

    result: Any
    looks: list[Look]


def play(folder: Path, *, kills: int, seed: int, clock: Clock, view: View) -> Proof:
    """Run the agent under kills and once undisturbed, below `folder`; count what came of it."""
    began = clock.monotonic()
    turns = turns_for(kills)
    view.begin(turns=turns, kills=kills, seed=seed)
    killed = _scene(folder, "", turns, 1.0)
    told = _live_through(killed, kills, seed, clock, view)
    view.twin()
    twin = _scene(folder, "twin-", turns, TWIN_PACE)
    undisturbed = _result(twin, clock)

    looks, last = told.looks, told.looks[-1]
    happened, expected = proof.effects(killed.world), proof.effects(twin.world)
    ways = proof.settled(looks)
    twice = proof.asked_twice(killed.world, looks)
    return Proof(
        seed=seed,
        kills=len(looks) - 1,
        lives=len(looks),
        turns=turns,
        turns_done=last.turns,
        answers_recorded=len(last.recorded),
        answers_asked_twice=twice,
        answers_lost_in_flight=proof.lost_in_flight(killed.world) - twice,
        effects_done=len(happened),
        effects_done_twice=happened.total() - len(happened),
        effects_missing=len(expected.keys() - happened.keys()),
        in_doubt=ways.total(),
        in_doubt_happened=ways["probe"],
        in_doubt_did_not=ways["call"],
        in_doubt_repeated=ways["repeat"],
        in_doubt_left=ways["nothing"] + len(last.doubts),
        is_result_same=told.result == undisturbed,
        cost_per_turn_ms=round(proof.cost_per_turn_ms(twin.world), 2),
        bytes_stored=proof.bytes_in(killed.store),
        seconds=round(clock.monotonic() - began, 1),
    )


def _scene(folder: Path, prefix: str, turns: int, pace: float) -> Scene:
    world = folder / f"{prefix}world"
    world.mkdir()
    return Scene(store=folder / f"{prefix}store", world=world, tickets=turns, pace=pace)


def _live_through(scene: Scene, kills: int, seed: int, clock: Clock, view: View) -> Told:
    """Start the agent again after each kill, until it comes to its end."""
    # Held open between lives, as a second process would: to look at what each one left.
    opened = open_store(scene.store, clock)
    looks: list[Look] = []
    results: list[Any] = []

    def hear(event: Event) -> None:
        if event.what == "done":
            results.append(event.about)
        view.hear(event)

    try:
        for kill in [*plan(seed, kills), None]:
            view.born(len(looks) + 1)
            death = live(scene, kill, clock, hear)
            looks.append(look(opened.reader, scene.world))
            view.ended(death, looks)
            if death is None:
                break
    finally:
        opened.close()
    return Told(result=results[0], looks=looks)


def _result(scene: Scene, clock: Clock) -> object:
    """What the same agent gives when nobody disturbs it."""
    results: list[object] = []

    def hear(event: Event) -> None:
        if event.what == "done":
            results.append(event.about)

    if live(scene, None, clock, hear) is not None or not results:
        raise Broken("it ended before its work was done")
    return results[0]
