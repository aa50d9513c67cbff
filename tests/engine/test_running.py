"""`store.run` starts, continues, or returns what is recorded; one id is one run."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import gc
import random
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.model.sections import Degraded
from holdfast.store.reader import Reader
from tests.engine.kit import RUN, Crash, Stage, World


class Boom(Exception):
    """An error of the agent's own."""


def test_a_finished_run_gives_its_recorded_result_and_calls_nothing(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def chat(n: int) -> str:
        return world.ask(f"chat {n}")

    @holdfast.agent
    def agent(run: holdfast.Run, n: int) -> dict[str, Any]:
        world.ask("agent")
        return {"said": chat(n), "turn": (1, 2)}

    first = stage.live(agent, 7)
    again = stage.live(agent, 7)
    unasked = stage.live(agent)

    assert {"said": "chat 7#1", "turn": (1, 2)} == first == again == unasked
    assert ["agent", "chat 7"] == world.asked
    assert holdfast.Status.FINISHED is stage.info().status


def test_an_id_made_by_chance_that_a_run_has_already_is_that_run(
    stage: Stage, world: World
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return world.ask(run.id)

    first, again = (
        holdfast.open(stage.path, chance=random.Random(1))  # noqa: S311 it is to repeat
        for _ in range(2)
    )
    with first, again:
        assert first.run(agent) == again.run(agent)

    assert 1 == len(world.asked)


def test_the_first_result_is_what_a_later_call_gets(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401 its kind is what is tested
        run.state["deep"] = {"list": [1, {"a": 2}]}
        return run.state

    first, again = stage.live(agent), stage.live(agent)

    assert {"deep": {"list": [1, {"a": 2}]}} == first == again
    assert dict is type(first) is type(again)
    assert list is type(first["deep"]["list"])


def test_a_failed_run_raises_run_failed_with_its_cause_now_and_later(stage: Stage) -> None:
    raised = Boom("no luck", 3)

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        raise raised

    first = stage.fault(agent)
    again = stage.fault(agent)

    assert isinstance(first, holdfast.RunFailed)
    assert raised is first.__cause__
    assert isinstance(again, holdfast.RunFailed)
    assert str(first) == str(again)
    assert "run run-1 failed with Boom" in str(again)
    assert "no luck" in str(again)
    assert "restart" in str(again)
    assert isinstance(again.__cause__, holdfast.StepError)
    assert holdfast.Status.FAILED is stage.info().status
    assert "Boom" in (stage.info().error or "")


def test_the_cause_comes_back_as_its_class_where_that_is_known(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        raise KeyError("order")

    stage.fault(agent)
    again = stage.fault(agent)

    assert isinstance(again.__cause__, KeyError)
    assert ("order",) == again.__cause__.args


def test_restart_tries_a_failed_run_again(stage: Stage, world: World) -> None:
    is_fixed = False

    @holdfast.step
    def chat() -> str:
        return world.ask("chat")

    @holdfast.agent
    def agent(run: holdfast.Run, word: str) -> str:
        said = chat()
        if not is_fixed:
            raise Boom
        return said + word

    stage.fault(agent, "!")
    is_fixed = True
    result = stage.restart(agent)

    assert "chat#1!" == result
    assert ["chat"] == world.asked
    assert "chat#1!" == stage.live(agent, "!")


@pytest.mark.parametrize("error", [holdfast.NotDone("card"), holdfast.StepError("a.B", "c")])
def test_errors_that_agents_raise_themselves_fail_the_run_like_any_other(
    stage: Stage, error: Exception
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        raise error

    found = stage.fault(agent)

    assert isinstance(found, holdfast.RunFailed)
    assert error is found.__cause__


def test_another_agent_under_a_used_id_is_refused_and_both_are_shown(stage: Stage) -> None:
    @holdfast.agent
    def one(run: holdfast.Run) -> int:
        return 1

    @holdfast.agent
    def two(run: holdfast.Run) -> int:
        return 2

    stage.live(one)
    error = stage.fault(two)

    assert isinstance(error, holdfast.AgentMismatch)
    assert ".one" in str(error)
    assert ".two" in str(error)
    assert RUN in str(error)
    assert holdfast.AgentMismatch.remedy in str(error)
    assert 1 == stage.live(one)


@pytest.mark.parametrize("is_finished", [True, False])
def test_other_arguments_under_a_used_id_are_refused_and_both_are_shown(
    stage: Stage, is_finished: bool
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run, symbol: str, qty: int = 1) -> str:
        if not is_finished:
            raise Crash
        return symbol

    if is_finished:
        stage.live(agent, "KELP")
    else:
        stage.die(agent, "KELP")
    before = stage.journal()

    error = stage.fault(agent, "ROCK", qty=2)

    assert isinstance(error, holdfast.AgentMismatch)
    assert "symbol='KELP', qty=1" in str(error) or "qty=1, symbol='KELP'" in str(error)
    assert "'ROCK'" in str(error)
    assert "qty=2" in str(error)
    assert before == stage.journal()


def test_arguments_by_place_by_name_and_by_default_are_the_same_run(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run, symbol: str, qty: int = 1, *, note: str = "") -> list[Any]:
        return [symbol, qty, note]

    stage.live(agent, "KELP")

    assert ["KELP", 1, ""] == stage.live(agent, symbol="KELP")
    assert ["KELP", 1, ""] == stage.live(agent, "KELP", 1, note="")


@pytest.mark.parametrize("call", ["run", "restart"])
def test_a_changed_signature_is_refused_and_both_are_shown(stage: Stage, call: str) -> None:
    def declare(is_new: bool) -> holdfast.Agent[..., Any]:
        if is_new:

            @holdfast.agent
            def agent(run: holdfast.Run, ticker: str, venue: str) -> str:
                return ticker + venue
        else:

            @holdfast.agent
            def agent(run: holdfast.Run, symbol: str) -> str:
                raise Crash

        return agent

    stage.die(declare(is_new=False), "KELP")
    new = declare(is_new=True)
    with pytest.raises(holdfast.AgentMismatch) as caught:
        stage.live(new, "KELP", "NYSE") if call == "run" else stage.restart(new)

    assert "symbol='KELP'" in str(caught.value)
    assert "venue" in str(caught.value)


def _before(run: holdfast.Run, symbol: str, qty: int = 1) -> str:
    raise Crash


def _swapped(run: holdfast.Run, qty: str, symbol: int = 0) -> str:
    return f"{qty} {symbol}"


def _renamed(run: holdfast.Run, ticker: str, qty: int = 1) -> str:
    return f"{qty} {ticker}"


def _after(run: holdfast.Run, symbol: str, qty: int = 1) -> str:
    return f"{qty} {symbol}"


def _other_default(run: holdfast.Run, symbol: str, qty: int = 5) -> str:
    return f"{qty} {symbol}"


def _one_more(run: holdfast.Run, symbol: str, qty: int = 1, venue: str = "sea") -> str:
    return f"{qty} {symbol} {venue}"


def _declared(fn: Callable[..., str]) -> holdfast.Agent[..., Any]:
    fn.__qualname__ = "trader"
    return holdfast.agent(fn)


@pytest.mark.parametrize(
    "new",
    [_swapped, _renamed],
)
def test_a_restart_never_gives_a_recorded_argument_to_another_parameter(
    stage: Stage, new: Callable[..., str]
) -> None:
    stage.die(_declared(_before), "KELP", 2)

    with pytest.raises(holdfast.AgentMismatch) as caught:
        stage.restart(_declared(new))

    assert "symbol='KELP'" in str(caught.value)
    assert "parameters changed" in str(caught.value)


@pytest.mark.parametrize("call", ["run", "restart"])
@pytest.mark.parametrize("args", [("KELP",), ("KELP", 2)])
@pytest.mark.parametrize(("new", "more"), [(_other_default, ""), (_one_more, " sea")])
def test_a_run_keeps_the_defaults_it_was_started_with_and_new_parameters_have_theirs(
    stage: Stage, new: Callable[..., str], more: str, args: tuple[Any, ...], call: str
) -> None:
    stage.die(_declared(_before), *args)

    agent = _declared(new)
    found = stage.restart(agent) if call == "restart" else stage.live(agent, *args)

    assert f"{len(args)} KELP{more}" == found


def test_arguments_that_are_given_again_need_not_be_read(stage: Stage) -> None:
    stage.die(_declared(_before), "KELP")

    with patch.object(Reader, "value", side_effect=AssertionError):
        assert "1 KELP" == stage.live(_declared(_after), "KELP")


@pytest.mark.parametrize("given", [{"qty": 5}, {"venue": "sea"}])
def test_what_a_run_was_not_started_with_is_refused_whatever_the_default(
    stage: Stage, given: dict[str, Any]
) -> None:
    stage.die(_declared(_before), "KELP")

    error = stage.fault(_declared(_one_more), "KELP", **given)

    assert isinstance(error, holdfast.AgentMismatch)


def test_a_result_that_could_not_be_read_again_fails_the_run_and_is_told_as_that(
    stage: Stage,
) -> None:
    class Odd:
        """Taken apart, and never put together."""

    def never(kept: object) -> Odd:
        raise ZeroDivisionError(kept)

    holdfast.register(Odd, encode=lambda _: 1, decode=never)

    @holdfast.agent
    def agent(run: holdfast.Run) -> Odd:
        return Odd()

    error = stage.fault(agent)

    assert "making it again from version 1 failed: ZeroDivisionError" in str(error)
    assert holdfast.Status.FAILED is stage.info().status


@pytest.mark.parametrize("odd", [7, None, b"run-1"])
def test_a_run_is_named_by_a_text_and_nothing_else(stage: Stage, odd: Any) -> None:  # noqa: ANN401 what is tested
    with stage.open() as store:
        for verb in (store.get, store.restart, store.cancel, store.pin, store.fork, store.decide):
            with pytest.raises(holdfast.UsageError, match="a run is named by its id, a text"):
                verb(odd)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"retention": "20"}, "retention= takes holdfast.Retention"),
        ({"notify": "https://x"}, "notify= takes holdfast.Notify"),
    ],
)
def test_a_store_that_is_opened_with_odd_options_says_what_they_take(
    tmp_path: Path, option: dict[str, Any], why: str
) -> None:
    with pytest.raises(holdfast.UsageError, match=why):
        holdfast.open(tmp_path / "store", **option)


@pytest.mark.parametrize(
    ("given", "version", "why"),
    [(5, 1, "takes a class, not 5"), (Boom, "2", "a whole number from 1, not '2'")],
)
def test_what_is_no_class_and_no_version_cannot_be_registered(
    given: Any,  # noqa: ANN401 what is tested
    version: Any,  # noqa: ANN401 what is tested
    why: str,
) -> None:
    with pytest.raises(holdfast.UsageError, match=why):
        holdfast.register(given, version=version)


def test_a_run_inside_a_run_is_refused(stage: Stage) -> None:
    @holdfast.agent
    def inner(run: holdfast.Run) -> int:
        return 1

    @holdfast.step
    def via_step(store_path: str) -> int:
        with holdfast.open(store_path) as other:
            return other.run(inner)

    @holdfast.agent
    def outer(run: holdfast.Run, how: str) -> list[str]:
        with pytest.raises(holdfast.NestedCall) as plain:
            store.run(inner, id="inner")
        with pytest.raises(holdfast.NestedCall) as in_step:
            via_step(how)
        return [str(plain.value), str(in_step.value)]

    with stage.open() as store:
        plain, in_step = store.run(outer, str(stage.path) + "-other", id=RUN)

        assert "inner" in plain
        assert RUN in plain
        assert "run.child" in plain
        assert "via_step" in in_step
        assert [RUN] == [info.id for info in store.runs()]


@pytest.mark.parametrize(
    "bad", ["", " x", "x ", "a\nb", "a\0b", "x" * 201, "\ud800", 42, b"run", ["x"], ("a",)]
)
def test_an_id_that_cannot_name_a_run_is_refused(stage: Stage, bad: Any) -> None:  # noqa: ANN401
    @holdfast.agent
    def agent(run: holdfast.Run) -> None: ...

    error = stage.fault(agent, id=bad)

    assert isinstance(error, holdfast.UsageError)
    assert "run id" in str(error)
    with stage.open() as store:
        assert [] == store.runs()


@pytest.mark.parametrize("good", ["a", "x" * 200, "größe/ß 42", "../../etc", "日本", "a'; DROP"])
def test_an_id_is_any_printable_text(stage: Stage, good: str) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return run.id

    assert good == stage.live(agent, id=good)
    assert good == stage.info(good).id


def test_without_an_id_each_run_is_given_its_own(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return run.id

    with stage.open() as store:
        one, two = store.run(agent), store.run(agent)

        assert one != two
        assert one.startswith("agent-")
        assert [two, one] == [info.id for info in store.runs()]


def test_an_unknown_run_is_named_with_where_to_look(stage: Stage) -> None:
    with stage.open() as store:
        for ask in (store.get, store.restart):
            with pytest.raises(holdfast.UnknownRun) as caught:
                ask("nobody")

            assert "nobody" in str(caught.value)
            assert str(stage.path) in str(caught.value)


def test_what_is_no_agent_is_refused(stage: Stage) -> None:
    def bare(run: holdfast.Run) -> None: ...

    with stage.open() as store, pytest.raises(holdfast.UsageError, match=r"@holdfast\.agent"):
        store.run(bare)  # type: ignore[call-overload]  # what is tested


def test_runs_are_listed_newest_first_and_by_status(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run, what: str) -> None:
        if what == "fail":
            raise Boom
        if what == "die":
            raise Crash

    stage.live(agent, "finish", id="a")
    stage.fault(agent, "fail", id="b")
    stage.die(agent, "die", id="c")

    with stage.open() as store:
        assert ["c", "b", "a"] == [info.id for info in store.runs()]
        assert ["c"] == [info.id for info in store.runs(limit=1)]
        assert ["b"] == [info.id for info in store.runs(status="failed")]
        assert store.get("c").is_interrupted
        assert not store.get("a").is_interrupted
        assert "c" == store.runs(status=holdfast.Status.RUNNING)[0].id


def test_the_version_of_an_agent_is_recorded(stage: Stage) -> None:
    @holdfast.agent(version="2.1")
    def agent(run: holdfast.Run) -> None: ...

    stage.live(agent)

    assert "2.1" == stage.info().version


def test_a_closed_store_says_so(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> int:
        return 1

    with stage.open() as store:
        store.run(agent, id=RUN)
    store.close()

    for ask in (
        lambda: store.run(agent, id=RUN),
        lambda: store.get(RUN),
        store.runs,
        lambda: store.restart(RUN),
        lambda: store.resolve(RUN, "key", happened=True),
    ):
        with pytest.raises(holdfast.StoreClosed, match=r"holdfast\.open"):
            ask()


def test_a_declaration_that_cannot_work_is_refused_where_it_stands() -> None:
    with pytest.raises(holdfast.UsageError, match="takes no run"):

        @holdfast.agent  # type: ignore[arg-type]  # what is tested
        def no_run() -> None: ...

    with pytest.raises(holdfast.UsageError, match="generator"):

        @holdfast.step
        def tokens() -> Any:  # noqa: ANN401
            yield 1

    with pytest.raises(holdfast.UsageError, match="nonce"):

        @holdfast.step(ignore="nonce")
        def ask(text: str) -> str:
            return text

    with pytest.raises(holdfast.UsageError, match="order"):

        @holdfast.effect(key="order")
        def pay(amount: int) -> None: ...


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"version": 2}, "version= takes a text, such as '2.1', not 2"),
        ({"version": "\ud800"}, "version= takes a text"),
        ({"sla": {"max_recovery": "30s"}}, "sla= takes a promise, such as holdfast.SLA"),
    ],
)
def test_what_would_make_runs_unreadable_is_refused_where_the_agent_is_declared(
    wrong: Any,  # noqa: ANN401 what is no option
    why: str,
) -> None:
    with pytest.raises(holdfast.UsageError, match=why):
        holdfast.agent(**wrong)


