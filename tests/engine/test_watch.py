"""A watch over a store: what it takes up again, when, and what it says of it."""

import asyncio
import contextlib
import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import holdfast
from holdfast.clock import SystemClock
from holdfast.engine import watch as watching
from holdfast.model.journal import Decided, Entry
from tests.engine.kit import RUN, Crash, Stage, reaching

HERE = Path(__file__).parent
WAIT_S_MAX = 60.0


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(HERE))
    yield importlib.import_module("supervised")
    sys.modules.pop("supervised", None)


class AnHourAgo(SystemClock):
    def now(self) -> float:
        return super().now() - 3600


@contextlib.contextmanager
def watched(stage: Stage, told: list[str]) -> Iterator[holdfast.Store]:
    """A store that a watch looks after; what the watch does is told."""
    is_over = threading.Event()

    def watch() -> None:
        with stage.open() as store, contextlib.suppress(KeyboardInterrupt):
            store.watch(stopped=is_over.is_set, happening=lambda what, _: told.append(what))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        with stage.open() as store:
            yield store
    finally:
        is_over.set()
        thread.join()


def await_(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S_MAX
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


def begin(stage: Stage, agent: holdfast.Agent[..., Any], place: Path, id_: str = RUN) -> None:
    """A run whose process was killed after its first step."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import holdfast, supervised; "
        "holdfast.open(sys.argv[2]).run("
        "getattr(supervised, sys.argv[3]), sys.argv[4], id=sys.argv[5])"
    )
    name = agent.name.rpartition(".")[2]
    command = [sys.executable, "-c", code, str(HERE), str(stage.path), name, str(place), id_]
    env = {**os.environ, "HOLDFAST_FAILPOINT": "step.recorded"}
    subprocess.run(command, env=env, check=False)


def decisions(entries: list[Entry]) -> list[str]:
    return [str(entry.failure.kind) for entry in entries if isinstance(entry, Decided)]


def test_a_run_that_came_to_its_question_under_a_watch_goes_on_when_it_is_answered(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    """Also where it is the question of a child."""
    begin(stage, agents.office, tmp_path)
    told: list[str] = []

    with watched(stage, told) as store:
        await_(lambda: "person" in told)
        [item] = store.inbox()
        store.answer(item.id, "yes")
        await_(lambda: store.get(RUN).status is holdfast.Status.FINISHED)
        assert "told yes" == store.run(agents.office, str(tmp_path), id=RUN)

    assert 1 == told.count("person")


def test_a_parent_whose_child_waits_leaves_no_trace_until_there_is_an_answer(stage: Stage) -> None:
    @holdfast.agent
    def child(run: holdfast.Run) -> object:
        return run.ask("Well?")

    @holdfast.agent
    def parent(run: holdfast.Run) -> object:
        return run.child(child, id="child")

    assert isinstance(stage.fault(parent), holdfast.Waiting)
    before = stage.journal()

    assert isinstance(stage.fault(parent), holdfast.Waiting)
    assert before == stage.journal()

    with stage.open() as store:
        store.answer("child", "yes")
    assert "yes" == stage.live(parent)


def test_a_finished_run_that_is_rolled_back_goes_on_although_newer_ones_are_at_work(
    stage: Stage, agents: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it was rolled back is no failure, and recorded as none."""
    monkeypatch.setattr(watching, "WHOLE_LOOK_S", 1.0)
    (tmp_path / "go").touch()
    with stage.open() as store:
        store.run(agents.slowly, str(tmp_path), id="older")
    begin(stage, agents.clerk, tmp_path)
    told: list[str] = []

    with watched(stage, told) as store:
        await_(lambda: "person" in told)
        store.plan_rollback("older", to=1).apply()
        await_(lambda: store.get("older").status is holdfast.Status.FINISHED)

    assert [] == decisions(stage.journal("older"))


def test_what_a_person_settled_before_the_supervisor_looked_is_no_failure(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    def settle(name: str) -> None:
        if name == "supervise.ended" and stage.info().status is holdfast.Status.IN_DOUBT:
            with stage.open() as store:
                [item] = store.inbox()
                store.answer(item.id, "happened", outcome="paid")

    with stage.open() as store, reaching(settle):
        assert "paid" == store.supervise(agents.payer, str(tmp_path), id=RUN, spare=False)

    assert ["in doubt"] == decisions(stage.journal())


def test_a_fork_that_a_watch_begins_has_not_failed(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    with stage.open() as store:
        store.run(agents.slowly, str(tmp_path), id=RUN)
        store.fork(RUN, at=1, new_id="fork")
        assert {"fork": "finished"} == store.watch(once=True)

    assert [] == decisions(stage.journal("fork"))


def test_a_run_whose_supervisor_died_before_it_restarted_it_is_restarted_by_the_next(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    def die(name: str) -> None:
        if name == "supervise.ended":
            raise Crash

    for _ in range(2):
        with stage.open() as store, pytest.raises(Crash), reaching(die):
            store.supervise(agents.flaky, str(tmp_path), 3, id=RUN, spare=False)
        assert holdfast.Status.FAILED is stage.info().status

    with stage.open() as store:
        assert {RUN: "finished"} == store.watch(once=True)
    assert 1 == (tmp_path / "asked").read_text().count("think 0")


def test_what_is_too_late_to_be_restarted_is_given_to_a_person_and_left_alone(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(holdfast.RunFailed):
        Stage(stage.path, AnHourAgo()).live(agents.hurried, str(tmp_path))

    with stage.open() as store:
        assert {RUN: "Escalated"} == store.watch(once=True)
        assert {} == store.watch(once=True)
        [item] = store.inbox()

    assert "more than max_recovery" in item.text


def test_a_watch_that_cannot_start_a_process_tries_again_later(
    stage: Stage, agents: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hung").touch()
    begin(stage, agents.hanging, tmp_path)
    told: list[str] = []
    popen = subprocess.Popen

    def refuse_once(*_args: object, **_options: object) -> None:
        monkeypatch.setattr(subprocess, "Popen", popen)
        raise BlockingIOError("no process can be made")

    monkeypatch.setattr(subprocess, "Popen", refuse_once)
    with watched(stage, told) as store:
        await_(lambda: store.get(RUN).status is holdfast.Status.FINISHED)

    assert 1 == told.count("error")


def test_a_child_whose_parent_finished_without_it_is_left_as_it_is(
    stage: Stage, agents: ModuleType
) -> None:
    with stage.open() as store:
        assert "without it" == asyncio.run(store.arun(agents.impatient, id=RUN))

    with stage.open() as store:
        assert {} == store.watch(once=True)
    assert holdfast.Status.RUNNING is stage.info("given up").status
