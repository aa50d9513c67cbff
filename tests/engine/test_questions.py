"""What makes two calls the same question: function and arguments, however they are written."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from tests.engine.kit import Crash, Stage, World


def replays(stage: Stage, first: Callable[[], Any], then: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Ask in one life and differently in the next; `Diverged` if these are two questions."""
    life = 0

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401 the answer
        if life == 0:
            first()
            raise Crash
        return then()

    stage.die(agent)
    life = 1
    return stage.live(agent)


def test_an_argument_by_place_and_by_name_is_one_question(stage: Stage, world: World) -> None:
    @holdfast.step
    def f(x: int, y: int = 2, *, z: int = 3) -> str:
        return world.ask(f"f {x} {y} {z}")

    answer = replays(stage, lambda: f(1), lambda: f(x=1, z=3, y=2))

    assert "f 1 2 3#1" == answer
    assert ["f 1 2 3"] == world.asked


def test_more_arguments_and_keywords_are_one_question_in_any_order(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def f(x: int, *rest: int, **more: int) -> str:
        return world.ask("f")

    replays(stage, lambda: f(1, 2, 3, b=4, a=5), lambda: f(1, *(2, 3), a=5, b=4))

    assert ["f"] == world.asked


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (1, True),
        (1, 1.0),
        ("1", b"1"),
        ([1, 2], (1, 2)),
        ({1, 2}, frozenset({1, 2})),
        (0.0, -0.0),
        ({"a": 1}, {"a": 1, "b": None}),
        (None, False),
    ],
)
def test_what_differs_in_value_or_type_is_another_question(
    stage: Stage, first: object, then: object
) -> None:
    @holdfast.step
    def f(x: object) -> int:
        return 0

    with pytest.raises(holdfast.Diverged, match="argument x"):
        replays(stage, lambda: f(first), lambda: f(then))


def test_another_number_or_name_of_arguments_is_another_question(stage: Stage) -> None:
    @holdfast.step
    def f(*rest: int, **more: int) -> int:
        return 0

    with pytest.raises(holdfast.Diverged, match="argument rest"):
        replays(stage, lambda: f(1, 2), lambda: f(1, 2, 3))
    with pytest.raises(holdfast.Diverged, match="argument more"):
        replays(Stage(stage.path / "2"), lambda: f(a=1), lambda: f(b=1))


@pytest.mark.parametrize(
    "value",
    [
        {"b": 1, "a": [2, {"c": (3,)}]},
        float("nan"),
        {1, 2, 3},
        10**40,
        "x" * 100_000,
    ],
)
def test_equal_values_are_one_question_whatever_they_are(
    stage: Stage, world: World, value: object
) -> None:
    @holdfast.step
    def f(x: object) -> str:
        return world.ask("f")

    replays(stage, lambda: f(value), lambda: f(value))

    assert ["f"] == world.asked


def test_the_order_of_keys_does_not_make_another_question(stage: Stage, world: World) -> None:
    @holdfast.step
    def f(x: dict[str, int]) -> str:
        return world.ask("f")

    replays(stage, lambda: f({"a": 1, "b": 2}), lambda: f({"b": 2, "a": 1}))

    assert ["f"] == world.asked


def test_state_and_an_equal_plain_value_are_one_question(stage: Stage, world: World) -> None:
    life = 0

    @holdfast.step
    def f(x: list[Any]) -> str:
        return world.ask("f")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        run.state["m"] = [{"role": "user", "n": i} for i in range(100)]
        plain = [{"n": i, "role": "user"} for i in range(100)]
        answer = f(run.state["m"] if life == 0 else plain)
        if life == 0:
            raise Crash
        return answer

    stage.die(agent)
    life = 1

    assert "f#1" == stage.live(agent)
    assert ["f"] == world.asked


