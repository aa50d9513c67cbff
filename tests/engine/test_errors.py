"""Errors of steps: gone past, they are raised again; those that ended the run are asked again."""
# ruff: noqa: ARG001 an agent takes its run first, needed or not

import asyncio
import contextlib
import json
from typing import Any

import pytest

import holdfast
from holdfast import failpoint
from tests.engine.kit import RUN, Crash, Stage, World, text


class Refused(Exception):
    """An error of a tool."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


@holdfast.register
class Registered(Exception):
    """An error that Holdfast was told about."""


class Unknown(Exception):
    """An error that nobody named."""


class Speechless(Exception):
    """An error whose text cannot be made, as of a request that had no response."""

    def __str__(self) -> str:
        return str(self.response)  # type: ignore[attr-defined]  # the mistake


def caught_twice(
    stage: Stage, world: World, error: Exception, raises: tuple[type[Exception], ...] = ()
) -> tuple[Exception, Exception]:
    """The error as the agent catches it when it happens, and on the replay."""
    caught: list[Exception] = []

    @holdfast.step(raises=raises)
    def ask(what: str) -> str:
        world.ask(what)
        if what == "bad":
            raise error
        return what

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        try:
            ask("bad")
        except Exception as found:  # noqa: BLE001 it is looked at below
            caught.append(found)
        ask("good")
        if len(caught) == 1:
            raise Crash
        return "done"

    stage.die(agent)
    assert "done" == stage.live(agent)
    assert ["bad", "good"] == world.asked
    return caught[0], caught[1]


@pytest.mark.parametrize(
    ("error", "raises"),
    [
        (ValueError("bad", 3), ()),
        (KeyError("k"), ()),
        (TimeoutError(), ()),
        (StopIteration(7), ()),
        (FileNotFoundError(2, "no such file"), ()),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "why"), ()),
        (Refused(402, "declined"), (Refused,)),
        (json.JSONDecodeError("bad", "doc", 1), (json.JSONDecodeError,)),
        (Registered("x"), ()),
        (holdfast.NotStorable("a", "b", "c"), ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_that_the_agent_went_past_is_raised_again_as_itself(
    stage: Stage, world: World, error: Exception, raises: tuple[type[Exception], ...]
) -> None:
    first, again = caught_twice(stage, world, error, raises)

    assert error is first
    assert type(error) is type(again)
    assert error.args == again.args
    assert str(error) == str(again)


def test_a_class_that_nobody_named_comes_back_as_step_error_with_its_name(
    stage: Stage, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    first, again = caught_twice(stage, world, Unknown("why", 1))

    assert isinstance(first, Unknown)
    assert isinstance(again, holdfast.StepError)
    assert again.kind.endswith("Unknown")
    assert again.message == str(first)
    assert "raises=" in again.remedy
    warned = [r for r in caplog.records if "Unknown" in r.getMessage()]
    assert 1 == len(warned)
    assert "raises=" in warned[0].getMessage()


def test_a_run_that_fails_since_its_own_class_was_not_named_is_told_to_name_it(
    stage: Stage,
) -> None:
    """Its `except` caught the error when it happened, and does not on a replay."""
    lives: list[int] = []

    @holdfast.step
    def ask(what: str) -> str:
        if what == "bad":
            raise Unknown("why")
        return what

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        lives.append(1)
        with contextlib.suppress(Unknown):
            ask("bad")
        ask("good")
        if len(lives) == 1:
            raise Crash

    stage.die(agent)
    failed = stage.fault(agent)

    assert isinstance(failed, holdfast.RunFailed)
    assert isinstance(failed.__cause__, holdfast.StepError)
    assert "name the class in `raises=` of the step or critical section" in str(failed)


def test_an_error_whose_arguments_cannot_be_kept_comes_back_with_its_words(
    stage: Stage, world: World
) -> None:
    _, again = caught_twice(stage, world, ValueError("socket", object()))

    assert isinstance(again, holdfast.StepError)
    assert "builtins.ValueError" == again.kind
    assert "socket" in again.message


def test_an_error_with_a_constructor_of_its_own_keeps_class_and_arguments(
    stage: Stage, world: World
) -> None:
    class Odd(Exception):
        def __init__(self, *, status: int, client: object) -> None:
            super().__init__(f"status {status}")
            self.status, self.client = status, client

    error = Odd(status=500, client=object())
    error.add_note("noted")
    _, again = caught_twice(stage, world, error, (Odd,))

    assert isinstance(again, Odd)
    assert "status 500" == str(again)
    assert 500 == again.status
    assert ["noted"] == again.__notes__
    assert not hasattr(again, "client")


def test_an_error_whose_text_cannot_be_made_is_caught_as_itself(stage: Stage, world: World) -> None:
    found = caught_twice(stage, world, Speechless("bad"), (Speechless,))

    assert [(Speechless, ("bad",))] * 2 == [(type(each), each.args) for each in found]


def test_an_error_whose_text_cannot_be_made_ends_the_run_as_itself(stage: Stage) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        raise Speechless

    with pytest.raises(holdfast.RunFailed, match="Speechless"):
        stage.live(agent)

    with stage.open() as store:
        found = store.get(RUN)
        assert ("failed", "Speechless") == (found.status, (found.error or "")[:10])


def test_an_effect_whose_error_has_no_text_is_in_doubt(stage: Stage) -> None:
    @holdfast.effect
    def pay() -> None:
        raise Speechless

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        pay()

    with pytest.raises(holdfast.InDoubt, match="the call raised Speechless"):
        stage.live(agent)


def test_an_error_that_ended_the_run_is_asked_again(stage: Stage, world: World) -> None:
    is_fixed = False

    @holdfast.step
    def ask(what: str) -> str:
        said = world.ask(what)
        if what == "bad" and not is_fixed:
            raise ValueError
        return said

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return [ask("good"), ask("bad"), ask("last")]

    for _ in range(2):
        assert isinstance(stage.fault(agent), holdfast.RunFailed)
        with pytest.raises(holdfast.RunFailed):
            stage.restart(agent)
    is_fixed = True

    assert ["good#1", "bad#4", "last#1"] == stage.restart(agent)


def test_attempts_are_counted(stage: Stage, world: World) -> None:
    @holdfast.step
    def ask() -> None:
        raise ValueError

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        ask()

    stage.fault(agent)
    for _ in range(2):
        with pytest.raises(holdfast.RunFailed):
            stage.restart(agent)

    raised = [e for e in stage.journal() if type(e).__name__ == "Raised"]
    assert [1, 2, 3] == [e.attempt for e in raised]  # type: ignore[union-attr]


def test_an_agent_that_tries_again_by_itself_is_replayed_through_its_tries(
    stage: Stage, world: World
) -> None:
    @holdfast.step
    def ask(what: str) -> str:
        said = world.ask(what)
        if world.asked.count(what) < 3:
            raise ConnectionError(said)
        return said

    tries = 0

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        nonlocal tries
        for _ in range(5):
            try:
                said = ask("hello")
            except ConnectionError:
                tries += 1
            else:
                if world.dies_at:
                    raise Crash
                return said
        raise AssertionError

    world.dies_at = "later"
    stage.die(agent)
    world.dies_at = None

    assert "hello#3" == stage.live(agent)
    assert 3 == len(world.asked)
    assert 4 == tries


def test_an_error_caught_before_the_loop_stays_caught_however_far_the_run_went(
    stage: Stage, world: World
) -> None:
    is_bad = True

    @holdfast.step
    def ask(what: str) -> str:
        said = world.ask(what)
        if what == "before" and is_bad:
            raise ValueError(said)
        return text(what, 3000)

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        try:
            ask("before")
            found = "nothing"
        except ValueError as error:
            found = str(error)
        for turn in run.turns():
            if world.dies_at == f"between {turn}":
                raise Crash
            run.state.setdefault("said", []).append(ask(f"turn {turn}"))
            if turn == 60:
                return found
        raise AssertionError

    for turn in (1, 2, 55):
        world.dies_at = f"between {turn}"
        stage.die(agent)
        is_bad = False
    world.dies_at = None

    assert "before#1" == stage.live(agent)
    assert [] == world.repeated
    assert "Based" in stage.kinds()


def test_an_error_that_ended_an_earlier_life_is_no_answer_of_a_later_one(
    stage: Stage, world: World
) -> None:
    name = "typo"

    @holdfast.step
    def load(what: str) -> str:
        if what == "typo":
            raise FileNotFoundError(what)
        return world.ask(what)

    @holdfast.step
    def ask(turn: int) -> str:
        return world.ask(f"turn {turn}") + text(turn, 3000)

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        loaded = load(name)
        for turn in run.turns():
            run.state.setdefault("said", []).append(ask(turn))
            if turn == 60:
                return loaded
        raise AssertionError

    stage.fault(agent)
    name = "right"
    for turn in (1, 50):
        world.dies_at = f"turn {turn}"
        with pytest.raises(Crash):
            stage.restart(agent)
    world.dies_at = None

    assert "right#1" == stage.live(agent)
    assert "Based" in stage.kinds()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), Crash("x")])
def test_what_is_no_exception_is_never_an_answer(
    stage: Stage, world: World, error: BaseException
) -> None:
    is_cut = True

    @holdfast.step
    def ask() -> str:
        said = world.ask("ask")
        if is_cut:
            raise error
        return said

    @holdfast.agent
    def agent(run: holdfast.Run) -> str:
        return ask()

    with pytest.raises(type(error)):
        stage.live(agent)
    assert stage.info().is_interrupted
    is_cut = False

    assert "ask#2" == stage.live(agent)


@pytest.mark.parametrize("is_async", [False, True])
def test_an_interrupt_says_how_to_go_on_and_shows_the_lines_of_the_program_only(
    stage: Stage, is_async: bool
) -> None:
    @holdfast.step
    def think() -> None:
        raise KeyboardInterrupt

    @holdfast.step
    async def athink() -> None:
        raise asyncio.CancelledError

    @holdfast.agent
    def inner(run: holdfast.Run) -> None:
        think()

    @holdfast.agent
    def agent(run: holdfast.Run) -> None:
        run.child(inner)

    @holdfast.agent
    async def aagent(run: holdfast.Run) -> None:
        await athink()

    def live(store: holdfast.Store) -> None:
        if is_async:
            asyncio.run(store.arun(aagent, id=RUN))
        else:
            store.run(agent, id=RUN)

    with stage.open() as store, pytest.raises((KeyboardInterrupt, asyncio.CancelledError)) as cut:
        live(store)

    (note,) = cut.value.__notes__
    assert f"run {RUN} is interrupted" in note
    assert f'the same call, with id="{RUN}", continues it' in note
    names = [entry.frame.code.name for entry in cut.traceback]
    lived = names[names.index("arun" if is_async else "run") + 1 :]
    assert (["aagent", "athink"] if is_async else ["agent", "inner", "think"]) == lived


@pytest.mark.parametrize("kind", ["step", "effect"])
@pytest.mark.parametrize("point", ["store.committing", "store.committed"])
@pytest.mark.parametrize("commit", [1, 2, 3, 4])
def test_an_interrupt_in_the_middle_of_a_commit_loses_and_repeats_nothing(
    stage: Stage, world: World, kind: str, point: str, commit: int
) -> None:
    def ask(n: int) -> str:
        return world.ask(f"ask {n}")

    recorded = holdfast.step(ask) if kind == "step" else holdfast.effect(ask)

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return [recorded(n) for n in range(2)]

    left = commit + 1  # the first one makes the run

    def interrupt() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    failpoint.arm(point, interrupt)
    with contextlib.suppress(KeyboardInterrupt):
        stage.live(agent)
    failpoint.disarm()

    assert ["ask 0#1", "ask 1#1"] == stage.live(agent)
    assert [] == world.repeated


def test_a_cancelled_step_is_never_an_answer(stage: Stage, world: World) -> None:
    is_cut = True

    @holdfast.step
    async def ask() -> str:
        said = world.ask("ask")
        if is_cut:
            raise asyncio.CancelledError
        return said

    @holdfast.agent
    async def agent(run: holdfast.Run) -> str:
        return await ask()

    with pytest.raises(asyncio.CancelledError):
        stage.live(agent)
    is_cut = False

    assert "ask#2" == stage.live(agent)


def test_a_group_of_errors_that_ended_the_run_is_asked_again(stage: Stage, world: World) -> None:
    is_bad = True

    @holdfast.step
    async def ask(n: int) -> str:
        said = world.ask(f"ask {n}")
        await asyncio.sleep(0)
        if n and is_bad:
            raise ValueError(n)
        return said

    @holdfast.agent
    async def agent(run: holdfast.Run) -> Any:  # noqa: ANN401
        async with asyncio.TaskGroup() as group:
            made = [group.create_task(ask(n)) for n in range(3)]
        return [task.result() for task in made]

    error = stage.fault(agent)
    assert isinstance(error, holdfast.RunFailed)
    assert isinstance(error.__cause__, ExceptionGroup)
    is_bad = False

    result = stage.restart(agent)
    assert ["ask 1#2", "ask 2#2"] == result[1:]
