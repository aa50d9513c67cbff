"""A step or effect with a time limit, or asked again in place: once recorded, never in a loop."""

import asyncio
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.model.journal import Decided, Failed, Raised, Retried
from holdfast.testing.fakes import ManualClock
from tests.engine.kit import RUN, Crash, Stage, World


class Half(random.Random):
    """Chance that is always a half."""

    def random(self) -> float:
        return 0.5


class Patient(Stage):
    """A store whose waits cost no time, and are drawn the same each time."""

    def open(self) -> holdfast.Store:
        return holdfast.open(self.path, clock=self.clock, chance=Half())


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def patient(tmp_path: Path, clock: ManualClock) -> Patient:
    return Patient(tmp_path / "store", clock)


def agent_of(call: Any) -> holdfast.Agent[..., Any]:  # noqa: ANN401 any recorded function
    @holdfast.agent
    def agent(run: holdfast.Run) -> Any:  # noqa: ANN401 what the call gives
        for _ in run.turns():
            return call("x")
        return None

    return agent


def failing(world: World, times: int, error: Exception) -> Any:  # noqa: ANN401 a function to declare
    def ask(text: str) -> str:
        said = world.ask(text)
        if world.asked.count(text) <= times:
            raise error
        return said

    return ask


def _any(value: Any) -> Any:  # noqa: ANN401 wrong on purpose
    return value


def retried(stage: Stage) -> list[Retried]:
    return [entry for entry in stage.journal() if isinstance(entry, Retried)]


def test_a_step_that_fails_for_a_moment_is_asked_again_in_place(
    patient: Patient, world: World, clock: ManualClock
) -> None:
    ask = holdfast.step(retry=holdfast.Retry(attempts=4, base=1, cap=3))(
        failing(world, 3, ConnectionResetError("gone"))
    )

    assert "x#4" == patient.live(agent_of(ask))

    assert [0.5, 1.0, 1.5] == clock.slept
    assert [1, 2, 3] == [entry.attempt for entry in retried(patient)]
    assert [
        "Started",
        "Retried",
        "Retried",
        "Retried",
        "Answer",
        "LoopLeft",
        "Finished",
    ] == patient.kinds()


def test_each_attempt_is_journaled_with_its_numbers(patient: Patient, world: World) -> None:
    ask = holdfast.step(retry=holdfast.Retry(attempts=2, base=1))(
        failing(world, 1, ConnectionResetError("gone"))
    )

    patient.live(agent_of(ask))

    [entry] = retried(patient)
    assert ("transient", "ConnectionResetError: gone") == (entry.failure.kind, entry.failure.what)
    assert ("retry", 0.5, 2 / 3) == (
        entry.decision.action,
        entry.decision.wait_s,
        entry.decision.p_success,
    )
    assert "attempt 2 of 2" in entry.decision.reason


def test_when_the_attempts_are_spent_the_error_rises_with_its_count(
    patient: Patient, world: World
) -> None:
    ask = holdfast.step(retry=holdfast.Retry(attempts=3))(failing(world, 9, TimeoutError("slow")))

    error = patient.fault(agent_of(ask))

    assert isinstance(error, holdfast.RunFailed)
    assert 3 == len(world.asked)
    [raised] = [entry for entry in patient.journal() if isinstance(entry, Raised)]
    assert 3 == raised.attempt
    assert 2 == len(retried(patient))


def test_a_failure_that_was_not_declared_is_not_asked_again(patient: Patient, world: World) -> None:
    ask = holdfast.step(retry=holdfast.Retry(attempts=3))(failing(world, 9, ValueError("wrong")))

    patient.fault(agent_of(ask))

    assert ["x"] == world.asked


@pytest.mark.parametrize("on", [ValueError, "bug", ["transient", ValueError]], ids=str)
def test_the_user_says_on_which_failures(patient: Patient, world: World, on: Any) -> None:  # noqa: ANN401 kinds or classes
    ask = holdfast.step(retry=holdfast.Retry(on=on))(failing(world, 2, ValueError("wrong")))

    assert "x#3" == patient.live(agent_of(ask))


def test_a_rule_of_the_agent_names_the_kind(patient: Patient, world: World) -> None:
    ask = holdfast.step(retry=holdfast.Retry())(failing(world, 1, ValueError("busy, try later")))

    @holdfast.agent(classify=lambda error: "transient" if "busy" in str(error) else None)
    def agent(run: holdfast.Run) -> object:  # noqa: ARG001 an agent takes a run
        return ask("x")

    assert "x#2" == patient.live(agent)


def test_a_wait_that_would_end_past_the_deadline_is_not_begun(
    patient: Patient, world: World, clock: ManualClock
) -> None:
    ask = holdfast.step(retry=holdfast.Retry(attempts=9, base=20, cap=20))(
        failing(world, 9, ConnectionResetError())
    )

    @holdfast.agent(sla=holdfast.SLA(deadline="25s"))
    def agent(run: holdfast.Run) -> object:  # noqa: ARG001 an agent takes a run
        return ask("x")

    patient.fault(agent)

    assert [10.0, 10.0] == clock.slept


