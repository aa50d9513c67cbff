"""States that name what stands elsewhere come back exactly, whatever branch or life wrote it."""

# ruff: noqa: ANN401, S311 states hold anything; seeds are not secrets

import copy
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import failpoint
from holdfast.capture import known
from holdfast.capture import state as capture
from holdfast.clock import SystemClock
from holdfast.engine import turns
from holdfast.engine.restore import state_at
from holdfast.model.journal import TurnEnded
from holdfast.store import writer
from holdfast.store.open import open_store
from holdfast.store.verify import verify
from tests.property import test_replay as replay
from tests.property.test_replay import POINTS, Killed, World

TEXT = "a message that is long enough to be worth a name; "
STATES: dict[int, Any] = {}
"""The state at each turn's end, as the agent last saw it."""


@holdfast.register(name="test_naming.Said")
@dataclass
class Said:
    text: str


@holdfast.register(name="test_naming.Quoted")
@dataclass(frozen=True)
class Quoted:
    text: str


@holdfast.step
def say(number: int) -> Said | Quoted:
    text = f"{number} said: {TEXT}"
    return Said(text) if number % 2 else Quoted(text)


def speak(state: Any, chance: random.Random) -> None:
    """Objects, as answers and of the agent's own, alone and inside dicts, some changed later."""
    told = state.setdefault("told", [])
    answer = say(chance.randrange(10**6))
    told.append(answer if chance.random() < 0.5 else {"by": "model", "said": answer})
    made = Said(TEXT + str(chance.random())), Quoted(TEXT + str(chance.random()))
    told.append({"by": "user", "said": [*made, (TEXT, chance.random())]})
    one = told[chance.randrange(len(told))]
    if isinstance(one, Said):
        one.text += "!"
    elif isinstance(one, dict):
        one["read"] = chance.randrange(10)
    if chance.random() < 0.2:
        del told[: len(told) // 2]


@holdfast.agent
def keeper(run: holdfast.Run, seed: int, count: int) -> Any:
    """Two loops; each turn adds to the state, takes away, moves and changes what is in it."""
    seen = STATES
    run.state.setdefault("items", [])
    for loop in range(2):
        for turn in run.turns():
            chance = random.Random(seed * 1000 + turn)
            reply = replay.think(run.state["items"], chance.randrange(10**6))
            run.state["items"].append({"role": "user", "content": TEXT + str(turn)})
            run.state.setdefault("facts", {})["made"] = {"text": TEXT, "in": {"text": TEXT * 2}}
            replay.change(run.state, chance, reply)
            speak(run.state, chance)
            if chance.random() < 0.3:
                replay.pay(f"{turn}-{reply['n']}")
            seen[turn] = copy.deepcopy(holdfast.plain(run.state))
            if turn + 1 >= count * (loop + 1):
                break
        run.state["items"].append({"left": loop, "text": TEXT})
        replay.think(["between"], seed + loop)
        seen[count * (loop + 1) - 1] = copy.deepcopy(holdfast.plain(run.state))
    return holdfast.plain(run.state)


def live(
    path: Path, order: tuple[int, int], point: tuple[str, int] | None, *, redo: bool = False
) -> Any:
    """One life; None when it was killed."""
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
        if redo and any(info.id == "run" for info in store.runs()):
            return store.restart("run", agent=keeper, redo_turn=True)
        return store.run(keeper, *order, id="run", checkpoint=holdfast.every(turns=1))
    except Killed:
        return None
    finally:
        failpoint.disarm()
        store.close()


def often(patch: pytest.MonkeyPatch) -> None:
    """Bases at nearly every turn's end, so that most of a state is named."""
    patch.setattr(turns, "BASE_BYTES_MIN", 600)
    patch.setattr(capture, "NAMED_BYTES", 1)
    patch.setattr(known, "LEAF_BYTES_MIN", 60)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 8),
    kills=st.lists(
        st.tuples(st.sampled_from(POINTS), st.integers(1, 9), st.booleans()), max_size=6
    ),
)
def test_every_turns_end_comes_back_from_a_journal_of_many_lives_and_branches(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    count: int,
    kills: list[tuple[str, int, bool]],
) -> None:
    replay.WORLD = World()
    STATES.clear()
    path = tmp_path_factory.mktemp("rough")

    result = None
    with pytest.MonkeyPatch.context() as patch:
        often(patch)
        for point, times, redo in kills:
            result = result or live(path, (seed, count), (point, times), redo=redo)
        result = result or live(path, (seed, count), None)

    assert STATES[2 * count - 1] == result
    check_every_turn(path)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(4, 12),
    kills=st.lists(st.tuples(st.sampled_from(POINTS), st.integers(9, 40)), max_size=3),
    last=st.integers(1, 3),
)
def test_what_is_kept_comes_back_when_the_rest_is_collected_after_every_life(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    count: int,
    kills: list[tuple[str, int]],
    last: int,
) -> None:
    replay.WORLD = World()
    STATES.clear()
    path = tmp_path_factory.mktemp("swept")

    result = None
    with pytest.MonkeyPatch.context() as patch:
        often(patch)
        patch.setattr(writer, "PACK_BYTES", 3000)
        for point in [*kills, None]:
            result = result or live(path, (seed, count), point)
            check_collected(path, holdfast.Retention(last=last))

    assert STATES[2 * count - 1] == result


def check_collected(path: Path, rules: holdfast.Retention) -> None:
    """Collect garbage; what is left is what was there."""
    with holdfast.open(path) as store:
        before = {
            each.id: store.restore(each.id)[1]
            for info in store.runs()
            for each in store.checkpoints(info.id)
        }
        store.gc(rules)
        kept = [each.id for info in store.runs() for each in store.checkpoints(info.id)]
        assert [before[name] for name in kept] == [store.restore(name)[1] for name in kept]
    opened = open_store(path, SystemClock(), must_exist=True)
    try:
        assert verify(opened, deep=True).is_whole
    finally:
        opened.close()


def check_every_turn(path: Path) -> None:
    opened = open_store(path, SystemClock(), must_exist=True)
    try:
        reader = opened.reader
        run = reader.find("run")
        assert run is not None
        head = run.row.head
        rows = list(reader.rows(head, reader.first(head), reader.end(head)))
        for at, placed in enumerate(rows):
            for entry in placed.row.entries:
                if isinstance(entry, TurnEnded):
                    state = state_at(reader, rows[: at + 1])
                    assert state is not None
                    assert STATES[entry.turn] == state.root
        assert verify(opened, deep=True).is_whole
    finally:
        opened.close()