def test_ignored_arguments_do_not_belong_to_the_question(stage: Stage, world: World) -> None:
    @holdfast.step(ignore=("client", "nonce"))
    def f(x: int, client: object, nonce: int = 0) -> str:
        return world.ask(f"f {x} {nonce}")

    answer = replays(stage, lambda: f(1, object(), nonce=1), lambda: f(1, object(), nonce=2))

    assert "f 1 1#1" == answer
    assert ["f 1 1"] == world.asked


def test_a_single_ignored_argument_may_be_given_as_text(stage: Stage, world: World) -> None:
    @holdfast.step(ignore="client")
    def f(client: object, x: int) -> str:
        return world.ask("f")

    replays(stage, lambda: f(object(), 1), lambda: f(client=None, x=1))

    assert ["f"] == world.asked


def test_a_method_asks_for_its_object_to_be_storable_or_ignored(stage: Stage, world: World) -> None:
    class Client:
        @holdfast.step(ignore="self")
        def ask(self, text: str) -> str:
            return world.ask(text)

        @holdfast.step
        def refused(self, text: str) -> str:
            return world.ask(text)

    answer = replays(stage, lambda: Client().ask("hi"), lambda: Client().ask(text="hi"))

    assert "hi#1" == answer

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        Client().refused("hi")

    error = stage.fault(agent, id="other")
    assert "refused(self)" in str(error)
    assert "Client" in str(error)
    assert ["hi"] == world.asked


def test_a_dataclass_named_in_an_annotation_is_an_argument(stage: Stage, world: World) -> None:
    answer = replays(
        stage, lambda: buy(world, Order("KELP", 2)), lambda: buy(world, order=Order("KELP", 2))
    )

    assert Order("KELP", 3) == answer
    assert ["buy"] == world.asked


@dataclasses.dataclass
class Order:
    symbol: str
    qty: int


@holdfast.step(ignore="world")
def buy(world: World, order: Order) -> Order:
    world.ask("buy")
    return Order(order.symbol, order.qty + 1)


def test_wrong_arguments_raise_as_python_does(stage: Stage, world: World) -> None:
    @holdfast.step
    def f(x: int) -> str:
        return world.ask("f")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        with pytest.raises(TypeError, match=r"\.f: missing"):
            f()  # type: ignore[call-arg]  # what is tested
        with pytest.raises(TypeError, match=r"\.f: got an unexpected"):
            f(1, y=2)  # type: ignore[call-arg]  # what is tested
        with pytest.raises(TypeError, match="multiple values"):
            f(1, x=2)  # type: ignore[misc]  # what is tested
        return f(1)

    assert "f#1" == stage.live(agent)
    assert ["f"] == world.asked


def test_the_arguments_inside_a_partial_belong_to_the_question(stage: Stage, world: World) -> None:
    def ask(prefix: str, text: str) -> str:
        return world.ask(f"{prefix} {text}")

    prefix = "chat"

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        said = run.call(functools.partial(ask, prefix), "hi")
        if world.dies_at:
            raise Crash
        return said

    world.dies_at = "later"
    stage.die(agent)
    prefix = "search"
    error = stage.fault(agent)
    assert isinstance(error, holdfast.Diverged)
    assert "ask(prefix='chat', text='hi')" in error.recorded
    world.dies_at, prefix = None, "chat"

    assert "chat hi#1" == stage.live(agent)


def test_a_function_that_does_not_tell_its_parameters_is_refused_with_a_remedy(
    stage: Stage,
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        return run.call(max, 1, 2)

    assert "call it from a function of your own" in str(stage.fault(agent))


def test_any_callable_can_be_a_step_or_an_effect(stage: Stage, world: World) -> None:
    def ask(prefix: str, text: str) -> str:
        return world.ask(f"{prefix} {text}")

    chat = holdfast.step(functools.partial(ask, "chat"))
    pay = holdfast.effect(functools.partial(ask, "pay"))

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        found = [chat("hi"), pay("me")]
        if world.dies_at:
            raise Crash
        return found

    world.dies_at = "later"
    stage.die(agent)
    world.dies_at = None

    assert ["chat hi#1", "pay me#1"] == stage.live(agent)
    assert ["chat hi", "pay me"] == world.asked