def test_a_crash_between_two_attempts_asks_again_and_goes_on_counting(
    patient: Patient, world: World, clock: ManualClock
) -> None:
    ask = holdfast.step(retry=holdfast.Retry(attempts=3, base=1))(
        failing(world, 2, ConnectionResetError())
    )
    agent = agent_of(ask)

    def die() -> None:
        raise Crash

    clock.during_sleep = die
    patient.die(agent)
    clock.during_sleep = None

    assert "x#3" == patient.live(agent)
    assert [1, 2] == [entry.attempt for entry in retried(patient)]


def test_a_call_beside_one_that_is_asked_again_does_not_make_its_error_an_answer(
    stage: Stage, world: World
) -> None:
    """The failed attempt is on record when later calls of the same turn are; it stays no answer."""
    gate = threading.Event()

    @holdfast.step(retry=holdfast.Retry(attempts=2, base=0.01, cap=0.01))
    def shaky(text: str) -> str:
        said = world.ask(text)
        if world.asked.count(text) == 1:
            raise ConnectionResetError
        gate.wait(10)
        if world.asked.count("crash") == 0:
            raise Crash
        return said

    @holdfast.step
    def sure(text: str) -> str:
        return world.ask(text)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        for _ in run.turns():
            got: list[str] = []
            beside = threading.Thread(target=run.wrap(_caught), args=(shaky, got))
            beside.start()
            mine = [sure("a"), sure("b")]
            gate.set()
            beside.join()
            if got == ["crashed"]:
                raise Crash
            return [*mine, *got]
        return []

    stage.die(agent)
    world.asked.append("crash")

    assert ["a#1", "b#1", "shaky#3"] == stage.live(agent)


def _caught(step: Any, got: list[str]) -> None:  # noqa: ANN401 any step
    try:
        got.append(step("shaky"))
    except Crash:
        got.append("crashed")


async def test_an_asynchronous_step_is_asked_again_too(tmp_path: Path, world: World) -> None:
    @holdfast.step(retry=holdfast.Retry(attempts=3, base=0.001))
    async def ask(text: str) -> str:
        said = world.ask(text)
        if world.asked.count(text) < 3:
            raise ConnectionResetError
        return said

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        async for _ in run.turns():
            return await ask("x")
        return ""

    with holdfast.open(tmp_path / "store") as store:
        assert "x#3" == await store.arun(agent, id=RUN)


def test_a_step_that_passes_its_limit_is_given_up(stage: Stage, world: World) -> None:
    late = threading.Event()

    @holdfast.step(timeout=0.05)
    def slow(text: str) -> str:
        late.wait(10)
        return world.ask(text)

    error = stage.fault(agent_of(slow))
    late.set()

    assert isinstance(error.__cause__, holdfast.CallTimedOut)
    assert isinstance(error.__cause__, TimeoutError)
    assert "slow did not end within 0.05 s" in str(error.__cause__)


def test_an_answer_that_comes_too_late_is_dropped_and_the_call_made_again(
    stage: Stage, world: World
) -> None:
    @holdfast.step(timeout=0.2, retry=holdfast.Retry(attempts=2, base=0.001))
    def slow(text: str) -> str:
        said = world.ask(text)
        if said.endswith("#1"):
            time.sleep(0.5)
        return said

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        for _ in run.turns():
            answer = slow("x")
            time.sleep(0.6)  # The call that was given up ends meanwhile.
            return answer
        return ""

    assert "x#2" == stage.live(agent)
    assert ["Started", "Retried", "Answer", "LoopLeft", "Finished"] == stage.kinds()


def test_what_a_call_would_record_after_it_was_given_up_is_refused(
    stage: Stage, world: World
) -> None:
    late, refused = threading.Event(), threading.Event()
    caught: list[Exception] = []

    @holdfast.step
    def inner(text: str) -> str:
        return world.ask(text)

    @holdfast.step(timeout=0.05)
    def outer(text: str) -> str:
        late.wait(10)
        try:
            return inner(text)
        except holdfast.CallTimedOut as error:
            caught.append(error)
            raise
        finally:
            refused.set()

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        for _ in run.turns():
            try:
                return outer("x")
            except TimeoutError:
                late.set()
                assert refused.wait(10)
                return "gave up"
        return ""

    assert "gave up" == stage.live(agent)
    assert ([], 1) == (world.asked, len(caught))


def test_a_call_within_its_limit_is_as_before(stage: Stage, world: World) -> None:
    @holdfast.step
    def inner(text: str) -> str:
        return world.ask(text)

    @holdfast.step(timeout="10s")
    def outer(text: str) -> str:
        assert "outer" in (holdfast.current().function or "")
        return inner(text)

    assert "x#1" == stage.live(agent_of(outer))


