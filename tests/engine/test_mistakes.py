"""The usual mistakes of whoever writes a first agent: each is told with what to write instead."""
# ruff: noqa: ARG001, ANN401 agents take their run first, needed or not; mistakes have no types

import os
import pickle
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.engine.kit import Stage

odd: Any = holdfast
"""The same names, for what a type checker would refuse."""


def step_over_agent() -> object:
    return odd.step(holdfast.agent(plain))


def effect_over_agent() -> object:
    return odd.effect(holdfast.agent(plain))


def agent_over_step() -> object:
    return odd.agent(holdfast.step(plain))


def agent_over_effect() -> object:
    return odd.agent(holdfast.effect(plain))


def effect_over_step() -> object:
    return odd.effect(holdfast.step(plain))


def static_below() -> object:
    return odd.step(staticmethod(plain))


def class_below() -> object:
    return odd.effect(classmethod(plain))


def generator() -> object:
    def tokens(prompt: str) -> Any:
        yield prompt

    return odd.step(tokens)


def method() -> object:
    def serve(self: object, run: holdfast.Run) -> int:
        return 1

    return odd.agent(serve)


def plain(run: Any) -> int:
    return 1


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (step_over_agent, "plain is an agent already; take one of the two decorators away"),
        (effect_over_agent, "plain is an agent already"),
        (agent_over_step, "plain is a step or effect already; take one of the two decorators away"),
        (agent_over_effect, "plain is a step or effect already"),
        (effect_over_step, "plain is a step or effect already"),
        (static_below, "write @staticmethod above it, not below"),
        (class_below, "write @classmethod above it, not below"),
        (generator, "return the whole answer instead, or .* run.stream"),
        (method, "serve is a method: an agent takes the run first; .* run.attach"),
    ],
)
def test_a_decorator_in_the_wrong_place_is_refused_at_its_line(
    declare: Callable[[], object], told: str
) -> None:
    with pytest.raises(holdfast.UsageError, match=told):
        declare()


@holdfast.step
async def search(text: str) -> str:
    return text


@holdfast.step
def echo(x: Any) -> Any:
    return x


class Client:
    @holdfast.step
    def ask(self, text: str) -> str:
        return text


left: list[Any] = []
"""What nobody awaited."""


def forgets_await(run: holdfast.Run) -> Any:
    left.append(search("kelp"))
    return left[-1]


async def forgets_await_in_a_loop(run: holdfast.Run) -> Any:
    async for _ in run.turns():
        left.append(search("kelp"))
        run.state["found"] = left[-1]
        break


def hands_the_run_on(run: holdfast.Run) -> Any:
    return echo(run)


def hands_the_store_on(run: holdfast.Run) -> Any:
    return echo(holdfast.agent(plain))


def asks_by_a_method(run: holdfast.Run) -> Any:
    return Client().ask("kelp")


def calls_a_value(run: holdfast.Run) -> Any:
    return odd_run(run).call(5)


def streams_a_stream(run: holdfast.Run) -> Any:
    return list(odd_run(run).stream(token for token in "kelp"))


def wraps_a_value(run: holdfast.Run) -> Any:
    return odd_run(run).wrap(echo(1))()


def hides_a_coroutine(run: holdfast.Run) -> Any:
    return run.call(lambda: search.bare("kelp"))


def odd_run(run: holdfast.Run) -> Any:
    return run


@pytest.mark.parametrize(
    ("fn", "told"),
    [
        (forgets_await, "coroutine: .* was not awaited; write `await`"),
        (forgets_await_in_a_loop, r'state\["found"\]: coroutine: .* was not awaited'),
        (hands_the_run_on, r"echo\(x\): .*Run: .* hand on what is needed of it"),
        (hands_the_store_on, r"echo\(x\): .*Agent: .* hand on what is needed of it"),
        (
            asks_by_a_method,
            r"ask\(self\): .*Client: it is the object of a method; say ignore='self'",
        ),
        (calls_a_value, "run.call takes a function, before it is called, not what it gave: 5"),
        (streams_a_stream, "run.stream takes a function, before it is called, .*<generator"),
        (wraps_a_value, "run.wrap takes a function, before it is called, not what it gave: 1"),
        (hides_a_coroutine, "a coroutine, which nobody awaits here; write it with `async def`"),
    ],
)
def test_a_call_that_cannot_be_meant_says_what_to_write(
    stage: Stage, fn: Callable[..., Any], told: str
) -> None:
    with pytest.raises(holdfast.UsageError, match=told):
        stage.live(holdfast.agent(fn))

    while left:
        left.pop().close()


