"""A stream that an error was thrown through was not left for good: it goes on after a restart."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest

import holdfast

WORDS = ["one ", "two ", "three ", "four "]


class World:
    """A model that counts its calls, and a reader that fails at the third word once."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.error: BaseException | None = None

    def go_on(self, prompt: str, prefix: Sequence[str] = ()) -> Iterator[str]:
        assert prompt
        self.begun.append(len(prefix))
        yield from WORDS[len(prefix) :]

    def anew(self, prompt: str) -> Iterator[str]:
        assert prompt
        self.begun.append(0)
        yield from WORDS

    async def ago_on(self, prompt: str, prefix: Sequence[str] = ()) -> AsyncIterator[str]:
        for word in self.go_on(prompt, prefix):
            await asyncio.sleep(0)
            yield word

    def read(self, word: str) -> str:
        if word == WORDS[2] and self.error is not None:
            error, self.error = self.error, None
            raise error
        return word.upper()


@pytest.fixture
def world() -> World:
    return World()


READ = [word.upper() for word in WORDS]


def again(path: Path, agent: holdfast.Agent[..., list[str]]) -> object:
    """The result after a failure or an interruption that this test is about."""
    with holdfast.open(path) as store, contextlib.suppress(KeyboardInterrupt):
        with pytest.raises(holdfast.RunFailed):
            store.run(agent, id="run")
        return store.restart("run", agent=agent)
    with holdfast.open(path) as store:
        return store.run(agent, id="run")


def once(run: holdfast.Run, world: World, stream: Callable[..., Iterator[str]]) -> list[str]:
    return [world.read(word) for word in run.stream(stream, "hello", every=1000)]


@pytest.mark.parametrize("error", [ValueError("odd"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["go_on", "anew"])
@pytest.mark.parametrize("has_turns", [True, False])
def test_an_error_in_the_loop_that_ends_the_run_leaves_no_stream(
    tmp_path: Path, world: World, error: BaseException, name: str, *, has_turns: bool
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        found: list[str] = []
        for _ in run.turns() if has_turns else [0]:
            for word in run.stream(getattr(world, name), "hello", every=1000):
                read = world.read(word)
                found.append(read)
            break
        return found

    world.error = error

    assert READ == again(tmp_path, agent)
    assert [0, 3 if name == "go_on" else 0] == world.begun


@pytest.mark.parametrize("error", [ValueError("odd"), KeyboardInterrupt()])
def test_a_comprehension_over_a_stream_is_no_other(
    tmp_path: Path, world: World, error: BaseException
) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        return once(run, world, world.go_on)

    world.error = error

    assert READ == again(tmp_path, agent)


def test_a_cancelled_task_leaves_no_stream(tmp_path: Path, world: World) -> None:
    @holdfast.agent
    async def agent(run: holdfast.Run) -> list[str]:
        found: list[str] = []
        async for word in run.stream(world.ago_on, "hello", every=1000):
            read = world.read(word)
            found.append(read)
        return found

    world.error = asyncio.CancelledError()
    with holdfast.open(tmp_path) as store:
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(store.arun(agent, id="run"))

        assert READ == asyncio.run(store.arun(agent, id="run"))
    assert [0, 3] == world.begun


def test_streams_inside_each_other_all_go_on(tmp_path: Path, world: World) -> None:
    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        found: list[str] = []
        for outer in run.stream(world.go_on, "outer", every=1000):
            for inner in run.stream(world.go_on, outer, every=1000):
                read = world.read(inner)
                found.append(read)
        return found

    world.error = ValueError("odd")

    assert READ * len(WORDS) == again(tmp_path, agent)


def test_one_that_the_agent_went_past_stays_left(tmp_path: Path, world: World) -> None:
    @holdfast.step
    def note(text: str) -> str:
        world.read(WORDS[2] if text == "second" else text)
        return text

    @holdfast.agent
    def agent(run: holdfast.Run) -> list[str]:
        found: list[str] = []
        for word in run.stream(world.go_on, "hello", every=1000):
            found.append(word)
            if len(found) == 2:
                break
        return [*found, note("first"), note("second")]

    world.error = ValueError("odd")

    assert [*WORDS[:2], "first", "second"] == again(tmp_path, agent)
    assert [0] == world.begun
