"""Steps inside steps, and steps that change what they were given."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from tests.engine.kit import Crash, Stage, World


def test_a_step_inside_a_step_is_recorded_under_it_and_used_again(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def search(text: str) -> str:
        return world.ask(f"search {text}")

    @holdfast.step
    def research(topic: str) -> list[str]:
        world.ask(f"research {topic}")
        return [search(f"{topic} {n}") for n in range(3)]

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[Any]:
        return [research("kelp"), search("kelp 0"), research("rock")]

    for what in ("search kelp 1", "search kelp 2", "search rock 0"):
        world.dies_at = what
        stage.die(agent)
    world.dies_at = None
    result = stage.live(agent)

    expected = [
        ["search kelp 0#1", "search kelp 1#2", "search kelp 2#2"],
        "search kelp 0#2",
        ["search rock 0#2", "search rock 1#1", "search rock 2#1"],
    ]
    assert expected == result
    assert 3 == world.asked.count("research kelp")
    assert 2 == world.asked.count("research rock")


def test_inner_steps_of_a_turn_are_not_found_in_another(stage: Stage, world: World) -> None:
    @holdfast.step
    def inner() -> str:
        return world.ask("inner")

    @holdfast.step
    def outer(turn: int) -> str:
        found = inner()
        return world.ask(f"outer {turn}") and found

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        run.state["found"] = []
        for turn in run.turns():
            run.state["found"].append(outer(turn))
            if turn == 2:
                return list(run.state["found"])
        raise AssertionError

    world.dies_at = "outer 1"
    stage.die(agent)
    world.dies_at = None

    assert ["inner#1", "inner#2", "inner#3"] == stage.live(agent)


def test_an_inner_error_that_ended_the_run_is_asked_again(stage: Stage, world: World) -> None:
    is_fixed = False

    @holdfast.step
    def inner(what: str) -> str:
        said = world.ask(what)
        if what == "bad" and not is_fixed:
            raise ValueError
        return said

    @holdfast.step
    def outer() -> list[str]:
        return [inner("good"), inner("bad")]

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return outer()

    stage.fault(agent)
    is_fixed = True

    assert ["good#1", "bad#2"] == stage.restart(agent)


def test_an_inner_error_that_the_outer_step_went_past_is_raised_again(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def inner(what: str) -> str:
        said = world.ask(what)
        if what == "bad":
            raise ValueError(said)
        return said

    @holdfast.step
    def outer() -> list[str]:
        try:
            inner("bad")
        except ValueError as error:
            return [str(error), inner("good"), inner("last")]
        raise AssertionError

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return outer()

    world.dies_at = "last"
    stage.die(agent)
    world.dies_at = None

    assert ["bad#1", "good#1", "last#2"] == stage.live(agent)


@pytest.mark.parametrize("outer_kind", ["step", "effect"])
@pytest.mark.parametrize("inner_kind", ["step", "effect"])
def test_an_effect_inside_a_call_and_a_call_inside_an_effect_are_refused(
    stage: Stage, world: World, outer_kind: str, inner_kind: str
) -> None:
    def inner() -> str:
        return world.ask("inner")

    recorded = holdfast.step(inner) if inner_kind == "step" else holdfast.effect(inner)

    def outer() -> str:
        return recorded()

    deed = holdfast.step(outer) if outer_kind == "step" else holdfast.effect(outer)

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return deed()

    if (outer_kind, inner_kind) == ("step", "step"):
        assert "inner#1" == stage.live(agent)
        return
    error = stage.fault(agent)

    assert "inner" in str(error)
    assert "outer" in str(error)
    assert "make the outer function a plain one" in str(error)
    assert [] == world.asked


@dataclasses.dataclass
class Basket:
    items: list[str]


holdfast.register(Basket)

CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "list": (lambda: [1], lambda x: x.append(2)),
    "dict": (lambda: {"a": 1}, lambda x: x.update(b=2)),
    "deep": (lambda: {"a": [{"b": 1}]}, lambda x: x["a"][0].pop("b")),
    "set": (lambda: {1}, lambda x: x.add(2)),
    "bytearray": (lambda: bytearray(b"a"), lambda x: x.append(1)),
    "object": (lambda: Basket(["a"]), lambda x: x.items.append("b")),
    "in a tuple": (lambda: (1, [2]), lambda x: x[1].append(3)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_step_that_changes_a_plain_argument_is_refused(stage: Stage, name: str) -> None:
    make, change = CHANGES[name]

    @holdfast.step
    def meddle(first: int, value: Any) -> str:  # noqa: ANN401
        change(value)
        return "done"

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return meddle(1, make())

    error = stage.fault(agent)

    assert isinstance(error, holdfast.ChangedInCall)
    assert "meddle" in str(error)
    assert "argument value" in str(error)
    assert holdfast.ChangedInCall.remedy in str(error)
    assert "Answer" not in stage.kinds()


@pytest.mark.parametrize("declare", [holdfast.step, holdfast.effect])
@pytest.mark.parametrize("name", ["set", "object", "in a tuple"])
def test_a_call_that_changes_an_object_of_the_state_is_refused(
    stage: Stage, name: str, declare: Callable[[Any], Any]
) -> None:
    make, change = CHANGES[name]

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        def meddle(turn: int) -> str:
            change(run.state["plan"]["task"])
            return "done"

        run.state["plan"] = {"task": make()}
        for turn in run.turns():
            run.call(abs, turn)
            run.state["plan"]["other"] = make()
            change(run.state["plan"]["other"])  # The agent itself may, between two calls.
            declare(meddle)(turn)
            return

    error = stage.fault(agent)

    assert isinstance(error, holdfast.ChangedInCall)
    assert error.function.endswith("meddle")
    assert 'state["plan"]["task"]' == error.path


def test_an_object_that_is_no_part_of_the_state_any_more_is_not_looked_at(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        run.state["plan"] = {"task": Basket(["a"])}
        for _ in run.turns():
            task = run.state.pop("plan")["task"]
            run.call(task.items.append, "b")
            return list(task.items)
        return []

    assert ["a", "b"] == stage.live(agent)


@pytest.mark.parametrize("where", ["argument", "state", "answer"])
@pytest.mark.parametrize("kind", ["step", "effect"])
def test_a_call_that_changes_tracked_values_is_refused_with_the_place(
    stage: Stage, kind: str, where: str
) -> None:
    @holdfast.step
    def chat() -> dict[str, Any]:
        return {"tags": []}

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        run.state["messages"] = [{"role": "user"}, {"role": "tool", "calls": [1]}]
        reply = chat()

        def meddle(value: Any) -> None:  # noqa: ANN401
            if where == "argument":
                value[1]["calls"].append(2)
            elif where == "state":
                run.state["messages"][1]["calls"] = []
            else:
                value["tags"].append(1)

        deed: Any = holdfast.step(meddle) if kind == "step" else holdfast.effect(meddle)
        deed(reply if where == "answer" else run.state["messages"])

    error = stage.fault(agent)
    places = {
        "argument": 'state["messages"][1]["calls"]',
        "state": 'state["messages"][1]',
        "answer": "an argument",
    }

    assert "meddle changed" in str(error)
    assert places[where] in str(error)


def test_a_refused_change_leaves_the_state_as_it_was_and_a_fix_goes_on(
    stage: Stage, world: World
) -> None:
    is_fixed = False

    @holdfast.step
    def meddle(messages: list[int]) -> str:
        if not is_fixed:
            messages.append(3)
        return world.ask("meddle")

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        run.state["messages"] = [1, 2]
        meddle(run.state["messages"])
        return run.state

    stage.fault(agent)
    is_fixed = True

    assert {"messages": [1, 2]} == stage.restart(agent)


def test_a_refusal_that_the_agent_swallows_is_replayed_like_any_error(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def meddle(values: list[int]) -> str:
        values.append(1)
        return world.ask("meddle")

    @holdfast.step
    def unstorable() -> object:
        world.ask("unstorable")
        return object()

    @holdfast.step
    def chat() -> str:
        return world.ask("chat")

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        with pytest.raises(holdfast.ChangedInCall):
            meddle([1])
        with pytest.raises(holdfast.NotStorable, match="the answer of"):
            unstorable()
        said = chat()
        if world.dies_at:
            raise Crash
        return said

    world.dies_at = "later"
    stage.die(agent)
    world.dies_at = None

    assert "chat#1" == stage.live(agent)
    assert [] == world.repeated


def test_an_answer_is_never_part_of_the_state_it_was_made_from(stage: Stage, world: World) -> None:
    @holdfast.step
    def same(value: Any) -> Any:  # noqa: ANN401
        return value

    @holdfast.step
    def wrapped(value: Any) -> Any:  # noqa: ANN401
        return {"one": value, "two": [value]}

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        messages = run.state.setdefault("messages", [{"n": 1}])
        same(messages).append("not in the state")
        same(messages[0])["n"] = 2
        found = wrapped(messages)
        found["one"].append("nor this")
        found["two"][0].append("nor that")
        if world.dies_at:
            raise Crash
        return [holdfast.plain(run.state), holdfast.plain(found)]

    expected = stage.live(agent, id="undisturbed")
    world.dies_at = "later"
    stage.die(agent)
    world.dies_at = None

    assert {"messages": [{"n": 1}]} == expected[0]
    assert expected == stage.live(agent)


def test_an_answer_put_into_the_state_is_the_very_same_object(stage: Stage, world: World) -> None:
    @holdfast.step
    def chat(turn: int) -> dict[str, Any]:
        world.ask(f"chat {turn}")
        return {"content": [{"text": "x"}]}

    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        for turn in run.turns():
            reply = chat(turn)
            run.state.setdefault("messages", []).append(reply)
            reply["content"][0]["turn"] = turn
            assert run.state["messages"][-1] is reply
            if turn == 2:
                return run.state
        raise AssertionError

    world.dies_at = "chat 2"
    stage.die(agent)
    world.dies_at = None
    result = stage.live(agent)

    assert [0, 1, 2] == [message["content"][0]["turn"] for message in result["messages"]]