class Count(int):
    """A number of a class of its own, which no record can hold."""


def test_what_cannot_be_written_is_refused_and_the_other_runs_of_the_process_are_looked_after(
    tmp_path: Path,
) -> None:
    @holdfast.agent
    def garbled(run: holdfast.Run) -> None:
        run._session.pend(Degraded(0.0, Count(0), {}))  # noqa: SLF001 nothing else is left that could

    @holdfast.agent
    def sound(run: holdfast.Run) -> list[str]:
        return [thread.name for thread in threading.enumerate()]

    with holdfast.open(tmp_path) as store:
        with pytest.raises(holdfast.NotStorable, match="what cannot be written"):
            store.run(garbled, id="garbled")

        assert "holdfast-housekeeper" in store.run(sound, id="sound")


def test_what_a_life_needed_goes_with_it_and_waits_for_no_garbage_collection(
    tmp_path: Path,
) -> None:
    lives: list[weakref.ref[Any]] = []

    @holdfast.step
    def ask(messages: list[str]) -> str:
        return f"answer {len(messages)}"

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        lives.append(weakref.ref(run._session))  # noqa: SLF001 there is no other way to see it
        run.state["messages"] = []
        for turn in run.turns():
            run.state["messages"].append(ask(run.state["messages"]))
            if turn == 2:
                return

    clock = SystemClock()
    with holdfast.open(tmp_path) as store:
        gc.disable()
        try:
            store.run(agent)
            until = clock.monotonic() + 10
            while lives[0]() is not None and clock.monotonic() < until:
                clock.sleep(0.01)  # The housekeeper may just look after it.
        finally:
            gc.enable()

    assert lives[0]() is None
