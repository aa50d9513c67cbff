"""A run kept alive in a child process: it dies, fails or hangs, goes on, or asks a person."""

import contextlib
import importlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import holdfast
from holdfast.model.journal import Decided, Started
from tests.engine.kit import RUN, Stage
from tests.engine.test_spans import attributes, collected, named

HERE = Path(__file__).parent


@pytest.fixture
def agents(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(HERE))
    yield importlib.import_module("supervised")
    sys.modules.pop("supervised", None)


def asked(place: Path) -> list[str]:
    file = place / "asked"
    return file.read_text().splitlines() if file.exists() else []


def supervise(stage: Stage, agent: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 any agent
    with stage.open() as store:
        return store.supervise(agent, *args, id=RUN, **options)


def decisions(stage: Stage) -> list[tuple[str, str, str]]:
    return [
        (entry.by, str(entry.failure.kind), str(entry.decision.action))
        for entry in stage.journal()
        if isinstance(entry, Decided)
    ]


@pytest.mark.parametrize("spare", [True, False])
def test_a_run_whose_process_is_killed_goes_on(
    stage: Stage, agents: ModuleType, tmp_path: Path, spare: bool
) -> None:
    result = supervise(stage, agents.mortal, str(tmp_path), [1, 3], spare=spare)

    assert [0, 1, 2, 3, 4] == result
    assert [f"think {turn}" for turn in range(5)] == asked(tmp_path)
    assert [("supervise", "crash", "restart")] * 2 == decisions(stage)


def test_a_process_with_thousands_of_open_files_can_supervise(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4096, hard)), hard))
    try:
        with contextlib.ExitStack() as files:
            for _ in range(1100):
                files.enter_context(Path(os.devnull).open())
            result = supervise(stage, agents.mortal, str(tmp_path), [], spare=False)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert [0, 1, 2, 3, 4] == result


def test_a_process_that_the_agent_forks_ends_on_sigterm_as_ever(
    stage: Stage, agents: ModuleType
) -> None:
    assert -signal.SIGTERM == supervise(stage, agents.forker, spare=False)


