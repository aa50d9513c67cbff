"""Which tool an effect is: its name and its module; records of older runs are still understood."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engine import declare
from holdfast.model.journal import Entry, Intended
from tests.engine.kit import RUN, Crash, Stage, World

SCRIPT = """
import sys
import holdfast

@holdfast.effect
def pay(order: str) -> str:
    return order

@holdfast.agent
def payer(run: holdfast.Run) -> str:
    return pay("7")

if __name__ == "__main__":
    with holdfast.open(sys.argv[1]) as store:
        store.run(payer, id="run-1")
"""


def tool(world: World, module: str, **options: Any) -> Callable[..., str]:  # noqa: ANN401 as effect
    """An effect `send` of that module."""

    def send(to: str, idempotency_key: str = "") -> str:
        world.ask(f"key {idempotency_key}")
        return world.ask(f"{module} {to}")

    send.__module__, send.__qualname__ = module, "send"
    made: Callable[..., str] = holdfast.effect(**options)(send)
    return made


def intended(entries: list[Entry]) -> list[Intended]:
    return [entry for entry in entries if isinstance(entry, Intended)]


def test_two_functions_of_one_name_in_two_modules_are_two_tools(stage: Stage, world: World) -> None:
    mail, sms = tool(world, "mail", key="to"), tool(world, "sms", key="to")

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        found = [mail("ann")]
        for turn in run.turns():
            found.append(sms("ann") if turn == 1 else str(turn))
            if turn == 2:
                return found
        raise AssertionError

    result = stage.live(agent)
    with stage.open() as store:
        again = store.run(agent, id=store.fork(RUN, at=0).id)

    assert ["mail ann#1", "0", "sms ann#1", "2"] == result
    assert ["mail ann#1", "sms ann#1", "2"] == again
    assert 1 == world.asked.count("mail ann") == world.asked.count("sms ann")
    first, second = intended(stage.journal())
    assert (first.nth, second.nth) == (0, 0)
    assert first.key != second.key
    assert first.about != second.about


@pytest.mark.parametrize("command", ["script", "module", "holdfast"])
def test_a_script_and_the_module_it_is_are_one_tool(tmp_path: Path, command: str) -> None:
    (tmp_path / "agent.py").write_text(SCRIPT)
    words = {
        "script": ["agent.py", "store"],
        "module": ["-m", "agent", "store"],
        "holdfast": ["-m", "holdfast", "run", "agent:payer", "--id", RUN, "--store", "store"],
    }[command]

    subprocess.run([sys.executable, *words], cwd=tmp_path, check=True, capture_output=True)

    assert ["agent"] == [entry.module for entry in intended(Stage(tmp_path / "store").journal())]


@pytest.mark.parametrize("dies", ["in the effect", "after it"])
def test_a_record_without_a_module_is_replayed_and_settled_under_its_key(
    stage: Stage, world: World, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(declare, "imported", lambda _: "")
        old = tool(world, "mail", idempotent=True)
    new = tool(world, "mail", idempotent=True)
    send = old

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        found = [send("ann")]
        if world.dies_at:
            raise Crash
        return [*found, send("ann")]

    world.dies_at = "mail ann" if dies == "in the effect" else "later"
    stage.die(agent)
    world.dies_at, send = None, new
    stage.live(agent)

    keys = [what for what in world.asked if what.startswith("key")]
    assert (2 if dies == "after it" else 3) == len(keys)
    assert 2 == len(set(keys))
    assert keys[0] == keys[-2]


def test_a_record_without_a_module_is_in_the_ledger(
    stage: Stage, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(declare, "imported", lambda _: "")
        send = tool(world, "mail")

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        for turn in run.turns():
            if turn == 1:
                run.state["sent"] = send("ann")
            if turn == 2:
                return [run.state["sent"]]
        raise AssertionError

    stage.live(agent)
    send = tool(world, "mail")
    with stage.open() as store:
        again = store.run(agent, id=store.fork(RUN, at=0).id)

    assert ["mail ann#1"] == again
    assert 1 == world.asked.count("mail ann")


def find(to: str) -> str | None:
    return None


async def find_slowly(to: str) -> str | None:
    return None


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"probe": "find"}, "probe= of .*send takes a function, not str"),
        ({"undo": 5}, "undo= of .*send takes a function, not int"),
        ({"offset": [find]}, "offset= of .*send takes a function"),
        ({"probe": iter}, "probe= of .*send does not tell its parameters"),
        ({"undo": iter}, "undo= of .*send does not tell its parameters"),
        ({"probe": find_slowly}, "probe= of .*send is asynchronous and the effect is not"),
        ({"not_done": [KeyError, "ValueError"]}, "not_done= takes classes of exceptions, not 'V"),
        ({"not_done": int}, "not_done= takes classes of exceptions, not <class 'int'>"),
    ],
)
def test_what_could_only_fail_when_it_is_needed_is_refused_where_it_is_declared(
    world: World, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(holdfast.UsageError, match=why):
        tool(world, "mail", **options)


def test_one_class_of_exceptions_needs_no_list(stage: Stage, world: World) -> None:
    class Gone(Exception):
        pass

    @holdfast.step(raises=Gone)
    def look(n: int) -> str:
        world.ask("look")
        raise Gone

    @holdfast.step
    def go_on() -> str:
        return "past it"

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        with pytest.raises(Gone):
            look(1)
        go_on()
        return world.ask("crash")

    world.dies_at = "crash"
    stage.die(agent)
    world.dies_at = None

    assert "crash#2" == stage.live(agent)
    assert 1 == world.asked.count("look")
    with pytest.raises(holdfast.UsageError, match="raises= takes classes of exceptions, not 5"):
        holdfast.step(raises=[5])  # type: ignore[list-item]  # what is tested


@pytest.mark.parametrize("declare", [holdfast.agent, holdfast.step, holdfast.effect])
def test_what_is_no_function_or_does_not_tell_its_parameters_is_refused(
    declare: Callable[[object], object],
) -> None:
    with pytest.raises(holdfast.UsageError, match="takes a function, not str"):
        declare("chat")
    with pytest.raises(holdfast.UsageError, match="iter does not tell its parameters"):
        declare(iter)