async def test_an_asynchronous_call_that_passes_its_limit_is_cancelled(
    tmp_path: Path, world: World
) -> None:
    ended: list[str] = []

    @holdfast.step(timeout=0.05)
    async def slow(text: str) -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return world.ask(text)

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        async for _ in run.turns():
            try:
                return await slow("x")
            except TimeoutError as error:
                return type(error).__name__
        return ""

    with holdfast.open(tmp_path / "store") as store:
        assert "CallTimedOut" == await store.arun(agent, id=RUN)
    assert (["cancelled"], []) == (ended, world.asked)


def test_a_timeout_of_the_function_itself_stays_what_it_is(stage: Stage) -> None:
    @holdfast.step(timeout=5)
    def slow(text: str) -> str:
        raise TimeoutError(text)

    error = stage.fault(agent_of(slow))

    assert TimeoutError is type(error.__cause__)


def test_an_effect_that_surely_did_not_happen_is_made_again(patient: Patient, world: World) -> None:
    class Busy(Exception):
        pass

    pay = holdfast.effect(not_done=Busy, retry=holdfast.Retry(attempts=3, on=Busy))(
        failing(world, 2, Busy())
    )

    assert "x#3" == patient.live(agent_of(pay))
    assert [
        "Started", "Intended", "Retried", "Declined", "Intended", "Retried", "Declined",
        "Intended", "Happened", "LoopLeft", "Finished",
    ] == patient.kinds()  # fmt: skip


def test_an_effect_that_its_probe_has_not_found_is_made_again(
    patient: Patient, world: World
) -> None:
    pay = holdfast.effect(probe=lambda text: None, retry=holdfast.Retry(attempts=2))(  # noqa: ARG005 as a probe is called
        failing(world, 1, ConnectionResetError())
    )

    assert "x#2" == patient.live(agent_of(pay))


def test_an_effect_that_its_probe_has_found_is_not_made_again(
    patient: Patient, world: World
) -> None:
    pay = holdfast.effect(probe=lambda text: f"found {text}", retry=holdfast.Retry(attempts=2))(
        failing(world, 1, ConnectionResetError())
    )

    assert "found x" == patient.live(agent_of(pay))
    assert ["x"] == world.asked


def test_an_effect_that_may_have_happened_is_never_made_again(
    patient: Patient, world: World
) -> None:
    pay = holdfast.effect(retry=holdfast.Retry(attempts=5))(
        failing(world, 1, ConnectionResetError())
    )

    error = patient.fault(agent_of(pay))

    assert isinstance(error, holdfast.InDoubt)
    assert ["x"] == world.asked


def test_an_idempotent_effect_is_repeated_under_its_key_until_the_attempts_are_spent(
    patient: Patient, world: World
) -> None:
    keys: list[str] = []

    @holdfast.effect(idempotent=True, retry=holdfast.Retry(attempts=3))
    def pay(text: str, *, idempotency_key: str = "") -> str:
        keys.append(idempotency_key)
        world.ask(text)
        raise ConnectionResetError

    error = patient.fault(agent_of(pay))

    assert isinstance(error, holdfast.InDoubt)
    assert (3, 1) == (len(keys), len(set(keys)))


def test_a_crash_while_an_effect_waits_to_be_made_again_leaves_no_doubt(
    patient: Patient, world: World, clock: ManualClock
) -> None:
    class Busy(Exception):
        pass

    pay = holdfast.effect(not_done=Busy, retry=holdfast.Retry(on=Busy))(failing(world, 1, Busy()))

    def die() -> None:
        raise Crash

    clock.during_sleep = die
    patient.die(agent_of(pay))
    clock.during_sleep = None

    assert "x#2" == patient.live(agent_of(pay))


@pytest.mark.parametrize(
    ("declare", "why"),
    [
        (lambda: holdfast.step(timeout="soon"), "is not a duration"),
        (lambda: holdfast.step(timeout=0), "leaves a call no time"),
        (lambda: holdfast.step(retry=_any(3)), "retry= takes holdfast.Retry"),
        (lambda: holdfast.effect(timeout=3)(lambda: 0), "cannot be stopped"),
        (lambda: holdfast.agent(sla=holdfast.SLA(clock="wall")), "clock is 'resume'"),
        (lambda: holdfast.agent(classify=_any(["transient"])), "classify= takes functions"),
    ],
    ids=range(6),
)
def test_what_cannot_be_meant_is_refused_where_it_is_declared(declare: Any, why: str) -> None:  # noqa: ANN401 a declaration
    with pytest.raises(holdfast.UsageError, match=why):
        declare()


def test_a_run_that_fails_records_what_is_decided(stage: Stage, world: World) -> None:
    stage.fault(agent_of(holdfast.step(failing(world, 9, ConnectionResetError("gone")))))

    decided, failed = stage.journal()[-2:]

    assert isinstance(decided, Decided)
    assert isinstance(failed, Failed)
    assert ("run", "transient", "restart") == (
        decided.by,
        decided.failure.kind,
        decided.decision.action,
    )
    assert ["time to recover", "deadline", "availability", "budget", "worth"] == [
        rule.split(":")[0] for rule in decided.decision.off
    ]