def test_the_budget_is_for_all_recoveries_of_a_run_however_far_it_gets_between_them(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(holdfast.Escalated, match=r"\$0\.40 of \$0\.50 is spent"):
        supervise(stage, agents.thrifty, str(tmp_path), spare=False)

    assert ["restart", "restart", "escalate"] == [action for _, _, action in decisions(stage)]


def test_an_asynchronous_agent_goes_on_too(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    assert "awake" == supervise(stage, agents.dreamer, str(tmp_path))


def test_a_failure_that_passes_by_itself_is_tried_again(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    assert "well" == supervise(stage, agents.flaky, str(tmp_path), 2)

    assert ["think 0"] == asked(tmp_path)
    by = [entry[0] for entry in decisions(stage)]
    assert ["run", "supervise", "run", "supervise"] == by


def test_a_bug_rises_and_is_not_tried_again(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(holdfast.RunFailed, match="TypeError: wrong") as raised:
        supervise(stage, agents.buggy, str(tmp_path))

    assert isinstance(raised.value.__cause__, TypeError)
    assert 1 == stage.kinds().count("Failed")
    assert [("run", "bug", "escalate")] == decisions(stage)


def test_a_process_that_dies_twice_at_one_point_is_given_to_a_person(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(holdfast.Escalated, match="the same failure came twice from one point"):
        supervise(stage, agents.poisoned, str(tmp_path))

    assert ["think 0", "dies", "dies"] == asked(tmp_path)
    assert holdfast.Status.FAILED is stage.info().status


def test_what_was_given_to_a_person_is_not_tried_again_by_itself(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    for _ in range(2):
        with pytest.raises(holdfast.Escalated):
            supervise(stage, agents.poisoned, str(tmp_path))

    assert ["think 0", "dies", "dies"] == asked(tmp_path)


def test_a_run_that_records_nothing_for_too_long_is_killed_and_goes_on(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    began = time.monotonic()

    assert "woke up" == supervise(stage, agents.hanging, str(tmp_path), stall="2s")

    assert [("supervise", "timeout", "restart")] == decisions(stage)
    assert time.monotonic() - began < 60


def test_a_stream_that_stalls_is_a_hang_and_goes_on_from_what_it_gave(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    """Also where checkpoints are made by the clock: they do not look like progress."""
    result = supervise(stage, agents.listener, str(tmp_path), stall="3s", spare=False)

    assert "w0 w1 w2 w3 w4 w5" == result
    assert [f"word {n}" for n in range(6)] == asked(tmp_path)
    assert [("supervise", "timeout", "restart")] == decisions(stage)


def test_what_a_child_records_is_progress_of_its_parent(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    assert 16 == supervise(stage, agents.manager, str(tmp_path), stall="3s", spare=False)

    assert [] == decisions(stage)
    assert 16 == len(asked(tmp_path))


def test_deaths_between_which_a_child_got_on_are_not_the_same_failure_twice(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    result = supervise(stage, agents.leader, str(tmp_path), [1, 2, 3, 4], spare=False)

    assert [0, 1, 2, 3, 4] == result
    assert [("supervise", "crash", "restart")] * 4 == decisions(stage)


def test_a_child_that_dies_twice_at_one_point_is_given_to_a_person_with_its_parent(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(holdfast.Escalated, match="the same failure came twice from one point"):
        supervise(stage, agents.ringleader, str(tmp_path), spare=False)

    assert ["think 0", "dies", "dies"] == asked(tmp_path)


def test_a_long_call_under_its_own_limit_is_no_hang(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    assert 3.0 == supervise(stage, agents.patient, str(tmp_path), 3.0, stall="1s")

    assert ["slow"] == asked(tmp_path)


def test_a_process_that_stands_still_beyond_its_limit_is_killed_and_goes_on(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    assert "woke up" == supervise(stage, agents.stuck, str(tmp_path))

    assert [("supervise", "timeout", "restart")] == decisions(stage)


@pytest.mark.parametrize("agent", ["cursed", "careful"])
def test_a_bad_answer_that_a_restart_would_only_repeat_is_rolled_back(
    stage: Stage, agents: ModuleType, tmp_path: Path, agent: str
) -> None:
    result = supervise(stage, getattr(agents, agent), str(tmp_path))

    assert [100, 101, 102, 103] == result
    said = asked(tmp_path)
    assert ["quote 2", "order 2", "cancel 2 ordered 2", "quote 2", "order 2"] == said[4:9]
    assert 1 == stage.kinds().count("RolledBack")
    kind = "crash" if agent == "cursed" else "invalid state"
    assert ("supervise", kind, "rollback") == decisions(stage)[-1]


def test_a_failure_that_a_rollback_does_not_cure_is_given_to_a_person(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "hopeless").touch()

    with pytest.raises(holdfast.Escalated, match="also after a rollback"):
        supervise(stage, agents.cursed, str(tmp_path))

    orders = [line for line in asked(tmp_path) if line.startswith("order 2")]
    cancelled = [line for line in asked(tmp_path) if line.startswith("cancel 2")]
    assert (2, 1) == (len(orders), len(cancelled))


def test_a_child_that_cannot_even_begin_is_not_started_for_ever(
    stage: Stage, agents: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        stage.live(agents.interrupted, str(tmp_path))
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "empty"), *sys.path[1:]])

    with pytest.raises(holdfast.Escalated, match="ModuleNotFoundError"):
        supervise(stage, agents.interrupted, str(tmp_path))

    assert stage.info().is_interrupted


def test_an_effect_in_doubt_is_a_persons_to_settle(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    with pytest.raises(holdfast.InDoubt):
        supervise(stage, agents.payer, str(tmp_path))

    assert ["pay"] == asked(tmp_path)


def test_a_finished_run_gives_its_result_without_a_process(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    before = supervise(stage, agents.mortal, str(tmp_path), [])
    (tmp_path / "asked").unlink()

    assert before == supervise(stage, agents.mortal, str(tmp_path), [])
    assert [] == asked(tmp_path)


def test_an_agent_that_a_child_cannot_find_is_refused(stage: Stage) -> None:
    @holdfast.agent
    def local(run: holdfast.Run) -> None: ...

    with pytest.raises(holdfast.UsageError, match="declare it at the top of a module"):
        supervise(stage, local)


def test_other_arguments_under_a_used_id_are_refused(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    supervise(stage, agents.patient, str(tmp_path), 0.0)

    with pytest.raises(holdfast.AgentMismatch):
        supervise(stage, agents.patient, str(tmp_path), 1.0)


SCRIPT = """
import sys
import holdfast
{agent}

if __name__ == "__main__":
    with holdfast.open(sys.argv[1]) as store:
        print(store.supervise({name}, sys.argv[2], id="run-1"), flush=True)
"""

SLEEPER = """
import os, time
from pathlib import Path

@holdfast.agent
def sleeper(run, place):
    for turn in run.turns():
        Path(place, f"pid-{os.getpid()}").touch()
        if not Path(place, "go").exists():
            time.sleep(600)
        break
    return "rested"
"""


def start(tmp_path: Path) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(agent=SLEEPER, name="sleeper"))
    return subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "store"), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def children(place: Path) -> list[int]:
    return [int(path.name.partition("-")[2]) for path in place.glob("pid-*")]


def wait_for(fact: Any) -> None:  # noqa: ANN401 any question
    until = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < until, "what was waited for did not come"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_when_the_supervisor_ends_its_child_lets_go_and_another_goes_on(
    stage: Stage, tmp_path: Path, end: signal.Signals
) -> None:
    with start(tmp_path) as first:
        wait_for(lambda: children(tmp_path))
        [child] = children(tmp_path)
        first.send_signal(end)
        first.wait(60)
    wait_for(lambda: not is_alive(child))
    assert stage.info().is_interrupted

    (tmp_path / "go").touch()
    with start(tmp_path) as second:
        out, err = second.communicate(timeout=60)

    assert ("rested\n", 0) == (out, second.returncode), err
    assert [] == [pid for pid in children(tmp_path) if is_alive(pid)]


def test_what_is_said_of_the_saving_of_a_supervised_run_holds_in_every_life(
    stage: Stage, agents: ModuleType, tmp_path: Path
) -> None:
    supervise(
        stage,
        agents.mortal,
        str(tmp_path),
        [1, 3],
        checkpoint=holdfast.every(turns=2),
        snapshot={"seen": "turns=1"},
        durability="durable",
    )

    started = stage.journal()[0]
    assert isinstance(started, Started)
    assert started.told is not None
    assert started.told == started.pace
    assert "durable" == started.told.durability
    with stage.open() as store:
        points = store.checkpoints(RUN)
    assert [1, 3] == [p.turn for p in points if p.kind == "checkpoint"]
    assert [0, 1, 2, 3] == [p.turn for p in points if p.kind == "snapshot"]
    lives = [attributes(span) for span in named(collected(stage), "invoke_agent")]
    told = ("class", "action", "attempt", "outcome")
    assert [("crash", "restart", nth, "recovered") for nth in (1, 2)] == [
        tuple(life[f"holdfast.recovery.{name}"] for name in told) for life in lives[1:]
    ]
