"""Values of every kind through answers and state: equal, and of the same type, after a restart."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import math
import pathlib
import socket
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pydantic
import pytest

import holdfast
from tests.engine.kit import RUN, Crash, Stage, World


@holdfast.register
@dataclasses.dataclass
class Point:
    x: int
    tags: list[str]


@holdfast.register
@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int
    when: dt.date


@holdfast.register
class Model(pydantic.BaseModel):
    name: str
    inner: "Model | None" = None


@holdfast.register
class Struct(msgspec.Struct):
    a: int
    b: list[int]


@holdfast.register
class Colour(enum.Enum):
    RED = "r"


@holdfast.register
class Pair(NamedTuple):
    one: int
    two: str


@holdfast.register(
    encode=lambda value: [value.numerator, value.denominator],
    decode=lambda data: fractions.Fraction(*data),
)
class Ratio(fractions.Fraction):
    pass


VALUES: dict[str, Any] = {
    "none": None,
    "bools": [True, False, 1, 0, 1.0],
    "ints": [0, -1, 2**63, -(2**63), 2**64, -(10**40), 10**400],
    "floats": [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 5e-324],
    "text": ["", "ä", "日本", "\0", "\ud800", "x" * 5000],
    "bytes": [b"", b"\0\xff", bytearray(b"ab")],
    "keys": {1: "a", "1": "b", (1, 2): "c", None: "d", False: "e", b"k": "f", 1.5: "g"},
    "containers": [(), (1, [2, {"a": (3,)}]), {1, 2}, frozenset({(1, 2)}), [], {}],
    "times": [
        dt.datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001 naive on purpose
        dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        dt.datetime(2026, 10, 25, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"), fold=1),
        dt.datetime(2026, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))),
        dt.date(1, 1, 1),
        dt.time(23, 59, 59, 999999),
        dt.timedelta(days=-1, microseconds=1),
    ],
    "numbers": [decimal.Decimal("1.10"), decimal.Decimal("NaN"), 1 + 2j, range(1, 9, 2)],
    "names": [uuid.UUID(int=7), pathlib.Path("a/b"), pathlib.PurePosixPath("/x")],
    "objects": [Point(1, ["a"]), Frozen(2, dt.date(2026, 1, 1)), Colour.RED, Pair(1, "b")],
    "models": [Model(name="a", inner=Model(name="b")), Struct(1, [2])],
    "arrays": [np.arange(6).reshape(2, 3), np.float32(1.5), np.array(["a", "b"])],
    "deep": [[[[[[[[[[{"a": [{"b": ({"c": []},)}]}]]]]]]]]]],
}


def same(one: Any, two: Any) -> bool:  # noqa: ANN401 any two values
    """Equal in content and in type, all the way down; NaN is NaN."""
    one, two = holdfast.plain(one), holdfast.plain(two)
    if type(one) is not type(two):
        return False
    if isinstance(one, np.ndarray):
        return bool(one.dtype == two.dtype and (one == two).all())
    if isinstance(one, dict):
        return list(map(repr, one)) == list(map(repr, two)) and all(
            same(one[key], two[key]) for key in one
        )
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return repr(one) == repr(two)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back_as_it_was(stage: Stage, world: World, name: str) -> None:
    value = VALUES[name]
    seen: list[list[Any]] = []

    @holdfast.step
    def echo(value: Any, turn: int) -> Any:  # noqa: ANN401
        world.ask(f"echo {turn}")
        return value

    @holdfast.agent
    def agent(run: holdfast.Run, given: Any) -> Any:  # noqa: ANN401
        for turn in run.turns():
            answer = echo(given, turn)
            if turn == 0:
                run.state["put"] = given
                run.state["answer"] = answer
                run.state["nested"] = {"list": [given, (given,)]}
            else:
                seen.append([given, answer, *map(run.state.get, ("put", "answer"))])
                seen[-1] += [run.state["nested"]["list"][0], run.state["nested"]["list"][1][0]]
                if world.dies_at:
                    raise Crash
                return {"result": given}
        raise AssertionError

    world.dies_at = "after turn 1"
    stage.die(agent, value)
    world.dies_at = None
    result = stage.live(agent, value)
    again = stage.live(agent)

    assert ["echo 0", "echo 1"] == world.asked
    for each in (*seen[0], *seen[1], result["result"], again["result"]):
        assert same(value, each)


def test_changes_inside_objects_of_the_state_are_kept(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(turn: int) -> str:
        return world.ask(f"chat {turn}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        run.state["point"] = Point(0, [])
        run.state["set"] = {0}
        run.state["array"] = np.zeros(3)
        for turn in run.turns():
            chat(turn)
            run.state["point"].x += 1
            run.state["point"].tags.append(f"t{turn}")
            run.state["set"].add(turn)
            run.state["array"][turn % 3] += 1
            if turn == 4:
                return [run.state["point"], run.state["set"], run.state["array"].tolist()]
        raise AssertionError

    for turn in (1, 3, 4):
        world.dies_at = f"chat {turn}"
        stage.die(agent)
    world.dies_at = None

    expected = [Point(5, [f"t{turn}" for turn in range(5)]), {0, 1, 2, 3, 4}, [2.0, 2.0, 1.0]]
    assert expected == stage.live(agent)


def test_what_is_shared_in_the_state_stays_shared(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(turn: int) -> dict[str, Any]:
        world.ask(f"chat {turn}")
        return {"n": turn}

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        for turn in run.turns():
            reply = chat(turn)
            if turn == 0:
                run.state["one"] = run.state["two"] = {"list": []}
                run.state["three"] = [reply, reply]
            run.state["one"]["list"].append(turn)
            assert run.state["one"] is run.state["two"]
            assert run.state["three"][0] is run.state["three"][1]
            if turn == 3:
                return run.state
        raise AssertionError

    for turn in (1, 3):
        world.dies_at = f"chat {turn}"
        stage.die(agent)
    world.dies_at = None

    expected = {
        "one": {"list": [0, 1, 2, 3]},
        "two": {"list": [0, 1, 2, 3]},
        "three": [{"n": 0}, {"n": 0}],
    }
    assert expected == stage.live(agent)


class Unknown:
    """A class that nobody registered."""


def spoiled(value: object) -> Any:  # noqa: ANN401 what is put into the state
    return [{"role": "user"}, {"role": "user"}, {"role": "user"}, {"role": "tool", "tool": value}]


PLACE = 'state["messages"][3]["tool"]'


@pytest.mark.parametrize("when", ["turn's end", "checkpoint", "result"])
def test_an_unknown_class_in_the_state_is_refused_with_its_place_and_a_fix_goes_on(
    stage: Stage, world: World, when: str
) -> None:
    is_fixed = False

    @holdfast.step
    def chat(turn: int) -> str:
        return world.ask(f"chat {turn}")

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        for turn in run.turns():
            chat(turn)
            if turn == 1:
                run.state["messages"] = spoiled("known" if is_fixed else Unknown())
                if when == "checkpoint":
                    run.checkpoint()
                if when == "result":
                    return "done"
            if turn == 2:
                return "done"
        raise AssertionError

    error = stage.fault(agent)
    kinds = stage.kinds()

    assert isinstance(error, holdfast.NotStorable)
    assert f"{PLACE}: " in str(error)
    assert "Unknown" in str(error)
    assert "holdfast.register(Unknown" in str(error)
    assert 1 == kinds.count("TurnEnded")
    assert "Saved" not in kinds
    assert "Finished" not in kinds
    assert holdfast.Status.FAILED is stage.info().status
    is_fixed = True
    assert "done" == stage.restart(agent)
    assert [] == world.repeated


def test_an_unknown_class_in_an_argument_from_the_state_is_named_with_its_place(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def chat(messages: list[Any]) -> str:
        return world.ask("chat")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        with socket.socket() as line:
            run.state["messages"] = spoiled(line)
            return chat(run.state["messages"])

    error = stage.fault(agent)

    assert isinstance(error, holdfast.NotStorable)
    assert str(error).startswith(f"{PLACE}: socket")
    assert [] == world.asked
    assert ["Started", "Decided", "Failed"] == stage.kinds()


@pytest.mark.parametrize("what", ["argument of the run", "argument", "result"])
def test_an_unknown_class_elsewhere_is_refused_with_its_place(
    stage: Stage, world: World, what: str
) -> None:
    @holdfast.effect
    def pay(order: dict[str, Any]) -> str:
        return world.ask("pay")

    @holdfast.agent
    def agent(run: holdfast.Run, given: Any = None) -> Any:  # noqa: ANN401
        if what == "argument":
            pay({"client": [Unknown()]})
        return {"made": Unknown()}

    error = stage.fault(agent, *([{"a": Unknown()}] if what == "argument of the run" else []))
    places = {"argument of the run": '["a"]', "argument": '["client"][0]', "result": '["made"]'}

    assert isinstance(error, holdfast.NotStorable)
    assert f"{places[what]}: " in str(error)
    assert "Unknown" in str(error)
    assert [] == world.asked
    with stage.open() as store:
        assert (0 if what == "argument of the run" else 1) == len(store.runs())


def test_a_state_that_contains_itself_is_refused(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        run.state["a"] = {"list": []}
        run.state["a"]["list"].append(run.state["a"])

    error = stage.fault(agent)

    assert isinstance(error, holdfast.NotStorable)
    assert 'state["a"]' in str(error)
    assert "itself" in str(error)


def test_a_plain_object_changed_behind_the_states_back_is_told(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        mine = {"n": 1}
        run.state["kept"] = [mine]
        mine["n"] = 2

    error = stage.fault(agent)

    assert isinstance(error, holdfast.ChangedOutside)
    assert 'state["kept"][0]' in str(error)
    assert "run.state[...]" in str(error)


def test_subclasses_of_containers_are_refused_by_name(stage: Stage) -> None:
    made: dict[str, Any] = {
        "defaultdict": collections.defaultdict(list, a=[1]),
        "OrderedDict": collections.OrderedDict(a=1),
        "Counter": collections.Counter("aab"),
        "deque": collections.deque([1, 2]),
    }

    @holdfast.agent
    def agent(run: holdfast.Run, kind: str) -> Any:  # noqa: ANN401
        run.state["x"] = made[kind]

    for kind in made:
        error = stage.fault(agent, kind, id=kind)

        assert isinstance(error, holdfast.NotStorable)
        assert 'state["x"]: ' in str(error)
        assert kind in str(error)


def _assigned(run: holdfast.Run) -> None:
    run.state = {"n": 2}  # type: ignore[assignment]  # the mistake that is tried


def _deleted(run: holdfast.Run) -> None:
    del run.state


@pytest.mark.parametrize("mistake", [_assigned, _deleted])
def test_a_state_that_is_to_be_replaced_says_how_to_change_it(
    stage: Stage, mistake: Callable[[holdfast.Run], None]
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[object]:
        run.state["n"] = 1
        try:
            mistake(run)
        except AttributeError as error:
            return [type(error).__name__, str(error), dict(run.state)]
        return []

    kind, said, state = stage.live(agent)

    assert "StateReplaced" == kind
    assert f"the state of run {RUN} cannot be replaced" in said
    assert "`run.state.clear(); run.state.update(...)`" in said
    assert {"n": 1} == state


def test_a_state_may_be_merged_into_by_operator(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> dict[str, Any]:
        run.state["n"] = 1
        for _ in run.turns():
            run.state |= {"n": 2, "m": [3]}  # sets `run.state` to what it is
            break
        return dict(run.state)

    assert {"n": 2, "m": [3]} == stage.live(agent)
