"""The pytest plugin in the hands of a user: agents that survive pass, others fail and say why."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

SETTINGS = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""

GOOD = """
import holdfast

@holdfast.step
def think(turn):
    return turn * 10

def test_it_survives(crash_everywhere, crash_world):
    def find(order):
        return f"receipt {order}" if crash_world.has("pay", order) else None

    @holdfast.effect(probe=find)
    def pay(order):
        crash_world.do("pay", order)
        return f"receipt {order}"

    @holdfast.effect
    def mail(to):
        crash_world.do("mail", to)

    @holdfast.agent
    def buyer(run, orders):
        run.state["log"] = []
        for turn in run.turns():
            run.state["log"].append(think(turn))
            run.state["log"].append(pay(f"order-{turn}"))
            run.checkpoint()
            if turn == orders - 1:
                mail("ann")
                return len(run.state["log"])

    survived = crash_everywhere(buyer, orders=2)

    assert survived.result == 4
    assert survived.state["log"] == [0, "receipt order-0", 10, "receipt order-1"]
    assert set(survived.doubts) == {"mail"}  # It has no probe: a person would have been asked.
    for point in ("turn.begun:2", "step.called:1", "effect.intended:3", "checkpoint.saved:2"):
        assert point in survived.kills
    assert crash_world.deeds() == []  # Each run had a world of its own.

async def test_an_asynchronous_one_survives_too(crash_everywhere, assert_replays_exactly):
    @holdfast.step
    async def ask(turn):
        return turn

    @holdfast.effect(idempotent=True)
    async def note(turn, idempotency_key):
        return turn

    @holdfast.agent
    async def writer(run):
        async for turn in run.turns():
            run.state[f"{turn}"] = [await ask(turn), await note(turn), run.now(), run.random()]
            if turn == 1:
                return run.uuid()

    survived = crash_everywhere(writer)
    assert_replays_exactly(writer)

    assert list(survived.state) == ["0", "1"]
    assert "arun.ending:1" in survived.kills
"""

LOCAL = """
    @holdfast.agent
    def adder(run):
        total = 0
        for turn in run.turns():
            total += count(turn)
            if turn == 3:
                return total
"""
UNDECLARED = """
    def send(to):
        crash_world.do("mail", to)

    @holdfast.agent
    def adder(run):
        send("ann")
        return count(1)
"""
STEP_THAT_ACTS = """
    @holdfast.step
    def send(to):
        crash_world.do("mail", to)

    @holdfast.agent
    def adder(run):
        send("ann")
        return count(1)
"""
BARE = """
    @holdfast.effect
    def pay(order):
        crash_world.do("pay", order)

    @holdfast.agent
    def adder(run):
        pay.bare("order-1")
        return count(1)
"""
IN_A_THREAD = """
    @holdfast.effect
    def pay(order):
        crash_world.do("pay", order)

    @holdfast.agent
    def adder(run):
        with ThreadPoolExecutor() as pool:
            return pool.submit(pay, "order-1").result()
"""
FORGETFUL_KEY = """
    @holdfast.effect(idempotent=True)
    def pay(order, idempotency_key):
        crash_world.do("pay", order)

    @holdfast.agent
    def adder(run):
        return pay("order-1")
"""
RANDOM_ARGUMENT = """
    @holdfast.agent
    def adder(run):
        return [count(random.random()), count(2)]
"""
BLIND_PROBE = """
    @holdfast.effect(probe=lambda order: None)
    def pay(order):
        crash_world.do("pay", order)

    @holdfast.agent
    def adder(run):
        return pay("order-1")
"""
OTHER_EFFECT = """
    @holdfast.effect(probe=lambda cents: crash_world.has("pay", cents) or None)
    def pay(cents):
        crash_world.do("pay", cents)

    @holdfast.agent
    def adder(run):
        total = 0
        for turn in run.turns():
            total += 10 + turn
            pay(total)
            if turn == 1:
                return count(1)
"""
ASKING = """
    @holdfast.agent
    def adder(run):
        return run.ask("how many?")
"""
BROKEN = """
    @holdfast.agent
    def adder(run):
        return 1 // count(0)
"""
BAD = """
import random
from concurrent.futures import ThreadPoolExecutor

import holdfast

@holdfast.step
def count(n):
    return n

