"""Whatever an agent does with its state, killed anywhere it ends as if it had never been."""

# ruff: noqa: ANN401, S311 states hold anything; seeds are not secrets

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import failpoint

POINTS = (
    "step.called",
    "step.recording",
    "step.recorded",
    "effect.intending",
    "effect.intended",
    "effect.called",
    "effect.recorded",
    "turn.opened",
    "turn.ending",
    "turn.ended",
    "store.committing",
    "store.committed",
    "run.taking",
    "run.taken",
    "run.ending",
)


class Killed(BaseException):
    """The process would be gone here."""


class World:
    """What exists outside the store: payments made, and what was asked of the model."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.keys: set[str] = set()
        self.asked: list[int] = []


WORLD = World()


@holdfast.step
def think(seen: Any, seed: int) -> dict[str, Any]:
    WORLD.asked.append(seed)
    chance = random.Random(seed)
    return {
        "text": "x" * chance.randrange(400),
        "n": chance.randrange(100),
        "parts": [{"i": i} for i in range(chance.randrange(3))],
        "seen": len(seen),
    }


def paid(what: str, idempotency_key: str = "") -> str | None:
    """By the key: a turn may pay the same twice on purpose."""
    return what if idempotency_key in WORLD.keys else None


@holdfast.effect(probe=paid)
def pay(what: str, idempotency_key: str = "") -> str:
    WORLD.keys.add(idempotency_key)
    WORLD.paid.append(what)
    return what


def change(state: Any, chance: random.Random, reply: Any) -> None:
    """One of the things people do to their state."""
    items, facts = state["items"], state["facts"]
    match chance.randrange(12):
        case 0 | 1 | 2:
            items.append(reply)
        case 3:
            items.extend(reply["parts"])
        case 4:
            facts[f"k{chance.randrange(8)}"] = reply["n"]
        case 5:
            facts.pop(f"k{chance.randrange(8)}", None)
        case 6:
            state["items"] = items[-20:]
        case 7:
            facts["nested"] = {"again": reply["parts"], "list": [1, [2, {"three": 3}]]}
        case 8 if items:
            item = items[chance.randrange(len(items))]
            item["touched"] = chance.randrange(10)
        case 9 if items:
            del items[chance.randrange(len(items)) :]
        case 10 if "nested" in facts:
            facts["nested"]["list"][1].insert(0, reply["n"])
            facts["alias"] = facts["nested"]["list"]
        case _:
            items.insert(0, {"fresh": [reply["n"]]})


@holdfast.agent
def worker(run: holdfast.Run, seed: int, turns: int) -> dict[str, Any]:
    items = run.state.setdefault("items", [])
    run.state.setdefault("facts", {})["seed"] = think(items, seed)["n"]
    for turn in run.turns():
        chance = random.Random(seed * 1000 + turn)
        for _ in range(chance.randrange(1, 4)):
            reply = think(run.state["items"], chance.randrange(10**6))
            change(run.state, chance, reply)
            if chance.random() < 0.3:
                pay(f"{turn}-{reply['n']}-{len(run.state['items'])}")
            if chance.random() < 0.3:
                run.state["facts"]["id"] = str(run.uuid()) and run.random.randrange(2) * 0
        if turn + 1 >= turns:
            break
    last = think(["after"], seed + 1)
    return {"state": holdfast.plain(run.state), "last": last["n"]}


def live(path: Path, seed: int, turns: int, point: tuple[str, int] | None) -> Any:
    """One life; None when it was killed."""
    failpoint.disarm()
    left = point[1] if point else 0

    def act() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed

    if point:
        failpoint.arm(point[0], act)
    store = holdfast.open(path)
    try:
        return store.run(worker, seed, turns, id="run")
    except Killed:
        return None
    finally:
        failpoint.disarm()
        store.close()


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    turns=st.integers(1, 12),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(1, 9)), max_size=5),
)
def test_a_run_killed_anywhere_ends_as_if_it_had_never_been(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    turns: int,
    kills: list[tuple[str, int]],
) -> None:
    global WORLD  # noqa: PLW0603 steps are module functions
    WORLD = World()
    expected = copy.deepcopy(live(tmp_path_factory.mktemp("calm"), seed, turns, None))
    calm = WORLD

    WORLD = World()
    rough = tmp_path_factory.mktemp("rough")
    result = None
    for kill in kills:
        result = live(rough, seed, turns, kill)
        if result is not None:
            break
    result = result or live(rough, seed, turns, None)

    assert expected == result
    assert calm.paid == WORLD.paid
    assert set(calm.asked) == set(WORLD.asked)
    assert len(WORLD.asked) - len(calm.asked) <= len(kills), "at most one answer in flight per kill"