def test_a_restart_is_given_an_agent_or_nothing(stage: Stage) -> None:
    with stage.open() as store:
        store.run(holdfast.agent(plain), id="a")

        with pytest.raises(holdfast.UsageError, match=r"agent=.* takes an agent, not str"):
            store.restart("a", agent=odd_run("shop:plain"))  # type: ignore[arg-type]


def test_runs_of_a_status_that_is_none_are_refused_with_those_there_are(stage: Stage) -> None:
    with stage.open() as store, pytest.raises(holdfast.UsageError, match=r"running .*in doubt"):
        store.runs(status="interrupted")


@pytest.mark.parametrize("limit", [-1, "all", 2.5])
def test_a_limit_that_is_no_count_is_refused(stage: Stage, limit: Any) -> None:
    with stage.open() as store, pytest.raises(holdfast.UsageError, match="limit= takes"):
        store.runs(limit=limit)


def test_without_a_limit_every_run_is_listed(stage: Stage) -> None:
    agent = holdfast.agent(plain)
    with stage.open() as store:
        for n in range(60):
            store.run(agent, id=f"r-{n}")

        assert (50, 60) == (len(store.runs()), len(store.runs(limit=None)))


def test_a_rollback_without_a_place_names_every_place_there_is(stage: Stage) -> None:
    with stage.open() as store:
        store.run(holdfast.agent(plain), id="a")

        with pytest.raises(holdfast.UsageError, match="newest-valid, before:KEY, or start"):
            store.plan_rollback("a")


@holdfast.step
def page(turn: int) -> bytes:
    return secrets.token_bytes(1_000_000)


@holdfast.agent
def wanderer(run: holdfast.Run, places: list[str]) -> int:
    for turn in run.turns():
        os.chdir(places[turn])
        run.state["page"] = page(turn)
        run.checkpoint()
        if turn + 1 == len(places):
            break
    return len(run.state["page"])


def test_an_agent_that_changes_its_directory_keeps_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large values are files beside the database; `./.holdfast` is where most stores are."""
    places = [tmp_path / "a", tmp_path / "b"]
    for place in places:
        place.mkdir()
    monkeypatch.chdir(tmp_path)

    with holdfast.open("store") as store:
        length = store.run(wanderer, [str(place) for place in places], id="a")
        first = len(store.restore("a@0")[1]["page"])
        where = store.path

    assert (1_000_000, 1_000_000, tmp_path / "store") == (length, first, where)
    assert [[], []] == [list(place.iterdir()) for place in places]


@pytest.mark.parametrize("path", ["postgresql://host/runs", "s3://bucket/runs", "file:///runs"])
def test_an_address_is_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(holdfast.Unsupported, match="a directory of this machine, not an address"):
        holdfast.open(path)

    assert [] == list(tmp_path.iterdir())


def test_a_store_cannot_lie_in_memory_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(holdfast.Unsupported, match="a store outlives its process"):
        holdfast.open(":memory:")

    assert [] == list(tmp_path.iterdir())


def test_a_store_that_is_handed_to_another_process_says_to_open_it_there(stage: Stage) -> None:
    with stage.open() as store, pytest.raises(TypeError, match="open it by its path in the other"):
        pickle.dumps(store)


UNGUARDED = """
import holdfast

@holdfast.agent
def agent(run):
    return 1

with holdfast.open("store") as store:
    store.supervise(agent, id="run-1")
"""


def test_a_script_that_begins_its_runs_when_it_is_read_is_told_where_to_put_that(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED)

    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == done.returncode
    assert "script.py begins a run while a child process reads it" in done.stderr
    assert 'put what the program does under `if __name__ == "__main__":`' in done.stderr


def test_a_relative_path_in_a_directory_that_is_gone_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    os.chdir("gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(holdfast.StoreUnwritable, match="the working directory is gone"):
        holdfast.open("store")


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda store: store.erase(5), "named by its id, a text, not by 5"),
        (lambda store: store.approve(6), "named by its id, a text, not by 6"),
        (lambda store: store.gc("7d"), r"holdfast.Retention\(last=…\), not '7d'"),
        (lambda store: store.plan_gc(7), r"holdfast.Retention\(last=…\), not 7"),
    ],
)
def test_what_a_store_cannot_take_is_refused_in_words(
    stage: Stage, ask: Callable[[Any], object], told: str
) -> None:
    with stage.open() as store, pytest.raises(holdfast.UsageError, match=told):
        ask(store)