def test_it_survives(crash_everywhere, crash_world):
{agent}
    crash_everywhere(adder)
"""


def test_agents_that_survive_every_kill_pass(pytester: pytest.Pytester) -> None:
    pytester.makeini(SETTINGS)
    pytester.makepyfile(GOOD)

    pytester.runpytest_inprocess().assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("agent", "lines"),
    [
        (
            LOCAL,
            [
                "agent adder does not survive every crash: * kills tried changed what it does.",
                "  killed  turn.begun:3, when the turn began, * in turn 2",
                "  found   result is 5, without the kill it is 6",
                "  so      * local or global variable * keep in run.state *",
                '  repeat  crash_at("turn.begun:3")(adder)',
                "  kept    *run-*",
            ],
        ),
        (
            UNDECLARED,
            [
                "  killed  step.called:1, after count(n=1) ran, before its answer was recorded",
                "  found   mail('ann') was done twice, * once; it is done by the agent's own code",
                "  so      declare the function that does mail with @holdfast.effect, *",
                '  repeat  crash_at("step.called:1")(adder)',
            ],
        ),
        (
            STEP_THAT_ACTS,
            [
                "  killed  step.called:1, after send(to='ann') ran, *",
                "  found   mail('ann') was done twice, * it is done by step *send",
                "  so      a step may be asked again: declare *send with @holdfast.effect instead",
            ],
        ),
        (BARE, ["  found   pay('order-1') was done twice, * it is done by the agent's own code"]),
        (
            IN_A_THREAD,
            [
                "agent adder did not come to an end, and nobody killed it.",
                "  found   NotInRun: *pay*run.wrap*",
            ],
        ),
        (
            FORGETFUL_KEY,
            [
                "  found   pay('order-1') was done twice, * it is done by effect *pay",
                "  so      effect *pay was repeated under its idempotency key: *",
            ],
        ),
        (
            RANDOM_ARGUMENT,
            [
                "  killed  step.recorded:1, right after the answer of count(n=*) was recorded",
                "  found   after that it did not go on: Diverged: *",
                "  so      arguments come from the state, * run.random *",
                '  repeat  crash_at("step.recorded:1")(adder)',
            ],
        ),
        (
            BLIND_PROBE,
            [
                "  killed  effect.called:1, after pay(*) was done, *",
                "  found   effect pay(*) was done 2 times",
                "  so      its probe= said that it was not done, and it was: *",
                "  found   pay('order-1') was done twice, * it is done by effect *pay",
                "  so      its probe= said that it was not done, and it was: *",
            ],
        ),
        (
            OTHER_EFFECT,
            [
                "  killed  turn.begun:2, *",
                "  found   pay(11) was done once, without the kill not at all; it is done by *pay",
                "  so      what a turn leaves in a local or global variable is gone *",
            ],
        ),
        (
            ASKING,
            [
                "  found   Waiting: * how many? *",
                "  so      say what a person answers: a fixture `crash_person` *",
            ],
        ),
        (
            BROKEN,
            [
                "agent adder did not come to an end, and nobody killed it.",
                "  found   ZeroDivisionError: * (*test_*.py, line *)",
            ],
        ),
    ],
    ids=[
        "a local carried between turns",
        "an effect that is not declared",
        "an effect declared as a step",
        "an effect called around its record",
        "an effect in a thread outside the run",
        "an effect that is not as idempotent as it says",
        "hidden randomness in an argument",
        "a probe that does not find what was done",
        "an effect with a local for its argument",
        "a question that nobody answers",
        "an agent that fails by itself",
    ],
)
def test_an_agent_with_a_fault_fails_and_the_message_names_it(
    pytester: pytest.Pytester, agent: str, lines: list[str]
) -> None:
    pytester.makeini(SETTINGS)
    pytester.makepyfile(BAD.format(agent=agent))

    ended = pytester.runpytest_inprocess()

    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(lines)
    ended.stdout.no_fnmatch_line("*Traceback*")


def test_a_test_run_without_the_kit_does_not_load_it() -> None:
    program = "import sys, holdfast.testing.plugin; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout.split()

    assert "holdfast.testing.plugin" in loaded
    assert [] == [name for name in loaded if name.startswith(("holdfast.engine", "pydantic"))]
